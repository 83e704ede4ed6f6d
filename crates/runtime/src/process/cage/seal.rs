//! The part of Landlock that forbids no path: a tool under it can't change its view of the files, and can't reach into
//! processes outside of it.
//!
//! Any Landlock domain does the first (no mount, no unmount, no other root) and the second (no `ptrace`, and so no
//! `/proc/PID/mem`, `environ`, `fd` and `root` of a process outside). Signals to outside are refused from Linux 6.12 on.

use std::fmt::Display;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};

/// Closes a domain round this process that allows every path.
///
/// # Errors
///
/// Text when the kernel has no Landlock, or one older than Linux 5.19's: that one forbids all moves between folders.
pub(super) fn seal() -> Result<(), String> {
    // Moves between folders are refused unless they are allowed, and a ruleset has to be about something.
    let moves = AccessFs::Refer;
    let root = PathFd::new("/").map_err(refused)?;
    let ruleset = begin(moves.into()).and_then(|ruleset| ruleset.add_rule(PathBeneath::new(root, moves)));
    close(ruleset.map_err(refused)?)
}

/// A ruleset about these accesses, all of which the kernel has to know, and about signals if it knows those.
pub(super) fn begin(accesses: BitFlags<AccessFs>) -> Result<RulesetCreated, RulesetError> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(accesses)?
        .set_compatibility(CompatLevel::BestEffort)
        .scope(Scope::Signal)?
        .create()
}

/// The newest version whose every access and scope the kernel takes. A ruleset that is only made forbids nothing.
pub(super) fn abi() -> Option<u32> {
    let known = [(ABI::V6, 6), (ABI::V5, 5), (ABI::V4, 4), (ABI::V3, 3), (ABI::V2, 2), (ABI::V1, 1)];
    let takes = |abi: ABI| {
        let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
        let ruleset = ruleset.handle_access(AccessFs::from_all(abi))?;
        let net = AccessNet::from_all(abi);
        let ruleset = if net.is_empty() { ruleset } else { ruleset.handle_access(net)? };
        let scopes = Scope::from_all(abi);
        let ruleset = if scopes.is_empty() { ruleset } else { ruleset.scope(scopes)? };
        ruleset.create()
    };
    known.into_iter().find(|(abi, _)| takes(*abi).is_ok()).map(|(_, number)| number)
}

/// Rights of the system's administrator that reach round paths: files by their handles, other processes' memory, the
/// kernel's own. Landlock does not take them away, and the kernel's newer ways to look into a process ask for them alone.
const ROUND_PATHS: [CapabilitySet; 8] = [
    CapabilitySet::SYS_ADMIN,
    CapabilitySet::SYS_PTRACE,
    CapabilitySet::SYS_RAWIO,
    CapabilitySet::SYS_MODULE,
    CapabilitySet::DAC_READ_SEARCH,
    CapabilitySet::MKNOD,
    CapabilitySet::PERFMON,
    CapabilitySet::BPF,
];

/// Puts this process, and all that it starts, under a ruleset.
pub(super) fn close(ruleset: RulesetCreated) -> Result<(), String> {
    for right in ROUND_PATHS {
        // `exec` then gives no such right. Fails for who may not give rights away, and so has none.
        let _ = remove_capability_from_bounding_set(right);
    }
    match ruleset.restrict_self().map_err(refused)?.ruleset {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        RulesetStatus::NotEnforced => Err(refused("it is not there")),
    }
}

pub(super) fn refused(error: impl Display) -> String {
    format!("Landlock: {error}")
}
