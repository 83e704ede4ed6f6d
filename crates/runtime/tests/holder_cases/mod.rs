//! The cases of the holder test.

use std::future::{Future, pending};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use lodestep::process::{Command, Ended, Holder, Output, clean_environment, wait_until_free};

/// Makes this binary a worker that is there to be killed.
pub const WORKER_ARGUMENT: &str = "__worker";
/// What the worker promises about the time after its death.
const END_LIMIT: Duration = Duration::from_secs(5);
/// For what has to happen at some time on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

pub const CASES: &[(&str, fn())] = &[
    ("ends_are_told_apart", ends_are_told_apart),
    (
        "a_program_that_never_ran_is_not_started",
        a_program_that_never_ran_is_not_started,
    ),
    (
        "a_holder_that_cannot_serve_is_not_started",
        a_holder_that_cannot_serve_is_not_started,
    ),
    (
        "a_killed_holder_is_lost_and_takes_the_tool_along",
        a_killed_holder_is_lost_and_takes_the_tool_along,
    ),
    (
        "nothing_but_the_given_environment_is_inherited",
        only_what_is_given_is_inherited,
    ),
    (
        "tol_11_timeout_ends_the_whole_tree",
        timeout_ends_the_whole_tree,
    ),
    ("tol_11_stop_ends_the_whole_tree", stop_ends_the_whole_tree),
    (
        "tol_11_dropping_the_run_ends_the_whole_tree",
        dropping_the_run_ends_the_whole_tree,
    ),
    (
        "tol_11_killed_worker_ends_a_double_fork",
        killed_worker_ends_a_double_fork,
    ),
    (
        "tol_11_normal_end_leaves_no_daemon",
        normal_end_leaves_no_daemon,
    ),
    (
        "tol_11_hundred_runs_leave_no_process",
        hundred_runs_leave_no_process,
    ),
    (
        "tol_13_ten_megabytes_on_both_streams",
        ten_megabytes_on_both_streams,
    ),
    (
        "tol_13_output_above_the_limit_is_counted_in_bounded_memory",
        output_above_the_limit_is_counted,
    ),
    (
        "eff_02_a_stop_before_the_start_is_not_started",
        a_stop_before_the_start_is_not_started,
    ),
    (
        "unread_standard_input_hangs_nothing",
        unread_standard_input_hangs_nothing,
    ),
    (
        "the_lock_is_held_while_running_and_free_after",
        the_lock_is_held_while_running,
    ),
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
    }
}

fn shell(script: &str) -> Command {
    command(&["sh", "-c", script])
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(future)
}

fn run(command: Command) -> Output {
    block_on(holder().run(command, pending()))
}

/// A sleep that only this case asks for, so that its processes can be found by it.
fn marker() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!(
        "300.{:07}{:03}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::SeqCst)
    )
}

/// Every process number in `/proc`.
fn processes() -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| path.join("stat").exists())
}

fn alive(marker: &str) -> usize {
    let has_marker = |path: &PathBuf| {
        std::fs::read(path.join("cmdline")).is_ok_and(|line| contains(&line, marker))
    };
    processes().filter(has_marker).count()
}

fn contains(line: &[u8], marker: &str) -> bool {
    line.windows(marker.len())
        .any(|window| window == marker.as_bytes())
}

/// Children of this process, also those that have ended and were not reaped.
fn children() -> usize {
    let me = std::process::id().to_string();
    let is_mine = |path: &PathBuf| {
        let stat = std::fs::read_to_string(path.join("stat")).unwrap_or_default();
        stat.rsplit(')')
            .next()
            .and_then(|rest| rest.split_whitespace().nth(1))
            == Some(&me)
    };
    processes().filter(is_mine).count()
}

fn wait_for(what: &str, limit: Duration, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + limit;
    while !condition() {
        assert!(Instant::now() < deadline, "{what}: not within {limit:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

async fn until(mut condition: impl FnMut() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Four processes: the shell, a child, one in a session of its own, and what the shell waits for.
fn tree(marker: &str) -> Command {
    shell(&format!(
        "sleep {marker} & setsid sleep {marker} & sleep {marker}; true"
    ))
}

fn ends_are_told_apart() {
    let mut echo = command(&["cat"]);
    echo.stdin = b"to be \0 echoed".to_vec();
    let output = run(echo);
    assert_eq!(
        (output.ended, output.stdout),
        (Ended::Exited(0), b"to be \0 echoed".to_vec())
    );
    for (script, ended) in [
        ("exit 0", Ended::Exited(0)),
        ("exit 7", Ended::Exited(7)),
        // What a stub would say, said by a tool: still only an exit status.
        ("printf RFfake >&2; exit 126", Ended::Exited(126)),
        ("exit 127", Ended::Exited(127)),
        ("kill -TERM $$", Ended::Signalled(15)),
        ("kill -KILL $$", Ended::Signalled(9)),
    ] {
        assert_eq!(run(shell(script)).ended, ended, "{script}");
    }
}

fn a_program_that_never_ran_is_not_started() {
    let folder = tempfile::tempdir().expect("a folder");
    let plain = folder.path().join("plain");
    std::fs::write(&plain, "#!/bin/sh\n").expect("written");
    let (plain, long) = (plain.display().to_string(), "x".repeat(100_000));
    let mut elsewhere = command(&["true"]);
    elsewhere.cwd = "/no/such/folder".into();
    let mut bad_environment = command(&["true"]);
    bad_environment.env.insert("A=B".into(), String::new());
    let mut no_lock = command(&["true"]);
    no_lock.lock_file = Some("/no/such/folder/lock".into());
    for (command, says) in [
        (command(&["no-such-program"]), "no-such-program"),
        (command(&["/no/such/program"]), "/no/such/program"),
        (command(&[&long]), "program xxx"),
        (command(&[&plain]), "denied"),
        (command(&["/"]), "denied"),
        (command(&[]), "empty"),
        (command(&["true", "a\0b"]), "nul"),
        (elsewhere, "/no/such/folder"),
        (bad_environment, "A=B"),
        (no_lock, "lock file /no/such/folder/lock"),
    ] {
        match run(command).ended {
            Ended::NotStarted(message) => {
                assert!(message.contains(says), "{message} does not say {says}")
            }
            other => panic!("{says}: {other:?}"),
        }
    }
}

fn a_holder_that_cannot_serve_is_not_started() {
    for exe in ["/no/such/binary", "/bin/false", "/bin/true"] {
        let output = block_on(Holder::new(exe.into()).run(command(&["true"]), pending()));
        assert!(
            matches!(output.ended, Ended::NotStarted(_)),
            "{exe}: {output:?}"
        );
    }
}

fn a_killed_holder_is_lost_and_takes_the_tool_along() {
    let marker = marker();
    let output = run(shell(&format!(
        "echo before; kill -KILL $PPID; exec sleep {marker}"
    )));
    assert!(matches!(output.ended, Ended::HolderLost(_)), "{output:?}");
    wait_for("the tool is gone", END_LIMIT, || alive(&marker) == 0);
}

fn only_what_is_given_is_inherited() {
    let mut given = command(&["env"]);
    given.env = [
        ("PATH".to_string(), "/usr/bin:/bin".to_string()),
        ("ONLY".to_string(), "this".to_string()),
    ]
    .into();
    assert_eq!(run(given).stdout, b"ONLY=this\nPATH=/usr/bin:/bin\n");
    // What the test itself was started with goes on to every child; a holder and a stub add nothing.
    let mut list = std::process::Command::new("ls");
    let plain = list.arg("/proc/self/fd").output().expect("a listing");
    let held = run(command(&["ls", "/proc/self/fd"]));
    assert_eq!(
        String::from_utf8_lossy(&held.stdout),
        String::from_utf8_lossy(&plain.stdout)
    );
}

fn timeout_ends_the_whole_tree() {
    let marker = marker();
    let mut command = tree(&marker);
    command.timeout = Duration::from_secs(3);
    let (output, all_ran) = block_on(async {
        let all_ran = async {
            tokio::time::timeout(PATIENCE, until(|| alive(&marker) == 4))
                .await
                .is_ok()
        };
        let holder = holder();
        tokio::join!(holder.run(command, pending()), all_ran)
    });
    assert_eq!(
        (output.ended, all_ran, alive(&marker)),
        (Ended::TimedOut, true, 0)
    );
}

fn stop_ends_the_whole_tree() {
    let marker = marker();
    let output = block_on(holder().run(tree(&marker), until(|| alive(&marker) == 4)));
    assert_eq!(
        (output.ended, alive(&marker), children()),
        (Ended::Stopped, 0, 0)
    );
}

fn dropping_the_run_ends_the_whole_tree() {
    let marker = marker();
    block_on(async {
        let holder = holder();
        tokio::select! {
            output = holder.run(tree(&marker), pending()) => panic!("{output:?}"),
            () = until(|| alive(&marker) == 4) => {}
        }
        let ended =
            tokio::time::timeout(END_LIMIT, until(|| alive(&marker) == 0 && children() == 0)).await;
        assert!(
            ended.is_ok(),
            "{} alive, {} children",
            alive(&marker),
            children()
        );
    });
}

/// The worker of the next case: runs a tool that forks twice, and never ends by itself.
pub fn work(marker: &str, lock_file: &str) {
    let mut command = shell(&format!(
        "(setsid sh -c '(sleep {marker} &) ; sleep {marker}' &) ; (sleep {marker} &) ; sleep {marker}; true"
    ));
    command.lock_file = Some(lock_file.into());
    block_on(holder().run(command, pending()));
}

fn killed_worker_ends_a_double_fork() {
    let (marker, folder) = (marker(), tempfile::tempdir().expect("a folder"));
    let lock_file = folder.path().join("lock");
    let exe = std::env::current_exe().expect("this binary has a path");
    let mut worker = std::process::Command::new(exe);
    // Two shells and four sleeps; the worker has the marker as an argument as well.
    let mut worker = worker
        .args([WORKER_ARGUMENT, &marker])
        .arg(&lock_file)
        .spawn()
        .expect("a worker");
    wait_for("the tool runs", PATIENCE, || alive(&marker) == 7);
    assert!(!is_free(&lock_file, Duration::ZERO));
    worker.kill().expect("killed");
    worker.wait().expect("reaped");
    assert!(is_free(&lock_file, END_LIMIT), "the lock is still held");
    assert_eq!(alive(&marker), 0);
}

fn is_free(lock_file: &Path, limit: Duration) -> bool {
    block_on(wait_until_free(lock_file, limit)).expect("the lock can be tried")
}

fn normal_end_leaves_no_daemon() {
    for redirect in ["", ">/dev/null 2>&1 </dev/null"] {
        let marker = marker();
        let output = run(shell(&format!(
            "(setsid sleep {marker} {redirect} &) ; echo done"
        )));
        assert_eq!(
            (output.ended, output.stdout, alive(&marker)),
            (Ended::Exited(0), b"done\n".to_vec(), 0)
        );
    }
}

fn hundred_runs_leave_no_process() {
    let marker = marker();
    block_on(async {
        let start = children();
        for _ in 0..25 {
            let one = || async {
                holder()
                    .run(shell(&format!("(sleep {marker} &) ; exit 3")), pending())
                    .await
                    .ended
            };
            let ended = tokio::join!(one(), one(), one(), one());
            assert_eq!(
                [ended.0, ended.1, ended.2, ended.3],
                [const { Ended::Exited(3) }; 4]
            );
        }
        assert_eq!((children(), alive(&marker)), (start, 0));
    });
}

fn ten_megabytes_on_both_streams() {
    const BYTES: usize = 10 << 20;
    let output = run(shell(&format!(
        "head -c {BYTES} /dev/zero >&2 & head -c {BYTES} /dev/zero | tr '\\0' x; wait"
    )));
    assert_eq!(
        (
            output.ended,
            output.stdout_truncated,
            output.stderr_truncated
        ),
        (Ended::Exited(0), None, None)
    );
    assert_eq!((output.stdout.len(), output.stderr.len()), (BYTES, BYTES));
    assert!(
        output.stdout.iter().all(|&byte| byte == b'x')
            && output.stderr.iter().all(|&byte| byte == 0)
    );
}

fn output_above_the_limit_is_counted() {
    const BYTES: u64 = 200 << 20;
    let mut command = shell(&format!(
        "head -c {BYTES} /dev/zero; grep VmHWM /proc/$PPID/status >&2"
    ));
    command.stdout_limit = 1000;
    let output = run(command);
    assert_eq!(
        (output.ended, output.stdout.len(), output.stdout_truncated),
        (Ended::Exited(0), 1000, Some(BYTES))
    );
    let peak = String::from_utf8_lossy(&output.stderr).into_owned();
    let kibibytes: u64 = peak
        .split_whitespace()
        .nth(1)
        .and_then(|number| number.parse().ok())
        .expect("a size");
    assert!(kibibytes < 32 * 1024, "the holder took {kibibytes} KiB");
    for (limit, truncated) in [(0, Some(3)), (2, Some(3)), (3, None), (4, None)] {
        let mut command = shell("printf abc >&2");
        command.stderr_limit = limit;
        let output = run(command);
        assert_eq!(
            (output.stderr.len() as u64, output.stderr_truncated),
            (limit.min(3), truncated),
            "limit {limit}"
        );
    }
}

fn a_stop_before_the_start_is_not_started() {
    let folder = tempfile::tempdir().expect("a folder");
    let effect = folder.path().join("effect");
    let touch = command(&["touch", &effect.display().to_string()]);
    let output = block_on(holder().run(touch, async {}));
    assert!(matches!(output.ended, Ended::NotStarted(_)), "{output:?}");
    assert!(!effect.exists());
}

fn unread_standard_input_hangs_nothing() {
    for script in [
        "exit 5",
        "exec 0</dev/null; exit 5",
        "head -c 10 >/dev/null; exit 5",
    ] {
        let mut command = shell(script);
        command.stdin = vec![b'x'; 1 << 20];
        assert_eq!(run(command).ended, Ended::Exited(5), "{script}");
    }
}

fn the_lock_is_held_while_running() {
    let (marker, folder) = (marker(), tempfile::tempdir().expect("a folder"));
    let lock_file = folder.path().join("lock");
    assert!(
        is_free(&lock_file, Duration::ZERO),
        "a file that is not there is free"
    );
    let mut command = tree(&marker);
    command.lock_file = Some(lock_file.clone());
    block_on(async {
        let stop = async {
            until(|| alive(&marker) == 4).await;
            assert!(
                !wait_until_free(&lock_file, Duration::ZERO)
                    .await
                    .expect("the lock can be tried")
            );
        };
        assert_eq!(holder().run(command, stop).await.ended, Ended::Stopped);
        assert!(
            wait_until_free(&lock_file, Duration::ZERO)
                .await
                .expect("the lock can be tried")
        );
    });
}
