//! A connection that can be told to end in a reset.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// How a connection is to end.
#[derive(Default)]
pub(crate) struct Fate {
    reset: AtomicBool,
}

impl Fate {
    /// When the connection ends, it is reset: what its reader has not read yet may be lost.
    pub fn reset(&self) {
        self.reset.store(true, Ordering::Relaxed);
    }
}

/// A TCP stream with its fate.
pub(crate) struct Wire {
    stream: TcpStream,
    fate: Arc<Fate>,
}

impl Wire {
    pub fn new(stream: TcpStream, fate: Arc<Fate>) -> Self {
        Self { stream, fate }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        if self.fate.reset.load(Ordering::Relaxed) {
            // If it fails the connection is closed instead, and the test that wanted a reset sees that.
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, to)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.fate.reset.load(Ordering::Relaxed) {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
