//! Connections to providers. They are kept for the next call: a decision should not pay for a handshake.

use std::sync::OnceLock;
use std::time::Duration;

use reqwest::{Client, redirect, retry};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// A connection that nobody used for so long is closed.
const IDLE: Duration = Duration::from_secs(90);

/// Makes a client: certificates by the system's roots (`SSL_CERT_FILE`, `SSL_CERT_DIR`), proxies as `HTTPS_PROXY`,
/// `HTTP_PROXY` and `NO_PROXY` say. It follows no redirect, which would carry the key elsewhere, and never asks twice.
///
/// # Errors
///
/// Says what is missing, such as the system's certificates.
pub fn client(connect: Duration) -> Result<Client, String> {
    let builder = Client::builder()
        .tls_backend_preconfigured(config()?)
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .connect_timeout(connect)
        .pool_idle_timeout(IDLE)
        .tcp_keepalive(Duration::from_secs(30))
        .user_agent(concat!("lodestep/", env!("CARGO_PKG_VERSION")));
    builder.build().map_err(|error| format!("no client for HTTP: {error}"))
}

/// Reading the system's certificates takes milliseconds: it is done once for all providers.
fn config() -> Result<ClientConfig, String> {
    static CONFIG: OnceLock<Result<ClientConfig, String>> = OnceLock::new();
    CONFIG.get_or_init(read_config).clone()
}

fn read_config() -> Result<ClientConfig, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (taken, _) = roots.add_parsable_certificates(found.certs);
    if taken == 0 {
        let why = found.errors.first().map_or_else(String::new, |error| format!(": {error}"));
        return Err(format!("this system has no root certificates{why}"));
    }
    let builder = ClientConfig::builder_with_provider(ring::default_provider().into());
    let builder = builder.with_safe_default_protocol_versions().map_err(|error| format!("TLS: {error}"))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
