//! What a runtime tells while it works, for progress lines and tests. Never needed for the work itself.
//!
//! Whoever reads stderr may go away at any time: what can't be written there is lost, and ends no run.

use std::fmt::Arguments;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use lodestep_core::rules::remind::Reminder;
use lodestep_core::{Checkpoint, Definition, Event, RunKey};
use lodestep_model::Progress;

/// Is told of each committed transition, after it is durable.
pub trait Observer: Send + Sync {
    /// A transition was committed: its events, the values that are new with it, and the state after it.
    fn committed(&self, run: &RunKey, events: &[Event], values: &[Vec<u8>], after: &Checkpoint);

    /// A run of this definition is taken up, at this transition, after so many crashes.
    fn taken(&self, _run: &RunKey, _definition: &Definition, _after: &Checkpoint, _crashes: u32) {}

    /// A piece of a reply has come whose whole is not here yet. Nothing is stored of it, and it may be dropped.
    fn streamed(&self, _run: &RunKey, _progress: Progress<'_>) {}

    /// Requests of a run have been open for so long that people are to be reminded of them. A due moment, which is named by
    /// request, `since` and `number`, can be told again by the next worker that has the run; what was told is the
    /// observer's to keep. Of several moments that were missed only the newest is told.
    fn reminded(&self, _run: &RunKey, _state: &Checkpoint, _reminders: &[Reminder]) {}
}

/// Tells nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    fn committed(&self, _run: &RunKey, _events: &[Event], _values: &[Vec<u8>], _after: &Checkpoint) {}
}

/// Are notes lines of JSON?
static AS_JSON: AtomicBool = AtomicBool::new(false);

/// From now on each note of this process is a line `{"note": TEXT}` on stdout, for programs, in the place of prose on stderr.
pub fn notes_as_json() {
    AS_JSON.store(true, Ordering::Relaxed);
}

/// Writes a note, with the end of its line, to stderr, or as JSON: see [`notes_as_json`]. What can't be written is lost.
pub fn write_note(text: Arguments<'_>) {
    let text = text.to_string();
    if !AS_JSON.load(Ordering::Relaxed) {
        return write_stderr(format_args!("{text}"));
    }
    if !text.trim().is_empty() {
        let line = format!("{}\n", serde_json::json!({ "note": text.trim() }));
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
    }
}

/// Writes to stderr, in one piece. What can't be written is lost: a reader that has gone away is no error.
pub fn write_stderr(text: Arguments<'_>) {
    let _ = std::io::stderr().lock().write_all(text.to_string().as_bytes());
}

/// Writes a line to stderr as `eprintln!` does, but for a panic when it can't be written, or as JSON: see
/// [`write_note`](crate::observe::write_note).
#[macro_export]
macro_rules! note {
    () => { $crate::observe::write_note(format_args!("\n")) };
    ($($text:tt)+) => { $crate::observe::write_note(format_args!("{}\n", format_args!($($text)+))) };
}
