//! How a run ends, and what a tool gets.

use super::*;

pub fn ends_are_told_apart() {
    let mut echo = command(&["cat"]);
    echo.stdin = b"to be \0 echoed".to_vec();
    let output = run(echo);
    assert_eq!((output.ended, output.stdout), (Ended::Exited(0), b"to be \0 echoed".to_vec()));
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

pub fn a_program_that_never_ran_is_not_started() {
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

pub fn a_holder_that_cannot_serve_is_not_started() {
    for exe in ["/no/such/binary", "/bin/false", "/bin/true"] {
        let output = block_on(Holder::new(exe.into()).run(command(&["true"]), pending()));
        assert!(matches!(output.ended, Ended::NotStarted(_)), "{exe}: {output:?}");
    }
}

pub fn a_killed_holder_is_lost_and_takes_the_tool_along() {
    let marker = marker();
    let folder = tempfile::tempdir().expect("a folder");
    let named = folder.path().join("holder");
    // Killed from outside: a tool may not be able to.
    let killer = std::thread::spawn({
        let named = named.clone();
        move || {
            let pid = || std::fs::read_to_string(&named).ok().filter(|text| text.ends_with('\n'));
            wait_for("the holder's number", PATIENCE, || pid().is_some());
            let pid = pid().and_then(|text| text.trim().parse().ok()).and_then(rustix::process::Pid::from_raw);
            rustix::process::kill_process(pid.expect("a number"), rustix::process::Signal::KILL).expect("killed");
        }
    });
    let output = run(shell(&format!("echo $PPID >{}; exec sleep {marker}", named.display())));
    killer.join().expect("no panic");
    assert!(matches!(output.ended, Ended::HolderLost(_)), "{output:?}");
    wait_for("the tool is gone", END_LIMIT, || alive(&marker) == 0);
}

pub fn only_what_is_given_is_inherited() {
    let mut given = command(&["env"]);
    given.env = [("PATH".to_string(), "/usr/bin:/bin".to_string()), ("ONLY".to_string(), "this".to_string())].into();
    assert_eq!(run(given).stdout, b"ONLY=this\nPATH=/usr/bin:/bin\n");
    // The shell opens what it is told to and gives it to every child; a tool gets its three streams and no more.
    let listing = ["sh", "-c", "exec 7</dev/null 9</dev/null; exec \"$0\" \"$@\""];
    let me = std::env::current_exe().expect("this binary has a path");
    let mut with_more = std::process::Command::new(listing[0]);
    with_more.args(&listing[1..]).arg(me).arg(WORKER_ARGUMENT).arg(OPEN_FILES);
    let output = with_more.output().expect("a listing");
    let numbers = String::from_utf8_lossy(&output.stdout).into_owned();
    // 3 is the folder that is listed.
    assert_eq!(numbers.split_whitespace().collect::<Vec<_>>(), ["0", "1", "2", "3"], "{output:?}");
}

/// A worker that may have more files open than it knows of: what its tool has open.
pub fn list_open_files() {
    let output = run(command(&["ls", "/proc/self/fd"]));
    print!("{}", String::from_utf8_lossy(&output.stdout));
}

pub fn a_stop_before_the_start_is_not_started() {
    let folder = tempfile::tempdir().expect("a folder");
    let effect = folder.path().join("effect");
    let touch = command(&["touch", &effect.display().to_string()]);
    let output = block_on(holder().run(touch, async {}));
    assert!(matches!(output.ended, Ended::NotStarted(_)), "{output:?}");
    assert!(!effect.exists());
}
