//! A disk that loses its power: the files that are left when only what was synced is sure to be there.
//!
//! What was written to a file is sure once the file was synced, and a name once its folder was. Of all else any part may
//! be there: each write, whole or some sectors of it, and the first so many changes of names.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// What a power loss never divides.
const SECTOR: usize = 512;

/// One thing that a process did.
#[derive(Clone, Debug)]
pub enum Act {
    Write {
        path: PathBuf,
        at: usize,
        data: Vec<u8>,
    },
    Cut {
        path: PathBuf,
        len: usize,
    },
    Sync(PathBuf),
    Name(Name),
    /// What the process or one of its tools said by then.
    Said(String),
}

/// A change of names.
#[derive(Clone, Debug)]
pub enum Name {
    Create(PathBuf),
    Folder(PathBuf),
    Rename(PathBuf, PathBuf),
    Link(PathBuf, PathBuf),
    Unlink(PathBuf),
}

/// Reads a recording; paths are below `root`.
pub fn acts(text: &str, root: &Path) -> Vec<Act> {
    let lines = text.lines().filter(|line| !line.is_empty());
    lines
        .map(|line| line.strip_prefix('#').map_or_else(|| Act::Said(line.to_owned()), |line| act(line, root)))
        .collect()
}

fn act(line: &str, root: &Path) -> Act {
    let parts: Vec<&str> = line.split('\t').collect();
    let [what, path, number, other, data] = parts[..] else { panic!("{line}") };
    let below = |path: &str| Path::new(path).strip_prefix(root).expect("below the folder").to_owned();
    let (path, number) = (below(path), number.parse().expect("a number"));
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).expect("digits"), 16).expect("a byte");
    match what {
        "write" => Act::Write { path, at: number, data: data.as_bytes().chunks(2).map(byte).collect() },
        "cut" => Act::Cut { path, len: number },
        "sync" => Act::Sync(path),
        "create" => Act::Name(Name::Create(path)),
        "mkdir" => Act::Name(Name::Folder(path)),
        "rename" => Act::Name(Name::Rename(path, below(other))),
        "link" => Act::Name(Name::Link(path, below(other))),
        "unlink" => Act::Name(Name::Unlink(path)),
        other => panic!("{other}"),
    }
}

/// The names of a disk, and which file each of them is; none for a folder.
type Names = BTreeMap<PathBuf, Option<usize>>;

#[derive(Default)]
struct Bytes {
    sure: Vec<u8>,
    /// Writes and cuts since the last sync.
    unsure: Vec<Act>,
}

/// The disk at one moment.
#[derive(Default)]
pub struct Disk {
    files: Vec<Bytes>,
    /// As processes see it.
    names: Names,
    sure: Names,
    /// The changes of names since, with the files that they name.
    unsure: Vec<(Name, Option<usize>)>,
}

impl Disk {
    /// It is done.
    pub fn take(&mut self, act: &Act) {
        match act {
            Act::Write { path, .. } | Act::Cut { path, .. } => {
                if let Some(Some(file)) = self.names.get(path) {
                    self.files[*file].unsure.push(act.clone());
                }
            }
            Act::Sync(path) => match self.names.get(path) {
                Some(Some(file)) => {
                    let bytes = &mut self.files[*file];
                    let unsure = std::mem::take(&mut bytes.unsure);
                    unsure.iter().for_each(|act| apply(&mut bytes.sure, act, |_| true));
                }
                _ => self.sync_folder(path),
            },
            Act::Name(name) => {
                let file = match name {
                    Name::Create(_) => {
                        self.files.push(Bytes::default());
                        Some(self.files.len() - 1)
                    }
                    Name::Folder(_) => None,
                    Name::Rename(from, _) | Name::Link(from, _) | Name::Unlink(from) => {
                        self.names.get(from).copied().flatten()
                    }
                };
                rename(&mut self.names, name, file);
                self.unsure.push((name.clone(), file));
            }
            Act::Said(_) => {}
        }
    }

    fn sync_folder(&mut self, folder: &Path) {
        let is_in = |name: &Name| match name {
            Name::Create(path) | Name::Folder(path) | Name::Unlink(path) => path.parent() == Some(folder),
            Name::Rename(_, to) | Name::Link(_, to) => to.parent() == Some(folder),
        };
        let (sure, unsure) = std::mem::take(&mut self.unsure).into_iter().partition(|(name, _)| is_in(name));
        self.unsure = unsure;
        let sure: Vec<(Name, Option<usize>)> = sure;
        sure.iter().for_each(|(name, file)| rename(&mut self.sure, name, *file));
    }

    /// What is left of it when the power goes now, written below a folder. `chance` gives a number below its argument.
    pub fn leave(&self, folder: &Path, mut chance: impl FnMut(usize) -> usize) {
        let mut names = self.sure.clone();
        let kept = chance(self.unsure.len() + 1);
        self.unsure[..kept].iter().for_each(|(name, file)| rename(&mut names, name, *file));
        // Of what was not synced nothing, about half, or all is there.
        let share = chance(3);
        for (path, file) in &names {
            let path = folder.join(path);
            // A name is nothing without its folder's.
            let Some(parent) = path.parent().filter(|parent| parent.is_dir()) else { continue };
            let Some(file) = file else {
                fs::create_dir(parent.join(path.file_name().expect("a name"))).expect("made");
                continue;
            };
            let bytes = &self.files[*file];
            let mut left = bytes.sure.clone();
            for act in &bytes.unsure {
                if chance(2) >= share {
                    continue;
                }
                let is_torn = chance(4) == 0;
                let torn: Vec<bool> = (0..64).map(|_| !is_torn || chance(2) == 0).collect();
                apply(&mut left, act, |sector| torn[sector % 64]);
            }
            fs::write(path, left).expect("written");
        }
    }
}

fn rename(names: &mut Names, name: &Name, file: Option<usize>) {
    match name {
        Name::Create(path) | Name::Folder(path) => drop(names.insert(path.clone(), file)),
        Name::Link(_, to) => drop(names.insert(to.clone(), file)),
        Name::Rename(from, to) => {
            names.remove(from);
            names.insert(to.clone(), file);
        }
        Name::Unlink(path) => drop(names.remove(path)),
    }
}

/// Changes bytes; of a write those sectors that are `kept`.
fn apply(bytes: &mut Vec<u8>, act: &Act, kept: impl Fn(usize) -> bool) {
    match act {
        Act::Write { at, data, .. } => {
            if bytes.len() < at + data.len() {
                bytes.resize(at + data.len(), 0);
            }
            for (place, byte) in data.iter().enumerate() {
                if kept((at + place) / SECTOR) {
                    bytes[at + place] = *byte;
                }
            }
        }
        Act::Cut { len, .. } => bytes.resize(*len, 0),
        _ => {}
    }
}
