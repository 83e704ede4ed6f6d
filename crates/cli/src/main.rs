//! The `lodestep` command: a thin user of the library.
//!
//! # Layout
//!
//! - [`args`]: what can be typed.
//! - [`commands`]: one file a command.
//! - [`app`]: the store, the output and the hints that all commands share.
//! - [`select`], [`bulk`]: the filters that choose runs, and words to many of them.
//! - [`place`], [`retries`]: whom a run waits for, and what is tried again.
//! - [`progress`]: what is shown while a run goes on.
//! - [`following`]: runs whose end was not shown yet.
//! - [`wiring`], [`notify`]: `lodestep.toml` beside the store, and the command that hears what needs somebody.
//! - [`sent`]: what of an attempt can be looked for in its receiver's ledger.
//! - [`people`], [`prompt`]: requests as a person sees them, and asking for their answers at this terminal.
//! - [`text`]: odd characters made visible, ids made short.

// A print that panics on a closed pipe would end a run in the middle.
#![warn(clippy::print_stderr, clippy::print_stdout)]

mod app;
mod args;
mod bulk;
mod commands;
mod findings;
mod fitness;
mod following;
mod happened;
mod live;
mod notify;
mod outputs;
mod people;
mod place;
mod programs;
mod progress;
mod prompt;
mod reminders;
mod retries;
mod room;
mod select;
mod sent;
mod text;
mod unknown;
mod wiring;

use std::process::ExitCode;

use crate::app::App;
use crate::args::Cli;

/// A step makes some hundreds of small allocations on two threads; this allocator takes half the time of the C library's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // A holder or its stub is this binary started again; it needs nothing of the rest.
    if let Some(code) = lodestep::process::hidden_main() {
        return code;
    }
    lodestep::process::guard_memory();
    lodestep::secrets::scrub_panics();
    let cli = Cli::typed();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().worker_threads(2).build() {
        Ok(runtime) => runtime,
        Err(error) => {
            lodestep::note!("error: no threads can be started: {error}");
            return ExitCode::from(1);
        }
    };
    let app = App::new(&cli);
    let code = runtime.block_on(commands::run(&app, cli.command));
    let code = code.unwrap_or_else(|error| app.report(&error));
    // What is still under way in the background holds nothing that a crash would lose.
    runtime.shutdown_background();
    ExitCode::from(code)
}
