//! TOL-11: no process of a tool outlives its run.

use super::*;

/// Four processes: the shell, a child, one in a session of its own, and what the shell waits for.
fn tree(marker: &str) -> Command {
    shell(&format!("sleep {marker} & setsid sleep {marker} & sleep {marker}; true"))
}

pub fn timeout_ends_the_whole_tree() {
    let marker = marker();
    let mut command = tree(&marker);
    command.timeout = Duration::from_secs(3);
    let (output, all_ran) = block_on(async {
        let all_ran = async { tokio::time::timeout(PATIENCE, until(|| alive(&marker) == 4)).await.is_ok() };
        let holder = holder();
        tokio::join!(holder.run(command, pending()), all_ran)
    });
    assert_eq!((output.ended, all_ran, alive(&marker)), (Ended::TimedOut, true, 0));
}

pub fn stop_ends_the_whole_tree() {
    let marker = marker();
    let output = block_on(holder().run(tree(&marker), until(|| alive(&marker) == 4)));
    assert_eq!((output.ended, alive(&marker), children()), (Ended::Stopped, 0, 0));
}

pub fn dropping_the_run_ends_the_whole_tree() {
    let marker = marker();
    block_on(async {
        let holder = holder();
        tokio::select! {
            output = holder.run(tree(&marker), pending()) => panic!("{output:?}"),
            () = until(|| alive(&marker) == 4) => {}
        }
        let ended = tokio::time::timeout(END_LIMIT, until(|| alive(&marker) == 0 && children() == 0)).await;
        assert!(ended.is_ok(), "{} alive, {} children", alive(&marker), children());
    });
}

pub fn stop_ends_a_chain_that_forks_all_the_time() {
    let (marker, folder) = (marker(), tempfile::tempdir().expect("a folder"));
    let steps = folder.path().join("steps");
    // Each link starts the next and ends, so that whoever is looked at is about to go.
    let chain = format!("f() {{ (: {marker}; echo >>steps; sleep 0.01; f) & }}; f; sleep {marker}");
    let mut command = shell(&chain);
    command.cwd = folder.path().into();
    let length = || std::fs::metadata(&steps).map_or(0, |metadata| metadata.len());
    let output = block_on(holder().run(command, until(|| length() > 20)));
    assert_eq!((output.ended, alive(&marker), children()), (Ended::Stopped, 0, 0));
}

/// The worker of the next case: runs a tool that forks twice, and never ends by itself.
pub fn work(marker: &str, lock_file: &str) {
    let mut command = shell(&format!(
        "(setsid sh -c '(sleep {marker} &) ; sleep {marker}' &) ; (sleep {marker} &) ; sleep {marker}; true"
    ));
    command.lock_file = Some(lock_file.into());
    block_on(holder().run(command, pending()));
}

pub fn killed_worker_ends_a_double_fork() {
    let (marker, folder) = (marker(), tempfile::tempdir().expect("a folder"));
    let lock_file = folder.path().join("lock");
    let exe = std::env::current_exe().expect("this binary has a path");
    let mut worker = std::process::Command::new(exe);
    // Two shells and four sleeps; the worker has the marker as an argument as well.
    let mut worker = worker.args([WORKER_ARGUMENT, &marker]).arg(&lock_file).spawn().expect("a worker");
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

pub fn normal_end_leaves_no_daemon() {
    for redirect in ["", ">/dev/null 2>&1 </dev/null"] {
        let marker = marker();
        let output = run(shell(&format!("(setsid sleep {marker} {redirect} &) ; echo done")));
        assert_eq!((output.ended, output.stdout, alive(&marker)), (Ended::Exited(0), b"done\n".to_vec(), 0));
    }
}

pub fn hundred_runs_leave_no_process() {
    let marker = marker();
    block_on(async {
        let start = children();
        for _ in 0..25 {
            let one = || async { holder().run(shell(&format!("(sleep {marker} &) ; exit 3")), pending()).await.ended };
            let ended = tokio::join!(one(), one(), one(), one());
            assert_eq!([ended.0, ended.1, ended.2, ended.3], [const { Ended::Exited(3) }; 4]);
        }
        assert_eq!((children(), alive(&marker)), (start, 0));
    });
}

pub fn the_lock_is_held_while_running() {
    let (marker, folder) = (marker(), tempfile::tempdir().expect("a folder"));
    let lock_file = folder.path().join("lock");
    assert!(is_free(&lock_file, Duration::ZERO), "a file that is not there is free");
    let mut command = tree(&marker);
    command.lock_file = Some(lock_file.clone());
    block_on(async {
        let stop = async {
            until(|| alive(&marker) == 4).await;
            assert!(!wait_until_free(&lock_file, Duration::ZERO).await.expect("the lock can be tried"));
        };
        assert_eq!(holder().run(command, stop).await.ended, Ended::Stopped);
        assert!(wait_until_free(&lock_file, Duration::ZERO).await.expect("the lock can be tried"));
    });
}
