//! Where a place's variables come from: a file, or what a command prints.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

use tokio::runtime::{Handle, RuntimeFlavor};

/// A longer value is no variable: 64 KiB.
const VALUE_BYTES: u64 = 64 << 10;

/// What a command printed is used for so long before it is run again.
const KEPT: Duration = Duration::from_secs(300);

/// Where the value of a variable comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whence {
    /// The text of a file, read whenever it is needed.
    File(PathBuf),
    /// What a command prints.
    Command {
        /// The program and its arguments.
        argv: Vec<String>,
        /// The folder that it runs in.
        folder: PathBuf,
        /// It is ended after so long, in milliseconds.
        timeout_ms: u64,
    },
}

/// Variables with what their commands printed last.
pub(super) struct Sources(BTreeMap<String, (Whence, Mutex<Option<Printed>>)>);

struct Printed {
    value: String,
    at: Instant,
}

impl Sources {
    /// Nothing is read yet.
    pub fn new(whence: BTreeMap<String, Whence>) -> Self {
        Self(whence.into_iter().map(|(name, whence)| (name, (whence, Mutex::default()))).collect())
    }

    /// The value of a variable; `None` when nothing is said of it. What a command printed is used for five minutes.
    ///
    /// # Errors
    ///
    /// Says why there is no value. It is tried again the next time.
    pub fn read(&self, name: &str) -> Option<Result<Option<String>, String>> {
        let (whence, printed) = self.0.get(name)?;
        let value = match whence {
            Whence::File(path) => file(path),
            Whence::Command { argv, folder, timeout_ms } => {
                let run = || printed_by(argv, folder, Duration::from_millis(*timeout_ms));
                aside(|| kept(lock(printed), run))
            }
        };
        Some(value.map(Some))
    }
}

fn kept(
    mut printed: MutexGuard<'_, Option<Printed>>,
    run: impl FnOnce() -> Result<String, String>,
) -> Result<String, String> {
    if let Some(printed) = printed.as_ref().filter(|printed| printed.at.elapsed() < KEPT) {
        return Ok(printed.value.clone());
    }
    let value = run()?;
    *printed = Some(Printed { value: value.clone(), at: Instant::now() });
    Ok(value)
}

/// A command takes its time: what else this thread has to do is done by others meanwhile, where there are others.
fn aside<T>(slow: impl FnOnce() -> T) -> T {
    let others = Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread);
    if others { tokio::task::block_in_place(slow) } else { slow() }
}

fn file(path: &Path) -> Result<String, String> {
    let read = || {
        let mut bytes = Vec::new();
        std::fs::File::open(path)?.take(VALUE_BYTES + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().map_err(|error: std::io::Error| format!("{} can't be read: {error}", path.display()))?;
    text(bytes).map_err(|what| format!("{} {what}", path.display()))
}

/// One line end at the end is no part of a value: editors and programs write it.
fn text(bytes: Vec<u8>) -> Result<String, &'static str> {
    if bytes.len() as u64 > VALUE_BYTES {
        return Err("gives more than 64 KiB");
    }
    let text = String::from_utf8(bytes).map_err(|_| "gives what is not UTF-8")?;
    let text = text.strip_suffix('\n').map_or(text.as_str(), |text| text.strip_suffix('\r').unwrap_or(text));
    if text.contains('\0') {
        return Err("gives a NUL character, which no variable can hold");
    }
    if text.is_empty() { Err("gives nothing") } else { Ok(text.to_owned()) }
}

/// Runs a command of the operator to its end, in the operator's environment; what it says of a fault goes to stderr.
fn printed_by(argv: &[String], folder: &Path, timeout: Duration) -> Result<String, String> {
    let (program, arguments) = argv.split_first().ok_or("no program is named")?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.spawn().map_err(|error| format!("{program} can't be started: {error}"))?;
    let (pid, stdout) = (child.id(), child.stdout.take());
    let (send, ended) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = stdout.map_or(Ok(0), |stdout| stdout.take(VALUE_BYTES + 1).read_to_end(&mut bytes));
        let status = child.wait();
        // Nobody listens any more when the time is over.
        let _ = send.send(read.and(status).map(|status| (bytes, status)));
    });
    let Ok(ended) = ended.recv_timeout(timeout) else {
        end_group(pid);
        return Err(format!("{program} did not end within {timeout:?} and was ended"));
    };
    let (bytes, status) = ended.map_err(|error| format!("{program}: {error}"))?;
    if !status.success() {
        return Err(format!("{program} ended with {status}"));
    }
    text(bytes).map_err(|what| format!("{program} {what}"))
}

/// Ends a command with all that it started in its group.
#[cfg(unix)]
fn end_group(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    }
}

#[cfg(not(unix))]
fn end_group(_pid: u32) {}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
