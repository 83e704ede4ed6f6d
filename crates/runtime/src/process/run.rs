//! The worker's side: one conversation with a holder of its own for each tool call.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::time::{Instant, sleep, timeout_at};

use super::cage::Cage;
use super::command::{Command, Ended, Output, clean_environment};
use super::protocol::{END, ERR, End, FrameReader, GO, How, OUT, READY, STARTED, encode_spec};
use super::{EXEC_ARGUMENT, HOLD_ARGUMENT, LEDGER};

/// How long a holder gets to end everyone after its life line was closed.
const END_LIMIT: Duration = Duration::from_secs(5);

/// Runs tools under holders that are this binary started again.
#[derive(Debug, Clone)]
pub struct Holder {
    exe: PathBuf,
}

impl Holder {
    /// Uses `exe`, whose `main` has to begin with [`hidden_main`](super::hidden_main).
    pub fn new(exe: PathBuf) -> Self {
        Holder { exe }
    }

    /// Uses the binary that is running.
    ///
    /// On Linux that is the very file that was started, even when an upgrade has replaced it since.
    ///
    /// # Errors
    ///
    /// The system does not tell where the binary is.
    pub fn of_this_binary() -> io::Result<Self> {
        let exact = PathBuf::from("/proc/self/exe");
        if exact.exists() { Ok(Holder::new(exact)) } else { std::env::current_exe().map(Holder::new) }
    }

    /// Runs one command to its end, or until `stop` is ready, or until its time is up.
    ///
    /// When this returns anything but [`Ended::HolderLost`], no process of the tool is alive and
    /// its holder has been reaped. A tool that leaves a process behind has that process ended.
    /// Waits at most 5 seconds after a stop or a timeout. Dropping the future ends everything as
    /// well, within moments, unobserved.
    pub async fn run(&self, command: Command, stop: impl Future<Output = ()>) -> Output {
        let spec = match encode_spec(&command) {
            Ok(spec) => spec,
            Err(message) => return Output::without_text(Ended::NotStarted(message)),
        };
        let (mut child, mut talk) = match self.start() {
            Ok(started) => started,
            Err(error) => {
                let message = format!("holder {}: {error}", self.exe.display());
                return Output::without_text(Ended::NotStarted(message));
            }
        };
        let cut = tokio::select! {
            biased;
            () = stop => Some(Ended::Stopped),
            () = sleep(command.timeout) => Some(Ended::TimedOut),
            () = talk.whole(&spec, &command.stdin) => None,
        };
        talk.life_line = None;
        let deadline = Instant::now() + END_LIMIT;
        // Both are bounded: a holder that does not go is reaped by the runtime when it does.
        let _ = timeout_at(deadline, talk.rest()).await;
        let _ = timeout_at(deadline, child.wait()).await;
        talk.conclude(cut, &command)
    }

    /// Why a tool in this folder can't be kept in this cage here; `None` when it can.
    pub async fn cage_fault(&self, cage: Cage, folder: &Path) -> Option<String> {
        let exe = std::path::absolute(&self.exe).unwrap_or_else(|_| self.exe.clone());
        let probe = Command {
            // The stub again, which without arguments ends at once: a program that is there for certain.
            argv: vec![exe.to_string_lossy().into_owned(), EXEC_ARGUMENT.to_owned()],
            cwd: folder.to_owned(),
            env: clean_environment(),
            stdin: Vec::new(),
            timeout: END_LIMIT,
            stdout_limit: 0,
            stderr_limit: 0,
            lock_file: None,
            cage,
        };
        match self.run(probe, std::future::pending()).await.ended {
            Ended::Exited(_) => None,
            Ended::NotStarted(why) => Some(why),
            other => Some(format!("a trial of it ended otherwise than it should: {other:?}")),
        }
    }

    fn start(&self) -> io::Result<(Child, Talk)> {
        let mut command = tokio::process::Command::new(std::path::absolute(&self.exe)?);
        // It gets nothing of the worker's: no environment, and no folder that it would keep busy.
        command.arg(HOLD_ARGUMENT).env_clear().current_dir("/");
        if let Some(ledger) = std::env::var_os(LEDGER) {
            command.env(LEDGER, ledger);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let (Some(life_line), Some(frames)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("started without pipes"));
        };
        Ok((child, Talk::new(life_line, frames)))
    }
}

/// A conversation so far. Each step can be dropped half-way and [`Talk::rest`] goes on from there.
struct Talk {
    /// `None` once closed, which is the order to stop.
    life_line: Option<ChildStdin>,
    frames: FrameReader<ChildStdout>,
    /// The tool may have been started. Set before `go` is written.
    gone: bool,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    /// What the conversation ended with: the last frame, or why there is none.
    end: Option<Result<End, String>>,
}

impl Talk {
    fn new(life_line: ChildStdin, frames: ChildStdout) -> Self {
        let frames = FrameReader::new(frames);
        Talk { life_line: Some(life_line), frames, gone: false, stdout: Vec::new(), stderr: Vec::new(), end: None }
    }

    async fn whole(&mut self, spec: &[u8], stdin: &[u8]) {
        // A holder that does not read has ended; its frames tell more than the broken pipe.
        if self.say(spec).await.is_ok() && self.say(stdin).await.is_ok() {
            self.rest().await;
        }
    }

    async fn say(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.life_line {
            Some(pipe) => pipe.write_all(bytes).await,
            None => Ok(()),
        }
    }

    /// Takes frames until the conversation has ended.
    async fn rest(&mut self) {
        while self.end.is_none() {
            let frame = match self.frames.next().await {
                Ok(Some(frame)) => frame,
                Ok(None) => {
                    return self.end = Some(Err("the holder ended without a last word".into()));
                }
                Err(error) => {
                    return self.end = Some(Err(format!("the holder cannot be read: {error}")));
                }
            };
            match frame.kind {
                READY if self.life_line.is_some() => {
                    self.gone = true;
                    let _ = self.say(&[GO]).await;
                }
                READY | STARTED => {}
                OUT => self.stdout.extend(frame.content),
                ERR => self.stderr.extend(frame.content),
                END => self.end = Some(serde_json::from_slice(&frame.content).map_err(|error| error.to_string())),
                other => self.end = Some(Err(format!("the holder sent a frame of type {other}"))),
            }
        }
    }

    fn conclude(self, cut: Option<Ended>, command: &Command) -> Output {
        let (end, lost) = match self.end {
            Some(Ok(end)) => (Some(end), String::new()),
            Some(Err(message)) => (None, message),
            None => (None, format!("the holder did not confirm the end within {} s", END_LIMIT.as_secs())),
        };
        let truncated = |kept: &[u8], all: u64, limit: u64| (all > limit).then_some(all.max(kept.len() as u64));
        let (stdout_bytes, stderr_bytes) = end.as_ref().map_or((0, 0), |end| (end.stdout_bytes, end.stderr_bytes));
        let ended = match end.map(|end| end.how) {
            Some(How::Exited(code)) => Ended::Exited(code),
            Some(How::Signalled(signal)) => Ended::Signalled(signal),
            Some(How::Killed) => cut.unwrap_or_else(|| Ended::HolderLost("the life line was lost".into())),
            Some(How::NotStarted(message)) => Ended::NotStarted(message),
            // Without a `go` a holder starts nothing.
            None if !self.gone => Ended::NotStarted(match cut {
                Some(_) => "ended before the program was started".into(),
                None => lost,
            }),
            None => Ended::HolderLost(lost),
        };
        Output {
            stdout_truncated: truncated(&self.stdout, stdout_bytes, command.stdout_limit),
            stderr_truncated: truncated(&self.stderr, stderr_bytes, command.stderr_limit),
            stdout: self.stdout,
            stderr: self.stderr,
            ended,
        }
    }
}
