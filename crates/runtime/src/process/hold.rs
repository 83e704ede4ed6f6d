//! The holder: starts one tool, streams its output, and ends everything that came from it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitStatus};

use super::protocol::{END, ERR, End, GO, How, OUT, READY, STARTED, Spec, read_spec};
use super::pump::{Frames, Pump};
use super::{LEDGER, guard_memory, stub, tree};

/// The pause between two rounds of killing while the main process has not been reaped.
const ROUND_PAUSE: Duration = Duration::from_millis(10);

/// The main function of a process that was started with `__hold`.
///
/// Reads its spec from standard input and writes frames to standard output. Fails when a worker
/// went away before it had sent everything, or when the kernel refuses what a holder needs; then no
/// tool was started.
pub fn hold_main() -> ExitCode {
    match hold() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn hold() -> io::Result<()> {
    // Out of the worker's session: what a terminal sends to the worker's group must not end the
    // holder first. Fails only for a process that leads a group already, when someone started it by
    // hand.
    let _ = rustix::process::setsid();
    tree::adopt_orphans()?;
    let (spec, input) = read_spec(&mut io::stdin().lock())?;
    let frames = Frames::to_stdout()?;
    // Kept until this process ends. Closed by `exec`, so the tool does not carry it on.
    let _lock = match take_lock(&spec) {
        Ok(lock) => lock,
        Err(message) => return send_end(&frames, &not_started(message)),
    };
    frames.send(READY, &[])?;
    let mut go = [0];
    io::stdin().lock().read_exact(&mut go)?;
    if go != [GO] {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let end = run(&spec, input, &frames)?;
    write_ledger(&spec, &end)?;
    send_end(&frames, &end)
}

/// For tests: what ended well is written down by someone who is not the worker, before the worker can know it.
fn write_ledger(spec: &Spec, end: &End) -> io::Result<()> {
    let of = |name: &str| spec.env.get(name).filter(|value| !value.is_empty());
    let is_lookup = spec.env.contains_key("LODESTEP_LOOKUP");
    let (Some(path), Some(tool), Some(key)) =
        (std::env::var_os(LEDGER), of("LODESTEP_TOOL"), of("LODESTEP_IDEMPOTENCY_KEY"))
    else {
        return Ok(());
    };
    if is_lookup || !matches!(end.how, How::Exited(0)) {
        return Ok(());
    }
    let mut file = File::options().append(true).create(true).open(path)?;
    file.write_all(format!("{tool} {key}\n").as_bytes())
}

fn take_lock(spec: &Spec) -> Result<Option<File>, String> {
    let Some(path) = &spec.lock_file else {
        return Ok(None);
    };
    let open = File::options().read(true).write(true).create(true).truncate(false).open(path);
    // Waits only while another worker looks, which takes it exclusively for a moment.
    open.and_then(|file| file.lock_shared().map(|()| Some(file)))
        .map_err(|error| format!("lock file {}: {error}", path.display()))
}

fn run(spec: &Spec, input: Vec<u8>, frames: &Frames) -> io::Result<End> {
    let line = LifeLine::watch();
    let spawned = stub::spawn(spec);
    let tool = match spawned {
        Ok(tool) => tool,
        Err(message) => {
            // A failed stub is a child that has ended.
            while tree::wait_for_any()?.is_some() {}
            return Ok(not_started(message));
        }
    };
    line.attach(tool.main);
    // From here on nobody has to open this process's files any more, and it knows the tool's secrets.
    guard_memory();
    // Fails when the worker is gone; then the life line is closed as well.
    let _ = frames.send(STARTED, &[]);
    let mut stdin = tool.stdin;
    // Ends with an error when the tool does not read it all, which is the tool's right.
    thread::spawn(move || stdin.write_all(&input));
    let out = Pump::start(tool.stdout, OUT, spec.stdout_limit, frames.clone());
    let err = Pump::start(tool.stderr, ERR, spec.stderr_limit, frames.clone());
    let how = wait_for(tool.main, &line);
    tree::end_everyone(tool.main);
    Ok(End { how: how?, stdout_bytes: out.finish(), stderr_bytes: err.finish() })
}

/// Waits for the main process, reaping orphans that it left on the way.
fn wait_for(main: Pid, line: &LifeLine) -> io::Result<How> {
    while let Some((pid, status)) = tree::wait_for_any()? {
        if pid == main {
            let how = judge(status, line.is_closed());
            line.main_is_gone();
            return Ok(how);
        }
    }
    Err(io::Error::other("the tool's main process was reaped by someone else"))
}

/// A tool that ended by itself has the result it has, even when it was to be killed a moment later.
fn judge(status: WaitStatus, stopping: bool) -> How {
    let killed = status.terminating_signal() == Some(Signal::KILL.as_raw());
    match (status.exit_status(), status.terminating_signal()) {
        _ if killed && stopping => How::Killed,
        (Some(code), _) => How::Exited(code),
        (None, signal) => How::Signalled(signal.unwrap_or_default()),
    }
}

fn not_started(message: String) -> End {
    End { how: How::NotStarted(message), ..End::default() }
}

fn send_end(frames: &Frames, end: &End) -> io::Result<()> {
    frames.send(END, &serde_json::to_vec(end)?)
}

/// The pipe from the worker, watched by a thread that kills the tool when it closes.
struct LifeLine(Arc<LifeLineState>);

#[derive(Default)]
struct LifeLineState {
    closed: AtomicBool,
    main_gone: AtomicBool,
    main: std::sync::OnceLock<Pid>,
}

impl LifeLine {
    fn watch() -> Self {
        let state = Arc::new(LifeLineState::default());
        let shared = Arc::clone(&state);
        thread::spawn(move || shared.kill_when_closed());
        LifeLine(state)
    }

    /// Tells whom to kill. On Linux whoever is there is found without it.
    fn attach(&self, main: Pid) {
        let _ = self.0.main.set(main);
    }

    fn is_closed(&self) -> bool {
        self.0.closed.load(Ordering::SeqCst)
    }

    /// From now on the main thread does the killing.
    fn main_is_gone(&self) {
        self.0.main_gone.store(true, Ordering::SeqCst);
    }
}

impl LifeLineState {
    fn kill_when_closed(&self) {
        // Nothing comes after `go`; whatever does is dropped. An error is an end as well.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        // Before the first kill, so that its victim is known as the holder's.
        self.closed.store(true, Ordering::SeqCst);
        while !self.main_gone.load(Ordering::SeqCst) {
            let main = self.main.get().copied();
            // On Linux a stub that has not become the tool yet is found as well, by its parent.
            if let Some(main) = main.or(cfg!(target_os = "linux").then(rustix::process::getpid)) {
                tree::kill_everyone(main);
            }
            thread::sleep(ROUND_PAUSE);
        }
    }
}
