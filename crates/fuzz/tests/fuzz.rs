//! What failed once, a fixed number of new inputs for each target, and a driver that finds what was planted.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use lodestep_fuzz::corpus::seeds;
use lodestep_fuzz::hunt::{Found, Hunt, regressions};
use lodestep_fuzz::judge::judge;
use lodestep_fuzz::targets::{ALL, named};

/// New inputs of each target; `cargo xtask fuzz` tries more.
const INPUTS: u64 = 300;

#[test]
fn what_failed_once_is_read() {
    for target in &ALL {
        for (path, input) in regressions(target) {
            assert_eq!(judge(target, &input).err(), None, "{}", path.display());
        }
    }
}

/// Each fault was told, and found by looking at all that came before it.
#[test]
fn a_file_with_ten_thousand_faults_is_read() {
    let keys: String = (0..12_000).map(|number| format!("k{number}=1\n")).collect();
    for (name, file) in [("agent", format!("format=1\n{keys}")), ("wiring", keys)] {
        let target = named(name).expect("a target");
        assert_eq!(judge(target, file.as_bytes()).err(), None, "{name}");
    }
}

#[test]
fn no_target_fails_on_new_inputs() {
    for target in &ALL {
        let hunt = Hunt { seed: 1, inputs: INPUTS + seeds(target.name).len() as u64, time: Duration::MAX };
        let found = hunt.run(target, |_| {});
        assert_eq!(found.faults, [], "{}", target.name);
        assert!(found.kept > seeds(target.name).len(), "{}: mutations are answered in new ways", target.name);
    }
}

#[test]
fn a_seed_hunts_the_same_inputs() {
    let tried = |seed| {
        let mut tried = Vec::new();
        let target = named("text").expect("a target");
        let _: Found = Hunt { seed, inputs: 100, time: Duration::MAX }.run(target, |input| tried.push(input.to_vec()));
        tried
    };
    assert_eq!(tried(7), tried(7));
    assert_ne!(tried(7), tried(8));
}

/// Runs the driver; whether it was content, what it said, and what it kept.
fn driven(target: &str, into: &Path) -> (bool, String, Vec<Vec<u8>>) {
    let mut driver = Command::new(env!("CARGO_BIN_EXE_lodestep-fuzz"));
    let run = driver.args([target, "--seconds", "60", "--inputs", "2000", "--into"]).arg(into).output();
    let run = run.expect("the driver runs");
    let files = std::fs::read_dir(into).into_iter().flatten();
    let kept = files.map(|file| std::fs::read(file.expect("a file").path()).expect("it is read")).collect();
    (run.status.success(), String::from_utf8_lossy(&run.stdout).into_owned(), kept)
}

#[test]
fn the_driver_finds_what_was_planted_and_cuts_it_down() {
    for (target, said) in [
        ("planted-panic", "it panicked"),
        ("planted-slow", "ms of processor time"),
        ("planted-memory", "bytes of memory"),
        ("planted-stack", "it ended the process"),
    ] {
        let folder = tempfile::TempDir::new().expect("a folder");
        let (content, told, kept) = driven(target, folder.path());
        assert!(!content && told.contains(said), "{target}: {told}");
        assert_eq!(kept, [b"*"], "{target}: {told}");
    }
}

#[test]
fn the_driver_is_content_with_what_is_sound() {
    let folder = tempfile::TempDir::new().expect("a folder");
    let (content, told, kept) = driven("planted-sound", folder.path());
    assert!(content && kept.is_empty(), "{told}");
    assert!(told.contains("2000 inputs"), "{told}");
}
