//! Whoever asks what a chore takes is told that, and nothing is started.

use std::process::{Command, Output};

/// What `cargo xtask` says to this. There is no cargo that it could start anything with.
fn said(args: &[&str]) -> Output {
    let mut xtask = Command::new(env!("CARGO_BIN_EXE_xtask"));
    xtask.args(args).env("CARGO", "/nothing/here").output().expect("started")
}

#[test]
fn a_chore_that_is_asked_for_help_says_its_options_and_starts_nothing() {
    for (command, options) in [
        ("simulate", &["--seeds N", "--from SEED", "--seed SEED", "--store STORE", "--exhaustive"][..]),
        ("fuzz", &["TARGET", "--seconds N", "--inputs N", "--seed S", "--into FOLDER"]),
        ("bench", &["ROWS", "LODESTEP_BENCH_ROUNDS", "LODESTEP_BENCH_FOLDER"]),
        ("try-local-model", &["--decisions N", "LODESTEP_TRY_VENV"]),
        ("mutate", &["G4", "NAME", "--all"]),
        ("test", &["ARGS"]),
        ("ci", &["cargo xtask <command>"]),
    ] {
        for asked in [&[command, "--help"][..], &[command, "-h"], &[command, "--seeds", "7", "--help"]] {
            let Output { status, stdout, stderr } = said(asked);
            let stdout = String::from_utf8(stdout).expect("UTF-8");
            assert!(status.success() && stderr.is_empty(), "{asked:?}: {}", String::from_utf8_lossy(&stderr));
            for option in options {
                assert!(stdout.contains(option), "{asked:?}: {option}: {stdout}");
            }
        }
    }
    assert!(!said(&["nonsense", "--help"]).status.success());
    assert!(!said(&["simulate", "--", "--help"]).status.success(), "that is for another program");
}
