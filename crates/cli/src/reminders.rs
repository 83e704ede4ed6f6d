//! Which reminders of a run's requests were told, in a file of its name beside the store.
//!
//! A reminder is written down before its command runs, so that a crash loses it rather than telling it twice: the next one
//! comes at the next interval. A worker tells of a run only while it holds it, so that one alone writes this file.

use std::path::PathBuf;

use lodestep::core::RunKey;
use lodestep::core::rules::remind::Reminder;

/// The reminders that were told, run by run.
pub struct Told {
    folder: PathBuf,
}

impl Told {
    /// Beside the store of that path.
    pub fn beside(store: &std::path::Path) -> Self {
        let mut folder = store.as_os_str().to_owned();
        folder.push("-files/reminded");
        Self { folder: PathBuf::from(folder) }
    }

    /// Those that were not told before; they count as told from now on. Of a folder that can't be written all are told.
    pub fn take(&self, run: &RunKey, reminders: &[Reminder]) -> Vec<Reminder> {
        let file = self.folder.join(run.run.as_str());
        let before = std::fs::read_to_string(&file).unwrap_or_default();
        let is_new = |reminder: &&Reminder| !before.lines().any(|line| line == name(reminder));
        let new: Vec<Reminder> = reminders.iter().filter(is_new).copied().collect();
        if !new.is_empty() {
            let requests: Vec<String> = new.iter().map(|reminder| reminder.request.to_hex()).collect();
            let replaced = |line: &&str| requests.iter().any(|request| line.starts_with(request));
            let kept = before.lines().filter(|line| !replaced(line)).map(str::to_owned);
            let text: String = kept.chain(new.iter().map(name)).map(|line| format!("{line}\n")).collect();
            let written = file.with_extension("new");
            let _ = std::fs::create_dir_all(&self.folder)
                .and_then(|()| std::fs::write(&written, text))
                .and_then(|()| std::fs::rename(&written, &file));
        }
        new
    }

    /// Of a run that is over nobody is reminded any more.
    pub fn forget(&self, run: &RunKey) {
        let _ = std::fs::remove_file(self.folder.join(run.run.as_str()));
    }
}

/// The due moment: the request, since when it is asked, and which reminder of that.
fn name(reminder: &Reminder) -> String {
    format!("{} {} {}", reminder.request.to_hex(), reminder.since.as_micros(), reminder.number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lodestep::core::{Digest, Ordinal, RunId, Timestamp};

    fn reminder(request: &[u8], since: i64, number: u64) -> Reminder {
        let (since, due) = (Timestamp::from_micros(since), Timestamp::from_micros(since));
        Reminder { action: Ordinal(1), request: Digest::of(request), since, number, due }
    }

    #[test]
    fn each_due_moment_is_told_once_whichever_process_comes_to_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let run = RunKey { namespace: "default".to_owned(), run: RunId::parse("one").expect("sound") };
        let take = |reminders: &[Reminder]| Told::beside(&folder.path().join("store.db")).take(&run, reminders);
        let (first, second, other) = (reminder(b"a", 5, 1), reminder(b"a", 5, 2), reminder(b"b", 5, 1));
        assert_eq!(take(&[first, other]), [first, other]);
        assert_eq!(take(&[first, other]), []);
        assert_eq!(take(&[second, other]), [second], "the next interval, and the other one is kept");
        assert_eq!(take(&[second, other]), []);
        let again = reminder(b"a", 9, 1);
        assert_eq!(take(&[again]), [again], "asked anew after a resume");
        Told::beside(&folder.path().join("store.db")).forget(&run);
        assert_eq!(take(&[other]), [other]);
    }
}
