//! What nothing needs any more: values that no transition names, and runs that ended long ago.
//!
//! A value above the inline bound is stored before the transition that names it, so that one which nothing names may be
//! about to be named. It is swept only when two passes, a day apart, found it unnamed and nobody stored it anew between
//! them; a commit that names a swept one is refused. A run goes with its whole lineage or not at all, because what one
//! of its runs did is what the others must not do again.

use std::collections::BTreeSet;

use lodestep_core::event::{Event, named_by};
use lodestep_core::{Digest, INLINE_VALUE_BYTES, RunId, Timestamp};

/// A value is swept by a pass that comes at least so long after the one that first found it unnamed.
pub const SWEEP_AFTER_MS: u64 = 24 * 3_600_000;

/// Is something done, or only said?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nothing changes; the answer is what [`Mode::Apply`] would give.
    DryRun,
    /// It is done.
    Apply,
}

/// How many, and how large together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// How many.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Amount {
    /// One more.
    pub fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
    }
}

/// What a pass over the values found and did. Each value above the inline bound is counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// Named by a transition.
    pub named: Amount,
    /// Named by none, and not long enough yet: a pass a day after the first that found it so sweeps it.
    pub waiting: Amount,
    /// Gone.
    pub swept: Amount,
    /// What dead processes left, gone too: drafts of files, locks.
    pub leftovers: Amount,
    /// Bytes that are free within the store's own file. They are used again; [`crate::Store::compact`] gives them back.
    pub free_bytes: u64,
}

/// What came of the removal of a lineage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Removal {
    /// Nothing of it is there any more. The files of its values are left to [`crate::Store::sweep`].
    Removed(Removed),
    /// All of it stays as it was.
    Kept(Kept),
}

/// How much went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Runs.
    pub runs: u64,
    /// Transitions.
    pub transitions: u64,
    /// Bytes of journals, values in rows, transcripts, snapshots and messages, as they were stored.
    pub bytes: u64,
}

/// Why a lineage stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// This run of it is not over.
    NotOver(RunId),
    /// A word to this run, such as what became of an effect, was not read yet.
    Unread(RunId),
    /// An effect of this run has this dedupe key, which is kept for ever.
    DedupeKey(RunId, String),
    /// This run belongs to the lineage and was not named.
    Relative(RunId),
}

/// Has a value that was first found unnamed then waited long enough?
pub fn is_due(since: Timestamp, now: Timestamp) -> bool {
    since.plus_ms(SWEEP_AFTER_MS) <= now
}

/// The values above the inline bound that a transition names: their bytes have to be there when it is committed.
pub fn large_values<'a>(events: impl IntoIterator<Item = &'a Event>) -> BTreeSet<Digest> {
    let named = events.into_iter().flat_map(named_by);
    named.filter(|value| value.len > INLINE_VALUE_BYTES as u64).map(|value| value.digest).collect()
}

/// Everything in an envelope's bytes that could be a digest.
///
/// Whatever an event is, known to this build or not, a value that it names is spelled so: a CBOR string of 32 bytes. Some
/// of what is found names no value. That keeps a value too long and never sweeps one too early, which a list of the
/// events that name values would do as soon as one was forgotten.
pub fn digests_in(envelope: &[u8]) -> impl Iterator<Item = Digest> + '_ {
    const HEAD: [u8; 2] = [0x58, 32];
    envelope.windows(HEAD.len() + 32).filter(|window| window.starts_with(&HEAD)).filter_map(|window| {
        let bytes: [u8; 32] = window[HEAD.len()..].try_into().ok()?;
        Some(Digest::from_bytes(bytes))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lodestep_core::ValueRef;
    use lodestep_core::event::{ArtifactSaved, Envelope, NoteTaken};

    #[test]
    fn a_value_is_found_in_the_bytes_of_whatever_event_names_it() {
        let values = [ValueRef::of(&[1; 70_000]), ValueRef::of(&[2; 10])];
        let events = vec![
            Event::ArtifactSaved(ArtifactSaved { name: "a".to_owned(), version: 1, content: values[0] }),
            Event::NoteTaken(NoteTaken { key: "k".to_owned(), text: Some(values[1]) }),
        ];
        assert_eq!(large_values(&events), BTreeSet::from([values[0].digest]));
        let at = Timestamp::from_micros(1);
        let bytes = Envelope { format: 1, seq: 1, at, epoch: 0, active_us: 0, events }.to_bytes();
        let found: Vec<Digest> = digests_in(&bytes).collect();
        assert!(values.iter().all(|value| found.contains(&value.digest)), "{found:?}");
    }

    #[test]
    fn a_day_is_a_day() {
        let since = Timestamp::from_micros(5_000);
        assert!(!is_due(since, since.plus_ms(SWEEP_AFTER_MS - 1)));
        assert!(is_due(since, since.plus_ms(SWEEP_AFTER_MS)));
    }
}
