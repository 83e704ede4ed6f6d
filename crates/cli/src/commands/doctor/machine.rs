//! The machine: what keeps tools from the store here, and its clock.

use std::path::Path;

use lodestep::Runtime;
use lodestep::core::Timestamp;
use lodestep::process::landlock_abi;
use lodestep::store::{Clock, SystemClock};

use super::checkup::{Area, Checkup};
use super::store::Opened;

/// No clock that is right shows an earlier time than the day on which this was written: 2025-01-01.
const EARLIEST_US: i64 = 1_735_689_600_000_000;

/// A store whose newest commit is so far in the future, in microseconds, was written under another clock.
const AHEAD_US: i64 = 60_000_000;

/// Looks at the cage and the clock.
pub async fn look(opened: Option<&Opened>, checkup: &mut Checkup) {
    landlock(checkup);
    if let Some(opened) = opened {
        cage(&opened.runtime, checkup).await;
    }
    clock(opened.and_then(|opened| opened.last_commit), checkup);
}

fn landlock(checkup: &mut Checkup) {
    const NEXT: &str = "a newer kernel keeps tools from more; docs/security.md says what each version gives";
    match landlock_abi() {
        Some(abi @ 6..) => checkup.ok(
            Area::Cage,
            format!("Landlock {abi}: tools can't look into, change or signal processes outside of their cage"),
        ),
        Some(abi @ 2..) => checkup.warn(
            Area::Cage,
            format!("Landlock {abi}: tools can't look into processes outside of their cage, and can signal them (before Linux 6.12)"),
            NEXT,
        ),
        Some(abi) => checkup.warn(Area::Cage, format!("Landlock {abi} is older than what a cage needs (Linux 5.19)"), NEXT),
        None => checkup.warn(Area::Cage, "there is no Landlock here: tools can look into processes of their user", NEXT),
    }
}

async fn cage(runtime: &Runtime, checkup: &mut Checkup) {
    let own = runtime.store().own_paths();
    // The hardest case, and the usual one: a tool whose folder is the one that the store's stands in. Only a view of its own keeps
    // it from the store there.
    let Some(folder) = own.first().and_then(|path| path.parent()) else { return };
    match runtime.cage_fault(folder).await {
        None => checkup.ok(Area::Cage, format!("tools that run in {} are kept from the store", folder.display())),
        Some(why) => elsewhere(runtime, folder, &why, checkup).await,
    }
}

async fn elsewhere(runtime: &Runtime, folder: &Path, why: &str, checkup: &mut Checkup) {
    let folder = folder.display();
    match runtime.cage_fault(Path::new("/")).await {
        None => checkup.warn(
            Area::Cage,
            format!("tools that run in {folder} are not kept from the store; those that run elsewhere are: {why}"),
            "put the store where no tool makes files (docs/security.md), or give --cage required",
        ),
        Some(_) => checkup.warn(
            Area::Cage,
            format!("tools are not kept from the store on this machine: {why}"),
            "let users have mount namespaces, or give --cage required: then no tool is started",
        ),
    }
}

fn clock(last_commit: Option<Timestamp>, checkup: &mut Checkup) {
    let now = SystemClock.wall();
    if now.as_micros() < EARLIEST_US {
        checkup.problem(
            Area::Clock,
            format!("it shows {now}"),
            "set the clock: timers, expiries and deadlines follow it",
        );
    } else if let Some(last) = last_commit.filter(|last| last.as_micros() > now.as_micros().saturating_add(AHEAD_US)) {
        let what = format!("it shows {now}, and a run was last committed on {last}");
        checkup.warn(
            Area::Clock,
            what,
            "set the clock; until then nothing that was committed goes back in time, and timers wait",
        );
    } else {
        checkup.ok(Area::Clock, format!("it shows {now}"));
    }
}
