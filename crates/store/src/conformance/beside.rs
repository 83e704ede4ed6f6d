//! What stands beside a journal is what a replay of it gives, and a run that can't be read is kept from every worker.

use std::sync::Arc;

use lodestep_core::Ordinal;
use lodestep_core::event::Gate;
use lodestep_core::rules::inbox::{Message, Verdict, Word};
use lodestep_core::rules::standing::Status;

use super::script::{Held, How, approval, approve, request_name, same};
use super::{Checked, Failed, Subject, ensure, ensure_equal};
use crate::audit::Beside;
use crate::replay::Replay;
use crate::rows::{Head, Tables};
use crate::store::{EffectRow, Hold, Store, Want};

async fn beside(store: &dyn Store, held: &Held) -> Result<Beside, Failed> {
    Ok(store.beside(&held.claim.run).await?)
}

pub(super) async fn what_stands_beside_is_what_a_replay_gives(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let mut held = Held::begin(&store, "one").await?;
    let asked = request_name(&held.key(), 2);
    let draft = held.proposal([Gate::Open, approval(asked)])?;
    held.commit(draft, How::default()).await?;
    let draft = held.intent(Ordinal(1))?;
    held.commit(draft, How::default()).await?;
    let draft = held.outcome(Ordinal(1))?;
    held.commit(draft, How::default()).await?;
    let draft = held.artifact("a", 1, b"content")?;
    held.commit(draft, How::default()).await?;
    store.send(&held.key(), "yes", &approve(asked)).await?;
    let draft = held.reading().await?;
    held.commit(draft, How { release: true, ..How::default() }).await?;
    let found = beside(&*subject.reopen(), &held).await?;
    let mut replay = Replay::default();
    for row in store.journal(&held.claim.run, 1, 99).await? {
        replay.take_in(&row.envelope)?;
    }
    ensure_equal!(replay.checkpoint.as_ref(), Some(&held.checkpoint));
    let requests = std::mem::take(&mut replay.tables.requests);
    ensure_equal!(requests.iter().map(|asked| (asked.name, asked.open)).collect::<Vec<_>>(), [(asked, false)]);
    ensure_equal!(found.tables, replay.tables);
    ensure_equal!(found.tables.effects, [EffectRow { same: same(Ordinal(1)), ordinal: Ordinal(1), seq: 3 }]);
    ensure!(found.tables != Tables::default(), "nothing stands beside it");
    let row = &found.row;
    let head = Head {
        seq: row.seq,
        digest: row.head,
        status: row.status,
        why: row.why.clone(),
        inbox_read: found.inbox_read,
        updated_at: row.updated_at,
    };
    ensure_equal!(Some(head), replay.head());
    ensure_equal!((found.found_as.as_str(), found.listed_in.as_str()), ("one", "default"));
    ensure_equal!((found.cancel_at, found.letters.len(), found.holder_is_known), (None, 1, true));
    ensure_equal!(found.letters[0].message.as_ref().ok(), Some(&approve(asked)));
    let all = store.audit().await?;
    ensure_equal!(all.runs, [held.claim.run.clone()]);
    ensure_equal!(all.strays.len(), 0);
    Ok(())
}

pub(super) async fn a_run_that_cannot_be_read_is_nobody_s_until_it_is_released(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let mut held = Held::begin(&store, "one").await?;
    held.step("a step").await?;
    store.hold(&held.claim, "undecodable: something").await?;
    let stale = store.hold(&held.claim, "again").await;
    ensure_equal!(stale.map_err(|error| error.code()), Err("lease.lost"));
    let row = subject.reopen().load(&held.key()).await?.row;
    ensure_equal!((row.status, row.hold, row.due), (Status::Quarantined, Some(Hold::Undecodable), None));
    ensure_equal!((row.why.as_str(), row.crashes, row.holder), ("undecodable: something", 0, None));
    let other = store.enlist().await?;
    ensure_equal!(store.claim(&other, Want::Due(9)).await?.len(), 0);
    let say = |word| Message { by: "ann".to_owned(), word };
    let Verdict::Refused(error) = store.send(&held.key(), "on", &say(Word::Resume)).await? else {
        return Err("it takes a resume".to_owned().into());
    };
    ensure_equal!(error.code(), "run.quarantined");
    ensure_equal!(store.claim(&other, Want::Due(9)).await?.len(), 0);
    // Here nothing is damaged: it can be read again.
    ensure_equal!(store.send(&held.key(), "free", &say(Word::Release)).await?, Verdict::Accepted);
    let row = subject.reopen().load(&held.key()).await?.row;
    ensure_equal!((row.status, row.hold, row.inbox, row.why.as_str()), (Status::Ready, None, 0, ""));
    let claims = store.claim(&other, Want::Due(9)).await?;
    ensure_equal!(claims.iter().map(|claim| (claim.crashes, claim.rewound)).collect::<Vec<_>>(), [(0, false)]);
    // A cancel frees it too, and is stored.
    store.hold(&claims[0], "undecodable: something").await?;
    let cancel = say(Word::Cancel { reason: "no use".to_owned() });
    ensure_equal!(store.send(&held.key(), "end", &cancel).await?, Verdict::Accepted);
    let loaded = subject.reopen().load(&held.key()).await?;
    ensure_equal!((loaded.row.hold, loaded.unread.len()), (None, 1));
    ensure_equal!(store.claim(&other, Want::Due(9)).await?.len(), 1);
    Ok(())
}
