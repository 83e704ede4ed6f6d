//! An HTTP server of the tests' own, on loopback: it keeps what it received and answers as the test says, also wrongly.
//!
//! It knows as much of HTTP as that takes: one request a connection, bodies by their length.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

/// A request as it came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// `POST /v1/x?y`.
    pub line: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Received {
    /// A header's value; empty when it is not there.
    pub fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// What the server does with a request.
pub enum Reply {
    /// A whole answer: status, headers, body.
    Answer(u16, Vec<(&'static str, String)>, Vec<u8>),
    /// An answer in chunks.
    Chunks(Vec<Vec<u8>>),
    /// No answer: the connection stays until the client gives up.
    Hang,
    /// No answer: the connection ends.
    Drop,
    /// The head of an answer that promises more than it brings.
    Half(u16),
}

/// An answer without headers of its own.
pub fn answer(status: u16, body: &str) -> Reply {
    Reply::Answer(status, Vec::new(), body.as_bytes().to_vec())
}

/// A redirect.
pub fn redirect(status: u16, location: impl Into<String>) -> Reply {
    Reply::Answer(status, vec![("location", location.into())], Vec::new())
}

type Behave = Arc<dyn Fn(&Received, usize) -> Reply + Send + Sync>;

/// A server in threads of its own; it ends with the test.
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
    ended: Arc<AtomicBool>,
}

impl Server {
    /// One that does this with a request; the second argument counts them from 0.
    pub fn new(behave: impl Fn(&Received, usize) -> Reply + Send + Sync + 'static) -> Self {
        Self::listen(Arc::new(behave), None)
    }

    /// One that speaks TLS.
    pub fn with_tls(config: ServerConfig, behave: impl Fn(&Received, usize) -> Reply + Send + Sync + 'static) -> Self {
        Self::listen(Arc::new(behave), Some(Arc::new(config)))
    }

    fn listen(behave: Behave, tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let address = listener.local_addr().expect("an address");
        let (received, ended) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (kept, over) = (received.clone(), ended.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                let (Ok(stream), behave, kept, tls) = (stream, behave.clone(), kept.clone(), tls.clone()) else {
                    continue;
                };
                std::thread::spawn(move || match tls {
                    None => serve(stream, &behave, &kept),
                    Some(config) => {
                        let session = ServerConnection::new(config).expect("a session");
                        serve(StreamOwned::new(session, stream), &behave, &kept);
                    }
                });
            }
        });
        Self { address, received, ended }
    }

    /// Its url with a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// What it received so far.
    pub fn received(&self) -> Vec<Received> {
        self.received.lock().expect("sound").clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(stream: impl Read + Write, behave: &Behave, kept: &Mutex<Vec<Received>>) {
    let mut stream = BufReader::new(stream);
    let Some(received) = read(&mut stream) else { return };
    let nth = {
        let mut kept = kept.lock().expect("sound");
        kept.push(received.clone());
        kept.len() - 1
    };
    let reply = behave(&received, nth);
    let stream = stream.get_mut();
    let written = match reply {
        Reply::Answer(status, headers, body) => {
            let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
            let head = format!("HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\n\r\n", body.len());
            stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body))
        }
        Reply::Chunks(chunks) => chunked(stream, &chunks),
        Reply::Half(status) => {
            stream.write_all(format!("HTTP/1.1 {status} X\r\ncontent-length: 99\r\n\r\nhalf").as_bytes())
        }
        Reply::Hang => {
            let _ = stream.read(&mut [0]);
            Ok(())
        }
        Reply::Drop => Ok(()),
    };
    // A client that has gone is what some tests are about.
    let _ = written.and_then(|()| stream.flush());
}

fn chunked(stream: &mut impl Write, chunks: &[Vec<u8>]) -> std::io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n")?;
    for chunk in chunks {
        stream.write_all(format!("{:x}\r\n", chunk.len()).as_bytes())?;
        stream.write_all(chunk)?;
        stream.write_all(b"\r\n")?;
        stream.flush()?;
    }
    stream.write_all(b"0\r\n\r\n")
}

fn read(stream: &mut impl BufRead) -> Option<Received> {
    let mut line = || {
        let mut line = String::new();
        (stream.read_line(&mut line).ok()? > 0).then(|| line.trim_end().to_owned())
    };
    let first = line()?;
    let mut received = Received { line: first.trim_end_matches(" HTTP/1.1").to_owned(), ..Received::default() };
    loop {
        let line = line()?;
        let Some((name, value)) = line.split_once(": ") else { break };
        received.headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let length = received.header("content-length").parse().unwrap_or(0);
    received.body = vec![0; length];
    stream.read_exact(&mut received.body).ok()?;
    Some(received)
}

/// A certificate for 127.0.0.1 that is its own root, and a server's configuration with it.
pub fn certificate() -> (Vec<u8>, ServerConfig) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    let root = made.cert.der().clone();
    let key =
        tokio_rustls::rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("versions");
    let config = config.with_no_client_auth().with_single_cert(vec![root.clone()], key).expect("a configuration");
    (root.to_vec(), config)
}
