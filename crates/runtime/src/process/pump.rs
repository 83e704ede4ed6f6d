//! The holder's output: frames to the worker, and the threads that fill them from the tool.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use super::protocol::{CHUNK_BYTES, HEADER_BYTES, header};

/// The pipe to the worker. Clones write to the same pipe, a whole frame at a time.
#[derive(Clone)]
pub(super) struct Frames(Arc<Mutex<File>>);

impl Frames {
    /// Takes the process's standard output, past the line buffer of the standard library.
    pub(super) fn to_stdout() -> io::Result<Self> {
        let file = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        Ok(Frames(Arc::new(Mutex::new(file))))
    }

    pub(super) fn send(&self, kind: u8, content: &[u8]) -> io::Result<()> {
        self.write(&[&header(kind, content.len()), content].concat())
    }

    fn write(&self, frame: &[u8]) -> io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write_all(frame)
    }
}

/// One stream of the tool on its way to the worker.
///
/// It holds one chunk in memory. When the worker does not read, the tool has to wait.
pub(super) struct Pump {
    state: Arc<State>,
    finished: mpsc::Receiver<()>,
}

#[derive(Default)]
struct State {
    /// Bytes read from the tool so far.
    total: AtomicU64,
    /// Nothing is on its way to the worker: the thread waits for the tool.
    reading: AtomicBool,
}

/// How long a stream without any process of the tool may stay silent before it is given up.
const SILENCE: Duration = Duration::from_millis(500);

impl Pump {
    /// Sends what `from` gives as frames of `kind`, at most `limit` bytes, and reads and drops the
    /// rest.
    pub(super) fn start(from: impl Read + Send + 'static, kind: u8, limit: u64, frames: Frames) -> Self {
        let state = Arc::new(State::default());
        let (done, finished) = mpsc::channel();
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            shared.move_all(from, kind, limit, &frames);
            // Nobody waits any more when the receiver is gone.
            let _ = done.send(());
        });
        Pump { state, finished }
    }

    /// Waits for the end of the stream and returns its length in bytes.
    ///
    /// For when all processes of the tool are gone. The stream can then only be open because the
    /// tool handed it to a stranger (a daemon, over a socket), so silence is taken for the end.
    pub(super) fn finish(self) -> u64 {
        loop {
            let before = self.state.total.load(Ordering::SeqCst);
            match self.finished.recv_timeout(SILENCE) {
                Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    let silent = self.state.reading.load(Ordering::SeqCst);
                    if silent && self.state.total.load(Ordering::SeqCst) == before {
                        break;
                    }
                }
            }
        }
        self.state.total.load(Ordering::SeqCst)
    }
}

impl State {
    fn move_all(&self, mut from: impl Read, kind: u8, limit: u64, frames: &Frames) {
        let mut frame = vec![0; HEADER_BYTES + CHUNK_BYTES];
        let mut left = limit;
        loop {
            self.reading.store(true, Ordering::SeqCst);
            let count = match from.read(&mut frame[HEADER_BYTES..]) {
                Ok(0) => return,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return,
            };
            self.reading.store(false, Ordering::SeqCst);
            self.total.fetch_add(count as u64, Ordering::SeqCst);
            let kept = count.min(usize::try_from(left).unwrap_or(usize::MAX));
            left -= kept as u64;
            if kept > 0 {
                frame[..HEADER_BYTES].copy_from_slice(&header(kind, kept));
                // A worker that is gone reads nothing; the life line then ends the tool. Until it
                // does, go on emptying its pipe.
                let _ = frames.write(&frame[..HEADER_BYTES + kept]);
            }
        }
    }
}
