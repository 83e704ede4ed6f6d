//! One file a command; this one hands over to them.

mod artifacts;
mod bundle;
mod cancel;
mod check;
mod context;
mod crashing;
mod diff;
mod doctor;
mod dry_run;
mod effects;
mod export_all;
mod fork;
mod gc;
mod hold;
pub mod init;
mod log;
pub mod ls;
mod pause;
mod quota;
mod resume;
pub mod run;
pub mod schema;
mod sending;
mod show;
mod signal;
mod tell;
mod test;
mod todo;
mod upgrade;
mod verify;
mod watch;
mod words;
mod worker;

use clap::CommandFactory as _;
use lodestep::core::Result;

use crate::app::App;
use crate::args::{Cli, Command};

/// Runs a command; its exit code.
///
/// # Errors
///
/// Whatever could not be served.
pub async fn run(app: &App, command: Command) -> Result<u8> {
    match command {
        Command::Init { folder, template } => init::init(app, &folder, template),
        Command::Run(args) => run::run(app, args).await,
        Command::Resume { run, all, bulk, .. } if bulk.is_given() => {
            resume::resume_many(app, run.is_some() || all, &bulk).await
        }
        Command::Resume { run, all, pace, crash_at, .. } => resume::resume(app, run, all, pace, crash_at).await,
        Command::Worker { until_idle, crash_at } => worker::worker(app, until_idle, crash_at).await,
        Command::Test(args) => test::test(app, args).await,
        Command::Ls { selection, effect, limit } => ls::ls(app, &selection, effect, limit).await,
        Command::Todo { selection, limit } => todo::todo(app, &selection, limit).await,
        Command::Show { run, at } => show::show(app, &run, at).await,
        Command::Context { run, at, decision } => context::context(app, &run, at, decision).await,
        Command::Diff { run, other, from, to } => diff::diff(app, &run, other.as_deref(), from, to).await,
        Command::Watch { run } => watch::watch(app, run).await,
        Command::Schema { name } => schema::schema(app, name),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "lodestep", &mut text);
            app.print(&String::from_utf8_lossy(&text));
            Ok(0)
        }
        Command::Fork(args) => fork::fork(app, args).await,
        Command::Upgrade(args) => upgrade::upgrade(app, args).await,
        Command::Export { all: Some(folder), .. } => export_all::export_all(app, &folder).await,
        Command::Export { run, file, .. } => {
            // Both are required without --all.
            bundle::export(app, &run.unwrap_or_default(), &file.unwrap_or_default()).await
        }
        Command::Import { file } => bundle::import(app, &file).await,
        Command::Log { run, from, limit } => log::log(app, &run, from, limit).await,
        Command::Approve { requests, reuse: true, .. } => words::reuse(app, &requests).await,
        Command::Approve { requests, edit, bulk, .. } => words::approve(app, &requests, edit, &bulk).await,
        Command::Deny { requests, reason, bulk } => words::deny(app, &requests, reason, &bulk).await,
        Command::Answer { request, text } => words::answer(app, &request, text).await,
        Command::Resolve(args) => words::resolve(app, args).await,
        Command::Effects { run } => effects::effects(app, &run).await,
        Command::Artifacts { run, name, version } => artifacts::artifacts(app, &run, name, version).await,
        Command::Verify { run } => verify::verify(app, run).await,
        Command::Cancel { run, reason, bulk } => cancel::cancel(app, run, reason, &bulk).await,
        Command::Gc(args) => gc::gc(app, args).await,
        Command::Doctor { file } => doctor::doctor(app, file.as_deref()).await,
        Command::Hold { target: Some(target), reason } => hold::hold(app, &target, &reason).await,
        Command::Hold { target: None, .. } => hold::list(app).await,
        Command::Release { run: Some(target), bulk } if target.contains(':') && !bulk.is_given() => {
            hold::release(app, &target).await
        }
        Command::Release { run, bulk } => words::release(app, run, &bulk).await,
        Command::Pause { run, reason } => pause::pause(app, &run, reason).await,
        Command::Tell { run, text, id } => tell::tell(app, &run, text, id).await,
        Command::Signal { run, name, value, id } => signal::signal(app, &run, name, value, id).await,
        Command::Quota(command) => quota::quota(app, command).await,
    }
}
