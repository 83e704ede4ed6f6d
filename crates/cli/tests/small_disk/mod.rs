//! Disks that become full when a test says so, and have room again when it says so.
//!
//! - [`Disk::limited`] always works: the worker's files may not grow beyond a size (`RLIMIT_FSIZE`), which another process
//!   sets while it runs. A write fails with `EFBIG`.
//! - [`Disk::small`] is a file system of a few megabytes in a mount namespace of its own. A write fails with `ENOSPC`. A
//!   machine that gives a test no such namespace has none; the scenario is then shown with the other kind alone.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Resource, Rlimit, prlimit};

use crate::support::*;

/// So large is a file system of its own.
const SMALL_MIB: u64 = 20;

/// Room that is held back for outcomes.
pub const RESERVE: &str = "store.db-files/reserve";

/// Ignores the signal of a file that has become too large, so that the write fails as on a full disk.
const BEGIN: &str = "trap '' XFSZ; cd \"$0\" && exec \"$@\"";

/// A world whose store is on a disk that can be full.
pub struct Disk {
    /// Agent files, and what the tools write: there is always room for them.
    pub world: World,
    /// The process that keeps the file system.
    keeper: Option<Child>,
}

impl Drop for Disk {
    fn drop(&mut self) {
        if let Some(keeper) = &mut self.keeper {
            let _ = keeper.kill();
            let _ = keeper.wait();
        }
    }
}

impl Disk {
    /// Every kind that this machine has.
    pub fn kinds() -> Vec<Self> {
        let mut kinds = vec![Self::limited()];
        match Self::small() {
            Some(small) => kinds.push(small),
            None => eprintln!("no mount namespace here: full disks are shown by a limit of the files' sizes alone"),
        }
        kinds
    }

    /// One whose files may not grow.
    pub fn limited() -> Self {
        let world = World::new();
        fs::create_dir(world.path().join("disk")).expect("made");
        Self { world, keeper: None }
    }

    /// A small file system, where the machine allows it.
    pub fn small() -> Option<Self> {
        let mut disk = Self::limited();
        let mount = format!("mount -t tmpfs -o size={SMALL_MIB}m none \"$0\" && echo made && exec cat");
        let mut keeper = Command::new("unshare")
            .args(["--map-root-user", "--mount", "sh", "-c", &mount])
            .arg(disk.world.path().join("disk"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut said = [0; 5];
        let made = keeper.stdout.as_mut().is_some_and(|out| out.read_exact(&mut said).is_ok());
        disk.keeper = Some(keeper);
        made.then_some(disk)
    }

    /// The program, with its store on the disk.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = match &self.keeper {
            Some(keeper) => {
                let mut command = Command::new("nsenter");
                command.arg("--target").arg(keeper.id().to_string());
                command.args(["--user", "--mount", "--preserve-credentials", "sh", "-c", BEGIN]);
                command
            }
            None => {
                let mut command = Command::new("sh");
                command.args(["-c", BEGIN]);
                command
            }
        };
        command.arg(self.world.path()).arg(env!("CARGO_BIN_EXE_lodestep"));
        command.arg("--store").arg(self.world.path().join("disk/store.db")).args(words);
        command.env("LODESTEP_USER", "ada").env_remove("LODESTEP_STORE");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs it to its end.
    pub fn lodestep(&self, words: &[&str]) -> Said {
        Said::of(self.command(words).output().expect("ran"))
    }

    /// Runs it with --json; what it printed.
    pub fn json(&self, words: &[&str]) -> serde_json::Value {
        let said = self.lodestep(&[&["--json"], words].concat());
        serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"))
    }

    /// Starts it and lets it run; what it says on stderr can be waited for.
    pub fn start(&self, words: &[&str]) -> (Running, Lines) {
        Running::heard(self.command(words).stdout(Stdio::null()))
    }

    /// From now on no more than so many bytes can be added.
    pub fn fill_but(&self, running: &Running, left: u64) {
        if self.keeper.is_none() {
            return limit(running, Some(self.length_of("store.db-wal") + left));
        }
        self.fill(left);
    }

    /// The same for a file system of its own, whoever writes.
    pub fn fill(&self, left: u64) {
        drop(File::create(self.inside("filler")).expect("made"));
        let filler = self.fill_up();
        // What a write that failed had written already counts.
        let length = filler.metadata().expect("there").len();
        filler.set_len(length.saturating_sub(left)).expect("cut");
    }

    /// Takes what was given back meanwhile, too.
    pub fn fill_up(&self) -> File {
        let mut filler = File::options().append(true).open(self.inside("filler")).expect("filled before");
        let zeros = vec![0; 1 << 16];
        while filler.write_all(&zeros).is_ok() {}
        filler
    }

    /// There is room again.
    pub fn make_room(&self, running: &Running) {
        match self.keeper {
            Some(_) => self.empty(),
            None => limit(running, None),
        }
    }

    /// There is room for whoever comes next.
    pub fn empty(&self) {
        if self.keeper.is_some() {
            fs::remove_file(self.inside("filler")).expect("removed");
        }
    }

    /// Can the store's reserve give room on it? A file that may not grow grows for no reserve.
    pub fn has_reserve(&self) -> bool {
        self.keeper.is_some()
    }

    /// As if there never had been room for a reserve.
    pub fn drop_reserve(&self) {
        fs::remove_file(self.inside(RESERVE)).expect("there was one");
    }

    /// The length of a file on the disk, in bytes.
    pub fn length_of(&self, name: &str) -> u64 {
        fs::metadata(self.inside(name)).map_or(0, |found| found.len())
    }

    /// A file on the disk, as the test finds it.
    pub fn inside(&self, name: &str) -> PathBuf {
        let path = self.world.path().join("disk").join(name);
        match &self.keeper {
            Some(keeper) => {
                let root = PathBuf::from(format!("/proc/{}/root", keeper.id()));
                root.join(path.strip_prefix("/").expect("absolute"))
            }
            None => path,
        }
    }
}

/// How large the files of a process may become, in bytes.
fn limit(running: &Running, most: Option<u64>) {
    let pid = Pid::from_raw(running.child.id() as i32).expect("a process");
    prlimit(Some(pid), Resource::Fsize, Rlimit { current: most, maximum: None }).expect("limited");
}
