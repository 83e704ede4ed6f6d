//! Hints: a waiting worker learns of a change, also of another process's.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::time::timeout;

use super::script::{Held, RELEASE, approve, begin};
use super::{Checked, Failed, Subject, ensure};

/// So long that only a hint that never comes takes it.
const NEVER: Duration = Duration::from_secs(10);

/// What the trait promises.
const BOUND: Duration = Duration::from_millis(50);

async fn hinted(changes: &mut watch::Receiver<u64>, of: &str) -> Checked {
    match timeout(NEVER, changes.changed()).await {
        Ok(Ok(())) => Ok(()),
        _ => Err(format!("no hint of {of}").into()),
    }
}

pub(super) async fn a_change_is_hinted_at_to_this_handle(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let mut changes = store.changes();
    begin(&*store, "one").await?;
    hinted(&mut changes, "a start").await?;
    let mut held = Held::take(&store, "one", store.enlist().await?).await?;
    changes.mark_unchanged();
    let name = held.ask(RELEASE).await?;
    hinted(&mut changes, "a release").await?;
    changes.mark_unchanged();
    store.send(&held.key(), "yes", &approve(name)).await?;
    hinted(&mut changes, "a message").await?;
    let held = Held::take(&store, "one", held.worker).await?;
    changes.mark_unchanged();
    store.retire(&held.worker).await?;
    hinted(&mut changes, "a retired worker").await?;
    Ok(())
}

pub(super) async fn a_change_is_hinted_at_to_another_handle_within_50_ms(subject: Arc<dyn Subject>) -> Checked {
    let (here, there) = (subject.store(), subject.reopen());
    let mut changes = there.changes();
    let mut waits = Vec::new();
    for round in 0..10 {
        let mut held = Held::begin(&here, &format!("r{round}")).await?;
        let name = held.ask(RELEASE).await?;
        waits
            .push(timed(&mut changes, "a start", async { begin(&*here, &format!("s{round}")).await.map(drop) }).await?);
        let send = async { Ok(here.send(&held.key(), "yes", &approve(name)).await.map(drop)?) };
        waits.push(timed(&mut changes, "a message", send).await?);
    }
    // The machine may be busy once; half of them within the bound can't be luck.
    waits.sort();
    let median = waits[waits.len() / 2];
    ensure!(median <= BOUND, "half of the hints took {median:?} or longer");
    Ok(())
}

/// How long after the act the hint came.
async fn timed(
    changes: &mut watch::Receiver<u64>,
    of: &str,
    act: impl Future<Output = Checked>,
) -> Result<Duration, Failed> {
    // What came before has been told, or is told now.
    while timeout(2 * BOUND, changes.changed()).await.is_ok() {}
    act.await?;
    let since = Instant::now();
    hinted(changes, of).await?;
    Ok(since.elapsed())
}
