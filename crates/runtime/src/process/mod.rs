//! Tool processes that end with their worker.
//!
//! A worker never starts a tool itself. It starts its own binary again as a **holder**, which
//! starts the tool and outlives it. The holder has one pipe from the worker, the life line. When
//! that pipe closes, because the worker said stop, dropped the future or was killed, the holder
//! ends every descendant of the tool, reaps them and goes. The worker needs no clean-up code of its
//! own, so `kill -9` cannot skip it.
//!
//! ```text
//! worker ──life line──▶ holder (__hold) ──▶ stub (__exec) ══exec══▶ tool ──▶ its children …
//!        ◀───frames────  child subreaper     dies with the holder
//! ```
//!
//! A run takes these steps; the order is what makes "never started" provable:
//!
//! 1. worker → holder: the spec.
//! 2. The holder takes the shared lock and answers `ready`.
//! 3. worker → holder: `go`. A dead worker sends none, so a tool only ever starts under a lock that
//!    was taken while its worker lived. The next worker that finds the lock free knows that no tool
//!    of the dead one runs or will run ([`wait_until_free`]).
//! 4. The holder starts the stub, which becomes the tool, and streams frames until the end.
//!
//! # What holds where
//!
//! - Linux: grandchildren, double forks and processes in sessions of their own are found and ended,
//!   since an orphan is handed to the holder (`PR_SET_CHILD_SUBREAPER`). Needs `/proc`. When the
//!   *holder* is killed, the tool's main process is killed by the kernel (`PR_SET_PDEATHSIG`), but
//!   its children are not. A program that runs as another user (setuid) cannot be killed; then the
//!   holder stays, and so does its lock.
//! - macOS: weaker. The tool's process group is killed; a process that left the group goes on.
//!
//! # What it does not do
//!
//! A tool is kept from the store (see `cage`) and from whoever holds it, and gets no open files but its three
//! streams. Apart from that it can read, write and connect to whatever its user can.
//!
//! # Layout
//!
//! - `cage`: what the tool is kept from.
//! - `command`: what to run and how it ended.
//! - `run`: the worker's side, [`Holder::run`].
//! - `protocol`: what goes over the two pipes.
//! - `hold`: the holder's main; `pump` moves the output, `stub` starts the tool, `tree` ends
//!   processes.
//! - `lock`: waiting for the holders of a dead worker.

mod cage;
mod command;
mod hold;
mod lock;
mod protocol;
mod pump;
mod run;
mod stub;
mod tree;

use std::process::ExitCode;

pub use cage::{Cage, Demand, guard_memory, landlock_abi};
pub use command::{Command, Ended, Output, clean_environment};
pub use hold::hold_main;
pub use lock::wait_until_free;
pub use run::Holder;
pub use stub::exec_main;

/// The environment variable that names a file in which holders write a line `TOOL KEY` for each effect that ended well:
/// a ledger for tests, kept by processes that are not the worker.
pub const LEDGER: &str = "LODESTEP_TEST_LEDGER";

/// The hidden first argument that makes a binary a holder.
pub const HOLD_ARGUMENT: &str = "__hold";
/// The hidden first argument that makes a binary the stub, which becomes the tool.
pub const EXEC_ARGUMENT: &str = "__exec";

/// Serves the hidden arguments of this process, if it was started with one.
///
/// Call it first thing in `main`, before a runtime or a thread is started: the kernel ties a tool
/// to the *thread* of the holder that started it. `None` means that this is an ordinary start.
pub fn hidden_main() -> Option<ExitCode> {
    let first = std::env::args_os().nth(1)?;
    match first.to_str()? {
        HOLD_ARGUMENT => Some(hold_main()),
        EXEC_ARGUMENT => Some(exec_main()),
        _ => None,
    }
}
