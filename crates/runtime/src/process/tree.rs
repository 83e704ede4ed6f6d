//! Ending every process that comes from a tool.

#[cfg(not(target_os = "linux"))]
pub(super) use elsewhere::{adopt_orphans, end_everyone, kill_everyone};
#[cfg(target_os = "linux")]
pub(super) use linux::{adopt_orphans, end_everyone, kill_everyone};

use std::io;
use std::time::Duration;

use rustix::process::{Pid, WaitOptions, WaitStatus};

/// The first pause between two rounds of killing; most trees are gone after one.
const FIRST_PAUSE: Duration = Duration::from_millis(1);
/// The longest pause. A process that the kernel cannot end at once (in a hung file system) is not
/// spun on.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// Waits for the end of any child. `None` when there is none.
pub(super) fn wait_for_any() -> io::Result<Option<(Pid, WaitStatus)>> {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some(ended)) => return Ok(Some(ended)),
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::CHILD) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Reaps every child that has ended. True when there are others.
fn reap_ended() -> bool {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::{HashMap, HashSet};
    use std::{fs, io, thread};

    use rustix::process::{Pid, PidfdFlags, Signal};

    use super::{FIRST_PAUSE, LONGEST_PAUSE, reap_ended};

    /// Makes this process the parent of every descendant that loses its own.
    pub(in super::super) fn adopt_orphans() -> io::Result<()> {
        Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
    }

    /// Kills and reaps all descendants. Returns when there is none, however long that takes.
    pub(in super::super) fn end_everyone(main: Pid) {
        let mut pause = FIRST_PAUSE;
        while reap_ended() {
            kill_everyone(main);
            thread::sleep(pause);
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
    }

    /// One round: kills each descendant that is there now. Those that are born meanwhile need
    /// another.
    pub(in super::super) fn kill_everyone(_main: Pid) {
        for process in descendants() {
            // Fails when it has gone by itself, or belongs to another user; the next round looks
            // again.
            let _ = process.kill();
        }
    }

    /// A process as `/proc` shows it. Its number may be used again later, number and birth together
    /// are not.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    struct Seen {
        pid: Pid,
        parent: i32,
        ended: bool,
        /// Clock ticks since the boot.
        born: u64,
    }

    impl Seen {
        fn look(pid: i32) -> Option<Self> {
            Self::parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
        }

        /// `stat` is `pid (name) state parent …`. The name may hold spaces and brackets, so what
        /// counts starts after the last bracket.
        fn parse(pid: i32, stat: &str) -> Option<Self> {
            let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
            let state = fields.next()?;
            let parent = fields.next()?.parse().ok()?;
            // Birth is field 22 of proc_pid_stat(5), where the state is 3 and the parent 4.
            let born = fields.nth(17)?.parse().ok()?;
            Some(Seen { pid: Pid::from_raw(pid)?, parent, ended: matches!(state, "Z" | "X"), born })
        }

        /// Kills this process and never one that got its number since.
        fn kill(&self) -> io::Result<()> {
            let handle = match rustix::process::pidfd_open(self.pid, PidfdFlags::empty()) {
                // Linux before 5.3. The number is a moment old, and numbers are used again only
                // after a full turn.
                Err(rustix::io::Errno::NOSYS) => {
                    return Ok(rustix::process::kill_process(self.pid, Signal::KILL)?);
                }
                handle => handle?,
            };
            // The handle holds whoever has the number now. Same birth: it is the one that was seen.
            if Self::look(self.pid.as_raw_nonzero().get()).is_some_and(|now| now.born == self.born) {
                rustix::process::pidfd_send_signal(handle, Signal::KILL)?;
            }
            Ok(())
        }
    }

    fn descendants() -> Vec<Seen> {
        let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
        let all = numbers.filter_map(|entry| Seen::look(entry.file_name().to_str()?.parse().ok()?));
        below(rustix::process::getpid().as_raw_nonzero().get(), all)
    }

    /// Everyone in `all` who comes from `root` and is alive, parents first.
    fn below(root: i32, all: impl Iterator<Item = Seen>) -> Vec<Seen> {
        let mut children: HashMap<i32, Vec<Seen>> = HashMap::new();
        for process in all {
            children.entry(process.parent).or_default().push(process);
        }
        let mut found = Vec::new();
        // The listing is not of one moment: with numbers used again it could hold a ring.
        let mut visited = HashSet::from([root]);
        let mut parents = vec![root];
        while let Some(parent) = parents.pop() {
            for child in children.remove(&parent).unwrap_or_default() {
                if visited.insert(child.pid.as_raw_nonzero().get()) {
                    parents.push(child.pid.as_raw_nonzero().get());
                    found.push(child);
                }
            }
        }
        found.retain(|process| !process.ended);
        found
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        fn seen(pid: i32, parent: i32, ended: bool) -> Seen {
            Seen { pid: Pid::from_raw(pid).unwrap(), parent, ended, born: 7 }
        }

        #[test]
        fn a_name_with_brackets_and_spaces_is_no_obstacle() {
            let stat = "42 (a) R 1 (b)) S 17 42 42 0 -1 4194304 1 0 0 0 1 2 3 4 20 0 1 0 9876 1 2";
            let found = Seen::parse(42, stat).unwrap();
            assert_eq!((found.parent, found.ended, found.born), (17, false, 9876));
            for broken in ["", "42 (a", "42 (a) S", "42 (a) S x 1"] {
                assert_eq!(Seen::parse(42, broken), None, "{broken}");
            }
        }

        #[test]
        fn descendants_are_those_below_also_in_a_ring() {
            let all = [seen(2, 1, false), seen(3, 2, false), seen(4, 9, false), seen(5, 3, true), seen(9, 4, false)];
            let found: Vec<i32> = below(1, all.into_iter()).iter().map(|p| p.pid.as_raw_nonzero().get()).collect();
            assert_eq!(found, [2, 3]);
        }

        #[test]
        fn this_process_is_visible_in_proc() {
            let pid = rustix::process::getpid().as_raw_nonzero().get();
            assert!(Seen::look(pid).is_some_and(|me| !me.ended));
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::{io, thread};

    use rustix::process::{Pid, Signal};

    use super::{FIRST_PAUSE, LONGEST_PAUSE, reap_ended};

    /// There is no such thing here: an orphan goes to the first process of the system.
    pub(in super::super) fn adopt_orphans() -> io::Result<()> {
        Ok(())
    }

    /// Kills the tool's process group and waits until it is empty. Who left the group goes on.
    pub(in super::super) fn end_everyone(main: Pid) {
        let mut pause = FIRST_PAUSE;
        while rustix::process::test_kill_process_group(main).is_ok() || reap_ended() {
            kill_everyone(main);
            reap_ended();
            thread::sleep(pause);
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
    }

    /// Kills the tool's process group.
    pub(in super::super) fn kill_everyone(main: Pid) {
        // Fails when the group is empty.
        let _ = rustix::process::kill_process_group(main, Signal::KILL);
    }
}
