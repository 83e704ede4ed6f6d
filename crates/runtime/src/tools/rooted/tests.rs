//! ART-02: nothing outside of a root is read, written, made or removed.

use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

const CANARY: &[u8] = b"canary";

/// A root next to a folder that must stay as it is.
struct Fixture {
    base: tempfile::TempDir,
    rooted: Rooted,
}

impl Fixture {
    fn new() -> Self {
        let base = tempfile::tempdir().unwrap();
        fs::create_dir_all(base.path().join("root/sub")).unwrap();
        fs::create_dir_all(base.path().join("outside/deep")).unwrap();
        fs::write(base.path().join("outside/canary"), CANARY).unwrap();
        fs::write(base.path().join("outside/deep/canary"), CANARY).unwrap();
        fs::write(base.path().join("root/plain.md"), "plain").unwrap();
        let rooted = Rooted::open(&base.path().join("root")).unwrap();
        Fixture { base, rooted }
    }

    fn path(&self, below: &str) -> std::path::PathBuf {
        self.base.path().join(below)
    }

    fn read(&self, name: &str) -> Result<Vec<u8>, RootedError> {
        let mut bytes = Vec::new();
        self.rooted.open_for_read(name)?.read_to_end(&mut bytes).unwrap();
        Ok(bytes)
    }

    /// Everything outside, as paths and contents.
    fn outside(&self) -> Vec<(String, Vec<u8>)> {
        let mut found = Vec::new();
        collect(&self.path("outside"), &mut found);
        found.sort();
        found
    }
}

fn collect(folder: &Path, found: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, found);
        }
        found.push((path.display().to_string(), fs::read(&path).unwrap_or_default()));
    }
}

fn kind(error: &RootedError) -> &'static str {
    match error {
        RootedError::Name(_) => "name",
        RootedError::Link(_) => "link",
        RootedError::HardLink(_) => "hard link",
        RootedError::NotAFile(_) => "not a file",
        RootedError::NotAFolder(_) => "not a folder",
        RootedError::Missing(_) => "missing",
        RootedError::Io { .. } => "io",
    }
}

#[test]
fn art_02_links_and_bad_names_are_refused() {
    let fixture = Fixture::new();
    symlink(fixture.path("outside/canary"), fixture.path("root/link.md")).unwrap();
    symlink("../outside", fixture.path("root/linked")).unwrap();
    symlink("plain.md", fixture.path("root/inside.md")).unwrap();
    symlink("sub", fixture.path("root/inside")).unwrap();
    symlink("nowhere", fixture.path("root/dangling.md")).unwrap();
    symlink("../outside/new", fixture.path("root/dangling-out.md")).unwrap();
    fs::hard_link(fixture.path("outside/canary"), fixture.path("root/hard.md")).unwrap();
    let _socket = UnixListener::bind(fixture.path("root/socket")).unwrap();
    let before = fixture.outside();
    for (name, read, write) in [
        ("link.md", "link", "link"),
        ("linked/canary", "link", "link"),
        ("linked/new", "link", "link"),
        ("linked/deep/new", "link", "link"),
        ("inside.md", "link", "link"),
        ("inside/new", "link", "link"),
        ("dangling.md", "link", "link"),
        ("dangling-out.md", "link", "link"),
        ("hard.md", "hard link", "hard link"),
        ("sub", "not a file", "not a file"),
        ("socket", "not a file", "not a file"),
        ("plain.md/x", "not a folder", "not a folder"),
        ("../outside/canary", "name", "name"),
        ("sub/../../outside/canary", "name", "name"),
        ("/etc/passwd", "name", "name"),
        ("%2e%2e/outside/canary", "name", "name"),
        ("CON", "name", "name"),
        ("", "name", "name"),
        ("x\0.txt", "name", "name"),
    ] {
        assert_eq!(kind(&fixture.read(name).unwrap_err()), read, "read {name:?}");
        let error = fixture.rooted.write_atomically(name, b"overwritten").unwrap_err();
        assert_eq!(kind(&error), write, "write {name:?}");
        assert!(error.to_string().contains("use "), "{error}");
    }
    assert_eq!(fixture.outside(), before);
    assert!(fixture.path("root/link.md").is_symlink() && fixture.path("root/dangling.md").is_symlink());
    assert_eq!(kind(&fixture.read("none.md").unwrap_err()), "missing");
    assert_eq!(kind(&fixture.read("none/at/all.md").unwrap_err()), "missing");
}

#[test]
fn art_02_a_listing_shows_only_what_can_be_opened() {
    let fixture = Fixture::new();
    symlink(fixture.path("outside"), fixture.path("root/linked")).unwrap();
    symlink("plain.md", fixture.path("root/link.md")).unwrap();
    fs::hard_link(fixture.path("outside/canary"), fixture.path("root/hard.md")).unwrap();
    fs::write(fixture.path("root/a\nb.md"), "").unwrap();
    fs::write(fixture.path("root/sub/b.md"), "12").unwrap();
    fs::write(fixture.path("root/sub-a.md"), "1").unwrap();
    let names = |wanted: &dyn Fn(&str, Kind) -> bool| -> Vec<String> {
        let listing = fixture.rooted.list(wanted).unwrap();
        listing.files.into_iter().map(|file| format!("{} {}", file.name, file.bytes)).collect()
    };
    assert_eq!(names(&|_, _| true), ["plain.md 5", "sub-a.md 1", "sub/b.md 2"]);
    assert_eq!(names(&|_, kind| kind == Kind::File), ["plain.md 5", "sub-a.md 1"]);
    assert_eq!(names(&|name, _| name.starts_with("sub")), ["sub-a.md 1", "sub/b.md 2"]);
}

#[test]
fn a_write_replaces_and_leaves_nothing_behind() {
    let fixture = Fixture::new();
    for (name, bytes) in
        [("new.md", "one"), ("new.md", "two"), ("a/b/c.md", "deep"), ("a/b/c.md", ""), ("plain.md", "x")]
    {
        fixture.rooted.write_atomically(name, bytes.as_bytes()).unwrap();
        assert_eq!(fixture.read(name).unwrap(), bytes.as_bytes(), "{name}");
    }
    let listing = fixture.rooted.list(|_, _| true).unwrap();
    let names: Vec<&str> = listing.files.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(names, ["a/b/c.md", "new.md", "plain.md"]);
}

#[test]
fn a_failed_write_keeps_the_old_file() {
    let fixture = Fixture::new();
    // A folder that comes in the way after the look cannot be made at will; a name too long for the
    // system can.
    fs::write(fixture.path("root/sub/kept.md"), "kept").unwrap();
    assert!(fixture.rooted.write_atomically("sub", b"x").is_err());
    assert!(fixture.rooted.write_atomically("sub/kept.md/x", b"x").is_err());
    assert_eq!(fixture.read("sub/kept.md").unwrap(), b"kept");
    assert_eq!(fs::read_dir(fixture.path("root/sub")).unwrap().count(), 1);
}

/// Runs `attack` until `work` has been done.
fn against(attack: impl Fn() + Sync, work: impl FnOnce()) {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                attack();
            }
        });
        // Also stops the attacker when an assertion fails.
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        done.store(true, Ordering::SeqCst);
        result.unwrap();
    });
}

#[test]
fn art_02_a_file_swapped_for_a_link_never_shows_the_canary() {
    let fixture = Fixture::new();
    symlink("../outside/canary", fixture.path("root/.link")).unwrap();
    fs::write(fixture.path("root/target"), "inside").unwrap();
    let (target, link) = (fixture.path("root/target"), fixture.path("root/.link"));
    let attack = || {
        rustix::fs::renameat_with(rustix::fs::CWD, &target, rustix::fs::CWD, &link, rustix::fs::RenameFlags::EXCHANGE)
            .unwrap();
    };
    let (mut read, mut refused) = (0, 0);
    against(attack, || {
        // On until both have been seen, so that there was a race at all.
        while read + refused < 2000 || read == 0 || refused == 0 {
            match fixture.read("target") {
                Ok(bytes) => {
                    assert_eq!(bytes, b"inside");
                    read += 1;
                }
                Err(error) => {
                    assert_eq!(kind(&error), "link");
                    refused += 1;
                }
            }
        }
    });
}

#[test]
fn art_02_a_folder_swapped_for_a_link_never_leads_outside() {
    let fixture = Fixture::new();
    symlink("../outside", fixture.path("root/.link")).unwrap();
    fs::write(fixture.path("root/sub/canary"), "inside").unwrap();
    let (target, link) = (fixture.path("root/sub"), fixture.path("root/.link"));
    let before = fixture.outside();
    let attack = || {
        rustix::fs::renameat_with(rustix::fs::CWD, &target, rustix::fs::CWD, &link, rustix::fs::RenameFlags::EXCHANGE)
            .unwrap();
    };
    against(attack, || {
        let (mut done, mut refused) = (0, 0);
        while done + refused < 2000 || done == 0 || refused == 0 {
            let read = fixture.read("sub/canary");
            let wrote = fixture.rooted.write_atomically("sub/new/file", b"new");
            for outcome in [read.map(|bytes| assert_eq!(bytes, b"inside")), wrote] {
                match outcome {
                    Ok(()) => done += 1,
                    Err(error) => {
                        // The second when it was a folder again at the look that names the reason.
                        assert!(["link", "not a folder"].contains(&kind(&error)), "{error}");
                        refused += 1;
                    }
                }
            }
        }
    });
    assert_eq!(fixture.outside(), before);
}
