//! A connection to where a request goes: the name resolved, the address checked, TLS agreed.
//!
//! Nothing of a request is sent here, so that whatever goes wrong is proven not to have happened.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::Trouble;
use super::address::may_connect;
use super::target::Target;

/// How long one of several addresses is tried before the next.
const ADDRESS_PATIENCE: Duration = Duration::from_secs(10);

/// What a resolver gives: the addresses of a name, or why there are none.
pub type Resolved<'a> = Pin<Box<dyn Future<Output = std::io::Result<Vec<SocketAddr>>> + Send + 'a>>;

/// Finds the addresses of a name. Whatever it gives is checked before it is connected to.
pub trait Resolve: Send + Sync {
    /// The addresses of a host, each with the port.
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> Resolved<'a>;
}

/// The system's resolver.
struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str, port: u16) -> Resolved<'a> {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) })
    }
}

/// How HTTP tools reach the network.
#[derive(Clone)]
pub struct HttpClient {
    resolver: Arc<dyn Resolve>,
    tls: Arc<OnceLock<Result<Arc<ClientConfig>, String>>>,
    /// In place of the network: what each request is answered with.
    #[cfg(feature = "testing")]
    answer: Option<Arc<[u8]>>,
}

impl Default for HttpClient {
    /// Names by the system's resolver, certificates by the system's roots (`SSL_CERT_FILE`, `SSL_CERT_DIR`).
    fn default() -> Self {
        Self {
            resolver: Arc::new(SystemResolver),
            tls: Arc::default(),
            #[cfg(feature = "testing")]
            answer: None,
        }
    }
}

/// A stream that a request can be sent over.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

impl HttpClient {
    /// Reaches nobody: each request is answered with these bytes.
    #[cfg(feature = "testing")]
    pub(super) fn answered_by(answer: Arc<[u8]>) -> Self {
        Self { answer: Some(answer), ..Self::default() }
    }

    /// Resolves names by this.
    pub fn resolver(mut self, resolver: Arc<dyn Resolve>) -> Self {
        self.resolver = resolver;
        self
    }

    /// Trusts these roots in place of the system's, each a certificate in DER.
    ///
    /// # Errors
    ///
    /// Says which one is no certificate.
    pub fn roots(mut self, roots: impl IntoIterator<Item = Vec<u8>>) -> Result<Self, String> {
        let mut store = RootCertStore::empty();
        for root in roots {
            store.add(CertificateDer::from(root)).map_err(|error| format!("a root is no certificate: {error}"))?;
        }
        self.tls = Arc::new(OnceLock::from(config(store)));
        Ok(self)
    }

    /// Connects. Each address is checked, the name's as well as one that the url names itself.
    pub(super) async fn connect(
        &self,
        target: &Target,
        allowed: &[String],
    ) -> Result<TokioIo<Box<dyn Stream>>, Trouble> {
        #[cfg(feature = "testing")]
        if let Some(answer) = &self.answer {
            return Ok(TokioIo::new(Box::new(super::heard::Answering::new(answer.clone()))));
        }
        let stream = self.reach(target, allowed).await?;
        // A request is short, and its last packet is waited for.
        let _ = stream.set_nodelay(true);
        if !target.tls {
            return Ok(TokioIo::new(Box::new(stream)));
        }
        let config = self.config().await.map_err(Trouble::NotSent)?;
        let name = ServerName::try_from(target.host.clone())
            .map_err(|_| Trouble::Refused(format!("`{}` is no name for TLS", target.host)))?;
        let secured = TlsConnector::from(config).connect(name, stream).await;
        let secured = secured.map_err(|error| Trouble::NotSent(format!("no TLS with {}: {error}", target.host)))?;
        Ok(TokioIo::new(Box::new(secured)))
    }

    async fn reach(&self, target: &Target, allowed: &[String]) -> Result<TcpStream, Trouble> {
        let (host, port) = (target.host.as_str(), target.port);
        let addresses = match host.parse::<IpAddr>() {
            Ok(address) => vec![SocketAddr::new(address, port)],
            Err(_) => {
                let resolved = self.resolver.resolve(host, port).await;
                resolved.map_err(|error| Trouble::NotSent(format!("the name {host} can't be resolved: {error}")))?
            }
        };
        let may = |address: &SocketAddr| may_connect(address.ip(), host, port, allowed);
        let mut last = match addresses.iter().find(|address| !may(address)) {
            Some(refused) => Trouble::Refused(refusal(host, refused.ip())),
            None => Trouble::NotSent(format!("the name {host} has no address")),
        };
        for address in addresses.iter().filter(|address| may(address)) {
            last = match tokio::time::timeout(ADDRESS_PATIENCE, TcpStream::connect(address)).await {
                // What was connected to is what counts.
                Ok(Ok(stream)) => match stream.peer_addr() {
                    Ok(peer) if may(&peer) => return Ok(stream),
                    Ok(peer) => Trouble::Refused(refusal(host, peer.ip())),
                    Err(error) => Trouble::NotSent(format!("no connection to {host}: {error}")),
                },
                Ok(Err(error)) => Trouble::NotSent(format!("no connection to {host} port {port}: {error}")),
                Err(_) => Trouble::NotSent(format!("no connection to {host} port {port} in time")),
            };
        }
        Err(last)
    }

    /// The system's roots are read once, when they are first needed.
    async fn config(&self) -> Result<Arc<ClientConfig>, String> {
        let tls = self.tls.clone();
        let read = tokio::task::spawn_blocking(move || tls.get_or_init(|| config(system_roots())).clone());
        read.await.unwrap_or_else(|_| Err("the certificates can't be read".to_owned()))
    }
}

fn refusal(host: &str, address: IpAddr) -> String {
    format!(
        "http.address_refused: {host} is at {address}, which is no public address; nothing was sent. If it is meant, \
         the agent file says allow_hosts = [\"{host}\"]"
    )
}

fn system_roots() -> RootCertStore {
    let mut store = RootCertStore::empty();
    // A root that can't be read is one that is not trusted; none at all is named below.
    store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    store
}

fn config(roots: RootCertStore) -> Result<Arc<ClientConfig>, String> {
    if roots.is_empty() {
        return Err("this machine has no root certificates; SSL_CERT_FILE names a file of them".to_owned());
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(|error| format!("no TLS: {error}"))?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}
