//! Fault points: named places at which a process can be told to abort, or to stand still, in the shipped binary.
//!
//! The environment variable [`CRASH_AT`] arms one: `TOOL:POINT` (the first time), `TOOL:POINT:K` (the k-th) or
//! `#N` (the n-th point of all). [`STOP_AT`] does the same for a process that is to be suspended there. [`TRACE`] names a file that gets a line for each point that is passed. They are read once.

use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// The variable that arms a point.
pub const CRASH_AT: &str = "LODESTEP_CRASH_AT";

/// The variable that arms a point at which the process stops as by SIGSTOP, until somebody lets it go on by SIGCONT.
pub const STOP_AT: &str = "LODESTEP_STOP_AT";

/// The variable that names the trace file.
pub const TRACE: &str = "LODESTEP_FAULT_TRACE";

/// Where a process can be told to abort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// The run is accepted, nothing else has happened.
    Accepted,
    /// The model's reply was received and is not stored.
    Reply,
    /// The intent is stored and nothing was sent.
    Intent,
    /// The effect was applied and its outcome is not stored.
    Applied,
    /// The outcome is stored and nothing was drawn from it.
    Outcome,
    /// A transition was committed.
    Checkpoint,
}

impl Point {
    /// Every point.
    pub const ALL: [Self; 6] =
        [Self::Accepted, Self::Reply, Self::Intent, Self::Applied, Self::Outcome, Self::Checkpoint];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Reply => "reply",
            Self::Intent => "intent",
            Self::Applied => "applied",
            Self::Outcome => "outcome",
            Self::Checkpoint => "checkpoint",
        }
    }
}

/// Which point is armed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Armed {
    Nth(u64),
    Named { tool: String, point: Point, nth: u64 },
}

/// A point, and how often it was passed.
struct Trap {
    armed: Armed,
    matched: AtomicU64,
}

struct Faults {
    crash: Option<Trap>,
    stop: Option<Trap>,
    passed: AtomicU64,
    trace: Option<std::fs::File>,
}

/// In this time a signal has reached its process.
const STOPS_WITHIN: Duration = Duration::from_millis(100);

static FAULTS: OnceLock<Option<Faults>> = OnceLock::new();

/// Passes a fault point; aborts the process when it is the armed one. `tool` is the tool's name, `model` for the
/// model's calls, `run` for the run as a whole.
pub fn reach(tool: &str, point: Point) {
    let Some(faults) = FAULTS.get_or_init(from_environment) else {
        return;
    };
    let nth = faults.passed.fetch_add(1, Ordering::SeqCst) + 1;
    if let Some(mut file) = faults.trace.as_ref() {
        // The trace is evidence for a test harness; a full disk must not change what is tested.
        let _ = writeln!(file, "{nth} {tool}:{}", point.as_str());
    }
    let is_hit = |trap: &Option<Trap>| trap.as_ref().is_some_and(|trap| trap.is_hit(nth, tool, point));
    if is_hit(&faults.stop) {
        stand_still();
    }
    if is_hit(&faults.crash) {
        abort(&format!("{tool}:{}", point.as_str()));
    }
}

impl Trap {
    fn of(variable: &str) -> Option<Self> {
        let armed = std::env::var(variable).ok().and_then(|text| parse(&text).ok())?;
        Some(Self { armed, matched: AtomicU64::new(0) })
    }

    fn is_hit(&self, nth_of_all: u64, tool: &str, point: Point) -> bool {
        match &self.armed {
            Armed::Nth(wanted) => nth_of_all == *wanted,
            Armed::Named { tool: wanted, point: at, nth } if wanted == tool && *at == point => {
                self.matched.fetch_add(1, Ordering::SeqCst) + 1 == *nth
            }
            Armed::Named { .. } => false,
        }
    }
}

/// Stops the process with all its threads, as a suspended machine or a debugger does.
fn stand_still() {
    use rustix::process::{Signal, getpid, kill_process};
    if kill_process(getpid(), Signal::STOP).is_ok() {
        // Another thread may be the one that takes the signal: this one must not go on before it has.
        std::thread::sleep(STOPS_WITHIN);
    }
}

static GOES_ON: Mutex<Option<String>> = Mutex::new(None);

/// From now on an abort at a fault point says that this command goes on.
pub fn goes_on_with(command: String) {
    *GOES_ON.lock().unwrap_or_else(PoisonError::into_inner) = Some(command);
}

/// One line that says why, as an abort itself says nothing of what to do next.
fn abort(at: &str) -> ! {
    let next = match &*GOES_ON.lock().unwrap_or_else(PoisonError::into_inner) {
        Some(command) => format!("go on with `{command}`"),
        None => "start the program again to go on".to_owned(),
    };
    // Whoever closed stderr does not want to know.
    let _ = writeln!(std::io::stderr(), "crashed at {at}, as it was told to; {next}");
    std::process::abort()
}

fn from_environment() -> Option<Faults> {
    let (crash, stop) = (Trap::of(CRASH_AT), Trap::of(STOP_AT));
    let trace =
        std::env::var_os(TRACE).and_then(|path| std::fs::OpenOptions::new().create(true).append(true).open(path).ok());
    if crash.is_none() && stop.is_none() && trace.is_none() {
        return None;
    }
    Some(Faults { crash, stop, passed: AtomicU64::new(0), trace })
}

/// Reads what arms a point.
///
/// # Errors
///
/// Says what it has to look like.
pub(crate) fn parse(text: &str) -> Result<Armed, String> {
    let points = Point::ALL.map(Point::as_str).join(", ");
    let fault = || format!("`{text}` is no fault point; write TOOL:POINT, with POINT one of {points}");
    if let Some(number) = text.strip_prefix('#') {
        return number.parse().map(Armed::Nth).map_err(|_| fault());
    }
    let mut parts = text.split(':');
    let (Some(tool), Some(point), nth, None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
        return Err(fault());
    };
    let point = Point::ALL.into_iter().find(|known| known.as_str() == point).filter(|_| !tool.is_empty());
    let nth = nth.map_or(Some(1), |nth| nth.parse().ok().filter(|nth| *nth > 0));
    match (point, nth) {
        (Some(point), Some(nth)) => Ok(Armed::Named { tool: tool.to_owned(), point, nth }),
        _ => Err(fault()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fault_points_are_named_or_refused() {
        assert_eq!(parse("#7"), Ok(Armed::Nth(7)));
        let named = |nth| Armed::Named { tool: "publish".to_owned(), point: Point::Applied, nth };
        assert_eq!(parse("publish:applied"), Ok(named(1)));
        assert_eq!(parse("publish:applied:3"), Ok(named(3)));
        for bad in ["", "publish", "publish:", ":applied", "publish:later", "publish:applied:0", "a:applied:1:2", "#x"]
        {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
