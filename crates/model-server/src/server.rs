//! The server: a listener on loopback and what it knows.

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::{AbortHandle, JoinSet};

use crate::bill::{Bill, Entry};
use crate::cache::Cache;
use crate::dialect::Shape;
use crate::options::Options;
use crate::plan::Fault;
use crate::service;
use crate::wire::{Fate, Wire};

/// A running server. When it is dropped it stops, and every connection with it.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    running: Running,
}

enum Running {
    Task(AbortHandle),
    Thread(Option<(oneshot::Sender<()>, JoinHandle<()>)>),
}

impl Server {
    /// Starts a server on a free port of loopback, on the runtime that this is called in. After `Ok` it takes connections.
    ///
    /// # Errors
    ///
    /// The system's, if there is no port.
    ///
    /// # Panics
    ///
    /// Outside of a runtime, as tokio does.
    pub fn start(options: Options) -> io::Result<Self> {
        let (address, listener) = bind()?;
        let shared = Arc::new(Shared::new(options));
        let task = tokio::spawn(serve(TcpListener::from_std(listener)?, Arc::clone(&shared)));
        Ok(Self { address, shared, running: Running::Task(task.abort_handle()) })
    }

    /// As [`start`](Self::start), on a runtime and a thread of its own: for a test that waits for another program.
    ///
    /// # Errors
    ///
    /// The system's, if there is no port or no thread.
    pub fn on_thread(options: Options) -> io::Result<Self> {
        let (address, listener) = bind()?;
        let shared = Arc::new(Shared::new(options));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let served = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("model-server".into()).spawn(move || {
            runtime.block_on(async {
                let Ok(listener) = TcpListener::from_std(listener) else { return };
                tokio::select! {
                    () = serve(listener, served) => {}
                    _ = stopped => {}
                }
            });
        })?;
        Ok(Self { address, shared, running: Running::Thread(Some((stop, thread))) })
    }

    /// Where the shape is found, as its clients write it: `http://127.0.0.1:PORT`, for OpenAI with `/v1` behind it.
    pub fn base_url(&self, shape: Shape) -> String {
        match shape {
            Shape::Anthropic => format!("http://{}", self.address),
            Shape::OpenAi => format!("http://{}/v1", self.address),
        }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Faults for the next requests that are well formed, one each in this order, behind those that are planned already.
    pub fn plan(&self, faults: impl IntoIterator<Item = Fault>) {
        self.shared.book().plan.extend(faults);
    }

    /// How many planned faults no request has taken yet.
    pub fn faults_left(&self) -> usize {
        self.shared.book().plan.len()
    }

    /// The bill up to now.
    pub fn bill(&self) -> Bill {
        self.shared.book().bill.clone()
    }

    /// Waits until the bill is as the test wants it. It never ends if it never is.
    pub async fn billed(&self, is_reached: impl Fn(&Bill) -> bool) {
        let mut changes = self.shared.changes.subscribe();
        while !is_reached(&self.shared.book().bill) {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// As [`billed`](Self::billed), for a test without a runtime.
    ///
    /// # Errors
    ///
    /// The system's, if there is no runtime to wait in.
    pub fn wait_billed(&self, is_reached: impl Fn(&Bill) -> bool) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        runtime.block_on(self.billed(is_reached));
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        match &mut self.running {
            Running::Task(task) => task.abort(),
            Running::Thread(thread) => {
                if let Some((stop, thread)) = thread.take() {
                    // It may have ended already, and a panic there was printed there.
                    let _ = stop.send(());
                    let _ = thread.join();
                }
            }
        }
    }
}

fn bind() -> io::Result<(SocketAddr, std::net::TcpListener)> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    Ok((listener.local_addr()?, listener))
}

/// Takes connections until it is dropped; they end with it.
async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Ok((stream, _)) = listener.accept() => {
                connections.spawn(converse(stream, Arc::clone(&shared)));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// One connection, of as many requests as its client likes.
async fn converse(stream: TcpStream, shared: Arc<Shared>) {
    // Else what is written in small pieces would wait for the reader's acknowledgement.
    let _ = stream.set_nodelay(true);
    let fate = Arc::new(Fate::default());
    let wire = TokioIo::new(Wire::new(stream, Arc::clone(&fate)));
    let serve = service_fn(move |request| service::serve(request, Arc::clone(&shared), Arc::clone(&fate)));
    // A connection that is broken off as planned, or by its client, ends in an error.
    let _ = http1::Builder::new().serve_connection(wire, serve).await;
}

/// What all connections share.
pub(crate) struct Shared {
    pub options: Options,
    book: Mutex<Book>,
    changes: watch::Sender<()>,
}

/// What changes from request to request.
#[derive(Default)]
pub(crate) struct Book {
    pub bill: Bill,
    pub plan: VecDeque<Fault>,
    pub cache: Cache,
    /// The ids of the calls of the last answer that had any.
    pub last_ids: Vec<String>,
}

impl Shared {
    fn new(options: Options) -> Self {
        Self { options, book: Mutex::default(), changes: watch::Sender::new(()) }
    }

    pub fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins an entry of the bill and gives its number.
    pub fn begin(&self, entry: Entry) -> usize {
        let number = {
            let entries = &mut self.book().bill.entries;
            entries.push(entry);
            entries.len() - 1
        };
        self.changes.send_replace(());
        number
    }

    /// Changes an entry of the bill.
    pub fn note(&self, number: usize, change: impl FnOnce(&mut Entry)) {
        if let Some(entry) = self.book().bill.entries.get_mut(number) {
            change(entry);
        }
        self.changes.send_replace(());
    }
}
