//! The cases of the holder test, and what they have in common.

mod cage;
mod ends;
mod streams;
mod trees;

pub use ends::list_open_files;
pub use trees::work;

use std::future::{Future, pending};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use lodestep::process::{Cage, Command, Ended, Holder, Output, clean_environment, wait_until_free};

/// Makes this binary a worker that is there to be killed.
pub const WORKER_ARGUMENT: &str = "__worker";
/// What the worker promises about the time after its death.
const END_LIMIT: Duration = Duration::from_secs(5);
/// For what has to happen at some time on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Tells that worker to list the files that its tool has open.
pub const OPEN_FILES: &str = "open-files";

type Case = (&'static str, fn());

/// The cases of this system.
pub fn cases() -> Vec<Case> {
    let linux = if cfg!(target_os = "linux") { LINUX } else { &[] };
    [ANYWHERE, linux].concat()
}

const ANYWHERE: &[Case] = &[
    ("ends_are_told_apart", ends::ends_are_told_apart),
    ("a_program_that_never_ran_is_not_started", ends::a_program_that_never_ran_is_not_started),
    ("a_holder_that_cannot_serve_is_not_started", ends::a_holder_that_cannot_serve_is_not_started),
    ("tol_13_ten_megabytes_on_both_streams", streams::ten_megabytes_on_both_streams),
    ("eff_02_a_stop_before_the_start_is_not_started", ends::a_stop_before_the_start_is_not_started),
    ("unread_standard_input_hangs_nothing", streams::unread_standard_input_hangs_nothing),
];

/// These look into `/proc`, and most ask for what only Linux can promise.
const LINUX: &[Case] = &[
    ("a_killed_holder_is_lost_and_takes_the_tool_along", ends::a_killed_holder_is_lost_and_takes_the_tool_along),
    ("nothing_but_the_given_environment_is_inherited", ends::only_what_is_given_is_inherited),
    ("tol_11_timeout_ends_the_whole_tree", trees::timeout_ends_the_whole_tree),
    ("tol_11_stop_ends_the_whole_tree", trees::stop_ends_the_whole_tree),
    ("tol_11_stop_ends_a_chain_that_forks_all_the_time", trees::stop_ends_a_chain_that_forks_all_the_time),
    ("tol_11_dropping_the_run_ends_the_whole_tree", trees::dropping_the_run_ends_the_whole_tree),
    ("tol_11_killed_worker_ends_a_double_fork", trees::killed_worker_ends_a_double_fork),
    ("tol_11_normal_end_leaves_no_daemon", trees::normal_end_leaves_no_daemon),
    ("tol_11_hundred_runs_leave_no_process", trees::hundred_runs_leave_no_process),
    ("tol_13_output_above_the_limit_is_counted_in_bounded_memory", streams::output_above_the_limit_is_counted),
    ("g10_a_tool_can_neither_read_nor_change_the_store", cage::a_tool_can_neither_read_nor_change_the_store),
    ("what_is_beside_the_store_can_be_used_as_ever", cage::what_is_beside_the_store_can_be_used_as_ever),
    ("a_required_cage_that_can_t_be_is_not_started", cage::a_required_cage_that_can_t_be_is_not_started),
    ("a_tool_gains_no_rights_and_leaves_no_core", cage::a_tool_gains_no_rights_and_leaves_no_core),
    ("sec_01_a_tool_can_t_read_the_environment_of_another", cage::a_tool_can_t_read_the_environment_of_another),
    ("a_tool_can_neither_read_nor_end_who_holds_it", cage::a_tool_can_neither_read_nor_end_who_holds_it),
    ("the_lock_is_held_while_running_and_free_after", trees::the_lock_is_held_while_running),
];

fn holder() -> Holder {
    Holder::new(std::env::current_exe().expect("this binary has a path"))
}

fn command(argv: &[&str]) -> Command {
    Command {
        argv: argv.iter().map(ToString::to_string).collect(),
        cwd: "/".into(),
        env: clean_environment(),
        stdin: Vec::new(),
        timeout: PATIENCE,
        stdout_limit: 64 << 20,
        stderr_limit: 64 << 20,
        lock_file: None,
        cage: Cage::default(),
    }
}

fn shell(script: &str) -> Command {
    command(&["sh", "-c", script])
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

/// Runs on a task of its own, as a worker does; so the future has to be `Send`.
fn run(command: Command) -> Output {
    let run = async move { holder().run(command, pending()).await };
    block_on(async { tokio::spawn(run).await.expect("no panic") })
}

/// A sleep that only this case asks for, so that its processes can be found by it.
fn marker() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("300.{:07}{:03}", std::process::id(), NEXT.fetch_add(1, Ordering::SeqCst))
}

/// Every process number in `/proc`.
fn processes() -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    entries.map(|entry| entry.path()).filter(|path| path.join("stat").exists())
}

fn alive(marker: &str) -> usize {
    let has_marker = |path: &PathBuf| std::fs::read(path.join("cmdline")).is_ok_and(|line| contains(&line, marker));
    processes().filter(has_marker).count()
}

fn contains(line: &[u8], marker: &str) -> bool {
    line.windows(marker.len()).any(|window| window == marker.as_bytes())
}

/// Children of this process, also those that have ended and were not reaped.
fn children() -> usize {
    let me = std::process::id().to_string();
    let is_mine = |path: &PathBuf| {
        let stat = std::fs::read_to_string(path.join("stat")).unwrap_or_default();
        stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)) == Some(&me)
    };
    processes().filter(is_mine).count()
}

fn wait_for(what: &str, limit: Duration, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + limit;
    while !condition() {
        assert!(Instant::now() < deadline, "{what}: not within {limit:?}");
        std::thread::yield_now();
    }
}

async fn until(mut condition: impl FnMut() -> bool) {
    while !condition() {
        tokio::task::yield_now().await;
    }
}
