//! What a store refuses, in the same words and under the same codes whichever store it is.

use lodestep_core::rules::inbox::{MESSAGE_BYTES, Message, UNREAD_MESSAGES, Verdict};
use lodestep_core::{Digest, Error, Ordinal, Result, RunId, RunKey, Timestamp};

use crate::store::{StartRun, WorkerId};

pub(crate) fn lease_lost(run: &RunKey) -> Error {
    Error::new(
        "lease.lost",
        format!("run {} is not this claim's any more", run.run),
        "nothing was stored; whoever holds it now goes on",
    )
}

pub(crate) fn worker_lost(worker: &WorkerId) -> Error {
    Error::new(
        "lease.lost",
        format!("worker {} was taken for dead and its runs were freed", worker.0),
        "make the worker known again; nothing that it did since is lost",
    )
}

/// The index by which runs are claimed names one that its own row calls not due: it would be claimed for ever.
pub(crate) fn not_due(run: &RunKey) -> Error {
    Error::new(
        "store.corrupt",
        format!("the index of due times names run {}, which is not due", run.run),
        "nothing is claimed from it: `lodestep verify` lists what is damaged, `lodestep export --all` saves what can be read",
    )
}

pub(crate) fn cancel_unread(run: &RunKey) -> Error {
    Error::new(
        "run.cancel_unread",
        format!("a cancel, pause or upgrade of run {} is unread: no intent is stored", run.run),
        "read the inbox first",
    )
}

pub(crate) fn key_taken(run: &RunKey, key: &str, holder: &RunKey, action: Ordinal) -> Error {
    Error::new(
        "effect.held",
        format!(
            "run {} can't have the dedupe key `{}`: action {action} of run {} has it",
            run.run,
            key.escape_debug(),
            holder.run
        ),
        "it waits until that one is settled",
    )
}

pub(crate) fn hold_unknown(run: &RunKey) -> Error {
    Error::new(
        "run.hold_unknown",
        format!("something was held since run {} was looked at: no intent is stored", run.run),
        "read the holds first",
    )
}

pub(crate) fn not_found(run: &RunKey) -> Error {
    Error::new(
        "run.not_found",
        format!("there is no run {} in namespace {}", run.run, run.namespace),
        "`lodestep ls` lists the runs",
    )
}

pub(crate) fn id_taken(start: &StartRun, agent: &str, inputs: &Digest) -> Error {
    let how = match (agent == start.agent, *inputs == start.inputs) {
        (false, _) => format!("is a run of agent {agent}"),
        (true, _) => "has other inputs".to_owned(),
    };
    Error::new(
        "run.id_taken",
        format!("run {} exists and {how}", start.key.run),
        "choose another id, or leave it out; nothing changed",
    )
}

pub(crate) fn is_here(run: &RunKey) -> Error {
    Error::new(
        "run.id_taken",
        format!("run {} is in this store already", run.run),
        format!("nothing was taken in; `lodestep show {}` shows the one that is here", run.run),
    )
}

/// Refuses a start whose transition is not that run's first.
pub(crate) fn check_start(start: &StartRun) -> Result<()> {
    let first = &start.transition.checkpoint;
    if first.seq == 1 && first.key() == start.key && first.agent == start.agent {
        return Ok(());
    }
    Err(Error::new(
        "run.illegal_event",
        format!("a start of run {} does not hold its first transition", start.key.run),
        "this is a fault in lodestep",
    ))
}

/// Refuses a message that no inbox takes. Its bytes are given back, to be stored.
pub(crate) fn check_size(message: &Message) -> Result<Vec<u8>> {
    let bytes = message.to_bytes();
    if bytes.len() <= MESSAGE_BYTES {
        return Ok(bytes);
    }
    Err(Error::new(
        "message.too_large",
        format!("a message of {} bytes is more than an inbox takes ({MESSAGE_BYTES})", bytes.len()),
        "store the bytes elsewhere and send where they are",
    ))
}

/// Refuses a message that finds the inbox full. A cancel always has room: it is what empties an inbox that nobody
/// reads, and a second one is never stored. So has a pause: it is stored once before a resume, which has no such right.
pub(crate) fn check_room(run: &RunKey, unread: usize, message: &Message) -> Result<()> {
    if unread < UNREAD_MESSAGES || message.has_room() {
        return Ok(());
    }
    Err(Error::new(
        "message.inbox_full",
        format!("run {} has {unread} unread messages", run.run),
        "nothing was stored; send it again once a worker has read some",
    ))
}

/// What the sender of an id learns that was sent before.
pub(crate) fn sent_before(id: &str, same: bool) -> Verdict {
    if same {
        return Verdict::AlreadyGiven("this message was sent before".to_owned());
    }
    Verdict::Refused(Error::new(
        "message.id_reused",
        format!("another message was sent under the id `{}`", id.escape_debug()),
        "nothing changed; send it under an id of its own",
    ))
}

pub(crate) fn value_damaged(digest: &Digest, run: &RunKey, how: &str) -> Error {
    Error::new(
        "store.value_damaged",
        format!("value {digest} of run {} {how}", run.run),
        format!("`lodestep verify {}` lists what is damaged; other runs go on", run.run),
    )
}

pub(crate) fn value_swept(digest: &Digest, run: &RunKey) -> Error {
    Error::new(
        "store.value_swept",
        format!("value {digest} that run {} names is not stored any more: nothing named it for a day", run.run),
        "nothing was stored; store the value again, then commit again",
    )
}

pub(crate) fn not_swept(why: &str) -> Error {
    Error::new(
        "store.corrupt",
        format!("{why}, so what it names can't be told: no value is swept"),
        "`lodestep verify` says what is damaged",
    )
}

pub(crate) fn removed(run: &RunKey, at: Timestamp) -> Error {
    Error::new(
        "run.removed",
        format!("run {} ended and was removed on {at}", run.run),
        "choose another id: under this one everything would be done again",
    )
}

pub(crate) fn origin_gone(run: &RunKey, origin: &RunId) -> Error {
    Error::new(
        "run.not_found",
        format!("run {origin}, from which run {} would begin, is not here any more", run.run),
        "nothing was started: what its lineage did can't be told without it",
    )
}
