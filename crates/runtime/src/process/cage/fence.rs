//! Landlock alone: a rule for everything beside the store, at each level from the root down to it, and none for the store.

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use landlock::{ABI, Access, AccessFs, PathBeneath, RulesetCreatedAttr};
use rustix::fs::{Mode, OFlags};

use super::seal::{begin, close, refused};

/// The first Landlock that can refuse to cut a file short.
const ABI_NEEDED: ABI = ABI::V3;

/// Puts this process under rules that allow everything but these places.
///
/// # Errors
///
/// Text when Landlock is missing or older than Linux 6.2's, or when the tool would be hindered: see [`hindered`].
pub(super) fn restrict(keep_out: &[PathBuf], tool_folder: &Path) -> Result<(), String> {
    restrict_beside(keep_out, &used(tool_folder))
}

fn restrict_beside(keep_out: &[PathBuf], used: &[PathBuf]) -> Result<(), String> {
    let above: BTreeSet<&Path> = keep_out.iter().flat_map(|path| path.ancestors().skip(1)).collect();
    if let Some(folder) = used.iter().find(|folder| hindered(folder, &above)) {
        let folder = folder.display();
        return Err(format!("the store is below {folder}, where the tool makes files that Landlock could not allow"));
    }
    let mut ruleset = begin(AccessFs::from_all(ABI_NEEDED)).map_err(refused)?;
    for folder in &above {
        // Names are all that is to be had so: a rule can't stop at the next level.
        if let Some(folder) = open(folder) {
            ruleset = ruleset.add_rule(PathBeneath::new(folder, AccessFs::ReadDir)).map_err(refused)?;
        }
        for (path, accesses) in beside(folder, &above, keep_out) {
            if let Some(path) = open(&path) {
                ruleset = ruleset.add_rule(PathBeneath::new(path, accesses)).map_err(refused)?;
            }
        }
    }
    close(ruleset)
}

/// Where tools make files: their own folder, their home, the place for temporary files.
fn used(tool_folder: &Path) -> Vec<PathBuf> {
    let named = ["HOME", "TMPDIR"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    let all = named.chain([PathBuf::from("/tmp"), tool_folder.to_owned()]);
    all.filter_map(|folder| fs::canonicalize(folder).ok()).collect()
}

/// A new file in a folder above the store has no rule, so that a tool which works there would meet refusals.
/// The root is no such folder: a home of `/` is what a container gives to those that have none.
fn hindered(folder: &Path, above: &BTreeSet<&Path>) -> bool {
    folder != Path::new("/") && above.contains(folder)
}

/// What stands in a folder and is neither a place to keep out of nor on the way to one.
///
/// Links are left out: what they lead to has a rule or has none. So are further names of a file to keep out of.
fn beside(
    folder: &Path,
    above: &BTreeSet<&Path>,
    keep_out: &[PathBuf],
) -> Vec<(PathBuf, landlock::BitFlags<AccessFs>)> {
    let identity = |found: &fs::Metadata| (found.dev(), found.ino());
    let kept: Vec<_> =
        keep_out.iter().filter_map(|path| path.symlink_metadata().ok()).map(|it| identity(&it)).collect();
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let others = entries.filter(|path| !above.contains(path.as_path()));
    others
        .filter_map(|path| Some((path.symlink_metadata().ok()?, path)))
        .filter(|(found, _)| !found.is_symlink() && !kept.contains(&identity(found)))
        .map(|(found, path)| {
            let all = AccessFs::from_all(ABI_NEEDED);
            (path, if found.is_dir() { all } else { all & AccessFs::from_file(ABI_NEEDED) })
        })
        .collect()
}

/// A handle to what stands there, never to what a link leads to: it might have been put there meanwhile.
fn open(path: &Path) -> Option<OwnedFd> {
    rustix::fs::open(path, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beside_the_store_is_neither_it_nor_on_the_way_to_it() {
        let temp = tempfile::tempdir().expect("a folder");
        let folder = temp.path();
        for name in ["way/store", "other"] {
            fs::create_dir_all(folder.join(name)).expect("made");
        }
        for name in ["store.db", "plain"] {
            fs::write(folder.join(name), "").expect("written");
        }
        fs::hard_link(folder.join("store.db"), folder.join("again.db")).expect("linked");
        std::os::unix::fs::symlink(folder.join("way/store"), folder.join("short")).expect("linked");
        let keep_out = [folder.join("way/store"), folder.join("store.db")];
        let above: BTreeSet<&Path> = keep_out.iter().flat_map(|path| path.ancestors().skip(1)).collect();
        let mut found: Vec<_> = beside(folder, &above, &keep_out).into_iter().map(|(path, _)| path).collect();
        found.sort();
        assert_eq!(found, [folder.join("other"), folder.join("plain")]);
    }

    /// A domain holds a thread, so that the test's others stay free.
    fn fenced<T: Send + 'static>(
        keep_out: Vec<PathBuf>,
        act: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, String> {
        let fenced = std::thread::spawn(move || restrict_beside(&keep_out, &[]).map(|()| act()));
        fenced.join().expect("no panic")
    }

    #[test]
    fn g10_behind_the_fence_the_store_can_neither_be_read_nor_changed() {
        let temp = tempfile::tempdir().expect("a folder");
        let agent = fs::canonicalize(temp.path()).expect("a path").join("agent");
        let (own, database) = (agent.join("own"), agent.join("store.db"));
        let beside = agent.join("out");
        fs::create_dir_all(own.join("values")).expect("made");
        fs::create_dir_all(&beside).expect("made");
        for file in [&own.join("values/v"), &database, &beside.join("old")] {
            fs::write(file, "as it was").expect("written");
        }
        fs::hard_link(&database, agent.join("again.db")).expect("linked");
        let there = agent.clone();
        let tried = fenced(vec![own.clone(), database.clone()], move || {
            let file = |name: &str| there.join(name);
            let forbidden = [
                fs::read(file("store.db")).err(),
                fs::read(file("again.db")).err(),
                fs::read(file("own/values/v")).err(),
                fs::write(file("store.db"), "x").err(),
                fs::write(file("own/new"), "x").err(),
                fs::File::options().append(true).open(file("store.db")).err(),
                fs::File::options().write(true).truncate(true).open(file("store.db")).err(),
                fs::remove_file(file("store.db")).err(),
                fs::remove_file(file("own/values/v")).err(),
                fs::rename(file("own"), file("out/own")).err(),
                fs::rename(file("out/old"), file("store.db")).err(),
                fs::hard_link(file("store.db"), file("out/link")).err(),
            ];
            let allowed = fs::create_dir_all(file("out/new/folder"))
                .and_then(|()| fs::rename(file("out/old"), file("out/new/folder/old")))
                .and_then(|()| fs::read_to_string(file("out/new/folder/old")))
                .and_then(|text| fs::read_dir(&there).map(|_| text));
            (forbidden.map(|error| error.map(|error| error.kind())), allowed.map_err(|error| error.to_string()))
        });
        let (forbidden, allowed) = match tried {
            Ok(tried) => tried,
            // Then there is no fence, and nothing is claimed of it.
            Err(why) => return assert!(why.starts_with("Landlock"), "{why}"),
        };
        for (number, kind) in forbidden.into_iter().enumerate() {
            use std::io::ErrorKind::{CrossesDevices, PermissionDenied};
            assert!(matches!(kind, Some(PermissionDenied | CrossesDevices)), "try {number}: {kind:?}");
        }
        assert_eq!(allowed, Ok("as it was".to_owned()));
        for file in [own.join("values/v"), database] {
            assert_eq!(fs::read_to_string(file).expect("there"), "as it was");
        }
    }

    #[test]
    fn a_tool_that_works_above_the_store_is_hindered() {
        let above = BTreeSet::from([Path::new("/"), Path::new("/srv"), Path::new("/srv/data")]);
        for (folder, answer) in [("/srv", true), ("/srv/data", true), ("/srv/agent", false), ("/", false)] {
            assert_eq!(hindered(Path::new(folder), &above), answer, "{folder}");
        }
    }
}
