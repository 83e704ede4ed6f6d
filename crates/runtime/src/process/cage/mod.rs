//! The cage of a tool process: what it is kept from, whatever its program does.
//!
//! The stub enters the cage right before it becomes the tool, and everything that the tool starts is in it too. There are
//! three ways, tried in this order, because no single one works on every machine:
//!
//! - **veil**: a view of the files of its own (a mount namespace) in which empty, unchangeable folders and files lie over
//!   the store's. New files beside them, links to them and other paths to them need no thought. Landlock then keeps
//!   the tool from changing the view and from reading through processes outside.
//! - **fence**: where the kernel or a container refuses such a view, Landlock allows everything but the store. It can only
//!   allow, so what is made later beside the store or beside a folder above it can't be used. Therefore it is refused
//!   when the tool would meet that in its own folder, its home or its place for temporary files.
//! - **open**: not kept from the store. A tool whose cage is [`Demand::Required`] is not started like that.
//!
//! It does not limit what else a tool can read, write or connect to. On systems other than Linux there is no cage.

#[cfg(target_os = "linux")]
mod fence;
#[cfg(target_os = "linux")]
mod seal;
#[cfg(target_os = "linux")]
mod veil;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// What a tool is kept from, and how much that matters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cage {
    /// Files and folders, absolute and without links, that the tool can neither read nor change. Those that do not exist
    /// when the tool starts are passed over.
    pub keep_out: Vec<PathBuf>,
    /// What happens where the machine can't keep it from them.
    pub demand: Demand,
}

/// What happens where a machine can't offer a cage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Demand {
    /// The tool is started all the same, with as much of the cage as there is.
    #[default]
    BestEffort,
    /// The tool is not started.
    Required,
}

/// One way into the cage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Way {
    /// Empty files over the store's, in a view of the tool's own.
    Veil,
    /// Everything is allowed by name but the store.
    Fence,
    /// Not kept from the store.
    Open,
}

impl Cage {
    /// The ways to try, best first.
    pub(super) fn ways(&self) -> &'static [Way] {
        match (self.keep_out.is_empty(), self.demand) {
            (true, _) => &[Way::Open],
            (false, Demand::Required) => &[Way::Veil, Way::Fence],
            (false, Demand::BestEffort) => &[Way::Veil, Way::Fence, Way::Open],
        }
    }
}

/// Keeps other processes of this user from the memory of this one, which has secrets and the store's files open.
///
/// For a worker's `main`. There are no core dumps then, and no debugger but the administrator's. Where the system has no such
/// thing, nothing happens.
pub fn guard_memory() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

/// The version of Landlock that this kernel has, as far as this build knows them; `None` where there is none.
///
/// From 2 (Linux 5.19) on a tool can be sealed, from 3 (6.2) on fenced, from 6 (6.12) on kept from signals to outside.
pub fn landlock_abi() -> Option<u32> {
    #[cfg(target_os = "linux")]
    return seal::abi();
    #[cfg(not(target_os = "linux"))]
    None
}

/// Enters the cage by one way. After an error this process may be half in it, and is good for nothing but to say so.
///
/// # Errors
///
/// Text on what the machine refuses.
#[cfg(target_os = "linux")]
pub(super) fn enter(way: Way, keep_out: &[PathBuf], tool_folder: &std::path::Path) -> Result<(), String> {
    // A program that gains rights by its file (setuid) could leave any cage.
    rustix::thread::set_no_new_privs(true).map_err(|error| format!("no_new_privs is refused: {error}"))?;
    let there: Vec<PathBuf> = keep_out.iter().filter(|path| path.symlink_metadata().is_ok()).cloned().collect();
    if way != Way::Open && there.is_empty() {
        return Err(format!("nothing of {keep_out:?} is there to be kept from"));
    }
    match way {
        Way::Veil => {
            veil::cover(&there)?;
            seal::seal()
        }
        Way::Fence => fence::restrict(&there, tool_folder),
        Way::Open => {
            // As far as it goes: the rest of what Landlock keeps from a tool does not hang on the store.
            let _ = seal::seal();
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_best_effort_ends_in_the_open() {
        let cage = |demand| Cage { keep_out: vec!["/store".into()], demand };
        assert_eq!(cage(Demand::Required).ways(), [Way::Veil, Way::Fence]);
        assert_eq!(cage(Demand::BestEffort).ways(), [Way::Veil, Way::Fence, Way::Open]);
        assert_eq!(Cage { keep_out: Vec::new(), demand: Demand::Required }.ways(), [Way::Open]);
    }
}
