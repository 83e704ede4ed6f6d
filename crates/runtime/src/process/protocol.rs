//! What goes over the two pipes between a worker and its holder.
//!
//! Both ends are the same binary, so there is no version in it.
//!
//! - worker → holder: u32 length, JSON [`Spec`], the tool's standard input as raw bytes, later one
//!   [`GO`] byte. After that nothing; the pipe stays open as the life line.
//! - holder → worker: frames of a type byte, u32 length and that many bytes. Lengths are
//!   little-endian.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::cage::Cage;
use super::command::Command;

/// The holder has its lock and waits for [`GO`]. No content.
pub(super) const READY: u8 = b'r';
/// The program runs. No content.
pub(super) const STARTED: u8 = b's';
/// A piece of standard output.
pub(super) const OUT: u8 = b'o';
/// A piece of standard error.
pub(super) const ERR: u8 = b'e';
/// The last frame: JSON [`End`].
pub(super) const END: u8 = b'x';
/// The worker lives and wants the tool started.
pub(super) const GO: u8 = b'g';

/// Type byte and length.
pub(super) const HEADER_BYTES: usize = 5;
/// What one read from the tool takes at most; with the header it is a frame.
pub(super) const CHUNK_BYTES: usize = 32 * 1024;
/// A longer frame can only be a broken stream. Leaves room for the message in an [`End`].
const FRAME_LIMIT_BYTES: usize = 4 * CHUNK_BYTES;
/// Above what a kernel takes as arguments and environment (usually 2 MiB), even when escaped in
/// JSON.
const SPEC_LIMIT_BYTES: usize = 32 * 1024 * 1024;

/// What a holder has to start. The standard input follows it as raw bytes.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Spec {
    pub argv: Vec<String>,
    pub cwd: PathBuf,
    pub env: BTreeMap<String, String>,
    pub stdin_bytes: u64,
    pub stdout_limit: u64,
    pub stderr_limit: u64,
    pub lock_file: Option<PathBuf>,
    pub cage: Cage,
}

/// How the tool ended, and how much it printed in all.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct End {
    pub how: How,
    pub stdout_bytes: u64,
    pub stderr_bytes: u64,
}

/// How the tool's main process ended, as its holder saw it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum How {
    Exited(i32),
    Signalled(i32),
    /// Killed by the holder because the life line closed.
    Killed,
    NotStarted(String),
}

impl Default for How {
    fn default() -> Self {
        How::NotStarted(String::new())
    }
}

/// The bytes that open a conversation, up to the tool's standard input.
///
/// # Errors
///
/// Text on what makes the command impossible to start.
pub(super) fn encode_spec(command: &Command) -> Result<Vec<u8>, String> {
    if command.argv.is_empty() {
        return Err("the command is empty: name a program".into());
    }
    if let Some(key) = command.env.keys().find(|key| key.is_empty() || key.contains(['=', '\0'])) {
        return Err(format!("the environment has a variable named {key:?}, which no program can get"));
    }
    // The holder works in `/`, so a relative name would be another file there.
    let lock_file = command.lock_file.as_ref().map(std::path::absolute).transpose();
    let spec = Spec {
        argv: command.argv.clone(),
        cwd: std::path::absolute(&command.cwd).map_err(|error| format!("folder {:?}: {error}", command.cwd))?,
        env: command.env.clone(),
        stdin_bytes: command.stdin.len() as u64,
        stdout_limit: command.stdout_limit,
        stderr_limit: command.stderr_limit,
        lock_file: lock_file.map_err(|error| format!("lock file: {error}"))?,
        cage: command.cage.clone(),
    };
    let json = serde_json::to_vec(&spec).map_err(|error| format!("the command cannot be passed on: {error}"))?;
    if json.len() > SPEC_LIMIT_BYTES {
        return Err(format!("arguments and environment take {} bytes: pass them on standard input", json.len()));
    }
    let mut bytes = (json.len() as u32).to_le_bytes().to_vec();
    bytes.extend(json);
    Ok(bytes)
}

/// Reads what [`encode_spec`] wrote, and the standard input after it.
///
/// # Errors
///
/// Whatever the pipe gives, `UnexpectedEof` when the worker went away in the middle.
pub(super) fn read_spec(from: &mut impl Read) -> io::Result<(Spec, Vec<u8>)> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > SPEC_LIMIT_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a spec of {length} bytes")));
    }
    let mut json = vec![0; length];
    from.read_exact(&mut json)?;
    let spec: Spec = serde_json::from_slice(&json)?;
    let mut stdin = Vec::new();
    from.take(spec.stdin_bytes).read_to_end(&mut stdin)?;
    if stdin.len() as u64 != spec.stdin_bytes {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok((spec, stdin))
}

/// The header of a frame of `length` bytes.
pub(super) fn header(kind: u8, length: usize) -> [u8; HEADER_BYTES] {
    let [a, b, c, d] = (length as u32).to_le_bytes();
    [kind, a, b, c, d]
}

/// One frame, as it came.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub kind: u8,
    pub content: Vec<u8>,
}

/// Takes frames off an asynchronous stream.
///
/// What was read so far is kept in here, so a `next` that is dropped half-way loses nothing.
pub(super) struct FrameReader<R> {
    from: R,
    pending: Vec<u8>,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    pub(super) fn new(from: R) -> Self {
        FrameReader { from, pending: Vec::with_capacity(2 * CHUNK_BYTES) }
    }

    /// The next frame, or `None` at the end of the stream, also when that cut a frame short.
    pub(super) async fn next(&mut self) -> io::Result<Option<Frame>> {
        loop {
            if let Some(frame) = self.take()? {
                return Ok(Some(frame));
            }
            if self.from.read_buf(&mut self.pending).await? == 0 {
                return Ok(None);
            }
        }
    }

    fn take(&mut self) -> io::Result<Option<Frame>> {
        let Some((&[kind, a, b, c, d], rest)) = self.pending.split_first_chunk::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        if length > FRAME_LIMIT_BYTES {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a frame of {length} bytes")));
        }
        let Some(content) = rest.get(..length) else {
            return Ok(None);
        };
        let content = content.to_vec();
        self.pending.drain(..HEADER_BYTES + length);
        Ok(Some(Frame { kind, content }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_survive_any_split() {
        let mut bytes = header(OUT, 3).to_vec();
        bytes.extend(b"abc");
        bytes.extend(header(READY, 0));
        for split in 0..=bytes.len() {
            let mut reader = FrameReader { from: tokio::io::empty(), pending: bytes[..split].to_vec() };
            let mut frames: Vec<Frame> = std::iter::from_fn(|| reader.take().unwrap()).collect();
            reader.pending.extend(&bytes[split..]);
            frames.extend(std::iter::from_fn(|| reader.take().unwrap()));
            let expected = [Frame { kind: OUT, content: b"abc".to_vec() }, Frame { kind: READY, content: vec![] }];
            assert_eq!(frames, expected, "split at {split}");
        }
    }

    #[test]
    fn a_frame_that_cannot_be_is_an_error() {
        let mut reader = FrameReader { from: tokio::io::empty(), pending: header(OUT, FRAME_LIMIT_BYTES + 1).to_vec() };
        assert!(reader.take().is_err());
    }

    #[test]
    fn a_spec_cut_anywhere_is_an_error() {
        let command = Command {
            argv: vec!["cat".into()],
            cwd: "/".into(),
            env: BTreeMap::new(),
            stdin: b"in".to_vec(),
            timeout: std::time::Duration::ZERO,
            stdout_limit: 1,
            stderr_limit: 2,
            lock_file: None,
            cage: Cage::default(),
        };
        let mut bytes = encode_spec(&command).unwrap();
        bytes.extend(b"in");
        let (spec, stdin) = read_spec(&mut bytes.as_slice()).unwrap();
        assert_eq!((spec.argv, stdin), (command.argv, b"in".to_vec()));
        for cut in 0..bytes.len() {
            assert!(read_spec(&mut &bytes[..cut]).is_err(), "cut at {cut}");
        }
    }
}
