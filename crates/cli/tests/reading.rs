//! Looking at a store that can't be written: it works, or says why SQLite can't.

mod support;

use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::*;

/// A user who owns nothing; used when the tests' own user may write everything.
const NOBODY: u32 = 65_534;

/// Sets the permissions of everything in a folder, and of the folder.
fn set_all(folder: &Path, files: u32, folders: u32) {
    // A folder is opened up before it is looked into.
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).expect("set");
    for entry in std::fs::read_dir(folder).expect("read") {
        let path = entry.expect("read").path();
        match path.is_dir() {
            true => set_all(&path, files, folders),
            false => std::fs::set_permissions(&path, std::fs::Permissions::from_mode(files)).expect("set"),
        }
    }
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(folders)).expect("set");
}

/// A store whose files can be read and not written by whoever runs the program; put right when it is dropped.
struct Locked<'a> {
    world: &'a World,
    /// The program, where nobody can start it: wherever it was built, they may not get at it.
    program: Option<(tempfile::TempDir, PathBuf)>,
}

impl<'a> Locked<'a> {
    fn of(world: &'a World) -> Self {
        set_all(world.path(), 0o444, 0o555);
        let program = rustix::process::geteuid().is_root().then(|| {
            let folder = tempfile::tempdir().expect("a folder");
            let program = folder.path().join("lodestep");
            std::fs::copy(env!("CARGO_BIN_EXE_lodestep"), &program).expect("copied");
            set_all(folder.path(), 0o755, 0o755);
            (folder, program)
        });
        Self { world, program }
    }

    fn lodestep(&self, words: &[&str]) -> Said {
        let mut command = self.world.command(words);
        if let Some((_, program)) = &self.program {
            let mut other = Command::new(program);
            other.current_dir(self.world.path()).args(command.get_args()).env("LODESTEP_USER", "ada");
            other.env_remove("LODESTEP_STORE").stdin(Stdio::null()).uid(NOBODY).gid(NOBODY);
            command = other;
        }
        let mut ran = command.output();
        let until = Instant::now() + Duration::from_secs(20);
        // Another test's process may begin with the copy still open to write, for a moment.
        while ran.as_ref().is_err_and(|error| error.kind() == ErrorKind::ExecutableFileBusy) && Instant::now() < until {
            std::thread::yield_now();
            ran = command.output();
        }
        Said::of(ran.expect("ran"))
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        set_all(self.world.path(), 0o644, 0o755);
    }
}

/// A run that waits for an approval.
fn waiting(world: &World) -> String {
    let pay = "[tools.pay]\ndescription = \"Pay.\"\ncommand = [\"sh\", \"-c\", \"cat >> paid\"]\nclass = \"unsafe\"\n\
               input = { type = \"object\", properties = { cents = { type = \"integer\" } } }\n";
    let replies = json!([
        { "calls": [{ "name": "pay", "arguments": { "cents": 10 } }] },
        { "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] },
    ]);
    let agent = world.agent(pay, &replies);
    world.lodestep(&["run", agent.to_str().expect("a path")]).exits(3);
    world.run_id()
}

fn reads(locked: &Locked<'_>, run: &str) {
    let listed: Value = serde_json::from_str(&locked.lodestep(&["--json", "ls"]).exits(0).out).expect("JSON");
    assert_eq!(listed[0]["run"], run);
    assert!(locked.lodestep(&["show", run]).exits(0).out.contains("waits for approval"));
    assert!(locked.lodestep(&["verify"]).exits(0).out.contains("sound"));
    locked.lodestep(&["log", run]).exits(0);
    locked.lodestep(&["effects", run]).exits(0);
    locked.lodestep(&["artifacts", run]).exits(0);
}

#[test]
fn a_store_that_cannot_be_written_can_be_looked_at() {
    let world = World::new();
    let run = waiting(&world);
    world.rest();
    let locked = Locked::of(&world);
    reads(&locked, &run);
    // Whatever changes something is refused, and says why.
    for words in [vec!["cancel", &run], vec!["resume", &run], vec!["worker", "--until-idle"]] {
        let said = locked.lodestep(&words).exits(7);
        assert!(said.err.contains("store.unavailable") && said.err.contains("store.db"), "{said:?}");
    }
    let left: Vec<String> = std::fs::read_dir(world.path())
        .expect("read")
        .map(|entry| entry.expect("read").file_name().into_string().expect("UTF-8"))
        .filter(|name| name.starts_with("store.db-") && name != "store.db-files")
        .collect();
    assert_eq!(left, Vec::<String>::new(), "something was made");
}

#[test]
fn a_store_in_use_can_be_looked_at_without_the_right_to_write_it() {
    let world = World::new();
    let run = waiting(&world);
    let mut worker = world.start(&["worker"]);
    // It has a row, which is in the log.
    eventually("the worker is known", Duration::from_secs(20), || {
        let locks = std::fs::read_dir(world.path().join("store.db-files/workers")).expect("read");
        let log = std::fs::metadata(world.path().join("store.db-wal")).map_or(0, |log| log.len());
        locks.count() > 0 && log > 0 && world.path().join("store.db-shm").exists()
    });
    let locked = Locked::of(&world);
    reads(&locked, &run);
    drop(locked);
    // Killed, it leaves its log. Without the memory through which that is read, SQLite has to make it, and can't.
    worker.kill();
    std::fs::remove_file(world.path().join("store.db-shm")).expect("removed");
    let locked = Locked::of(&world);
    let said = locked.lodestep(&["ls"]).exits(7);
    assert!(said.err.contains("store.unavailable") && said.err.contains("shared memory"), "{said:?}");
    assert!(said.err.contains("its -wal file"), "it does not say what to do: {said:?}");
}

#[test]
fn to_look_at_an_older_copy_hides_nothing_from_whoever_opens_it_next() {
    let world = World::new();
    let run = waiting(&world);
    world.rest();
    let older = std::fs::read(world.path().join("store.db")).expect("read");
    world.lodestep(&["cancel", &run]).exits(0);
    for log in ["store.db-wal", "store.db-shm"] {
        // Gone already when the last process had the time to close the store.
        let _ = std::fs::remove_file(world.path().join(log));
    }
    std::fs::write(world.path().join("store.db"), older).expect("put back");
    let locked = Locked::of(&world);
    reads(&locked, &run);
    drop(locked);
    let listed = world.json(&["ls"]);
    assert_eq!((&listed[0]["status"], &listed[0]["why"]), (&json!("quarantined"), &json!("rewound")));
}
