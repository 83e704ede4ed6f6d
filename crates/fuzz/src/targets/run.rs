//! A run that is read back and gone on with: a journal folded, words judged.

use std::collections::BTreeSet;

use lodestep_core::context::{Blobs, assemble, wants};
use lodestep_core::fold::{fold, fold_first};
use lodestep_core::hold::Held;
use lodestep_core::rules::dedupe::DedupeKeys;
use lodestep_core::rules::inbox::{Message, Verdict, judge, read};
use lodestep_core::rules::owed::{Hands, owed};
use lodestep_core::rules::recover::recover;
use lodestep_core::rules::standing::standing;
use lodestep_core::{Checkpoint, Draft, Timestamp};
use minicbor::Decoder;

use super::{answer, answer_of};
use crate::corpus::{definition, run_begun};

/// A journal: the CBOR items of the input are its envelopes. What folds is gone on with as a worker would.
pub(super) fn journal(input: &[u8]) -> u64 {
    let mut envelopes = items(input).into_iter();
    let first = envelopes.next().unwrap_or_default();
    let mut checkpoint = match fold_first(first) {
        Ok((checkpoint, _)) => checkpoint,
        Err(error) => return answer(error.what()),
    };
    let mut said = "whole".to_owned();
    for envelope in envelopes {
        let mut after = checkpoint.clone();
        match fold(&mut after, envelope) {
            Ok(_) => checkpoint = after,
            Err(error) => {
                said = error.what().to_owned();
                break;
            }
        }
    }
    let written = checkpoint.to_bytes();
    assert_eq!(Checkpoint::from_bytes(&written).as_ref(), Ok(&checkpoint), "a snapshot reads the same");
    go_on(&checkpoint);
    answer(&format!("{:?} {said}", standing(&checkpoint)))
}

/// A message to a run that has begun: judged, read, and folded from the bytes of what that sealed.
pub(super) fn message(input: &[u8]) -> u64 {
    let message = match Message::from_bytes(input) {
        Ok(message) => message,
        Err(error) => return answer(error.what()),
    };
    assert_eq!(Message::from_bytes(&message.to_bytes()).as_ref(), Ok(&message), "it reads the same");
    let begun = run_begun();
    let verdict = judge(next(begun), &[], &message);
    if verdict == Ok(Verdict::Accepted) {
        let mut draft = next(begun);
        assert_eq!(read(&mut draft, begun.inbox + 1, &message), Ok(Verdict::Accepted), "what counts is read");
        folds(begun, draft);
    }
    answer_of(&verdict, |verdict| match verdict {
        Verdict::Refused(error) => error.what().to_owned(),
        Verdict::Accepted | Verdict::AlreadyGiven(_) => format!("{:?}", std::mem::discriminant(&message.word)),
    })
}

/// What a worker does with a state that it finds. Refusals are fine.
fn go_on(checkpoint: &Checkpoint) {
    let definition = definition();
    let _ = wants(checkpoint, definition);
    let _ = assemble(checkpoint, definition, &serde_json::Value::Null, &Blobs::default());
    let mut draft = next(checkpoint);
    if recover(&mut draft).is_err() {
        return;
    }
    let (dedupe, busy, held) = (DedupeKeys::new(), BTreeSet::new(), Held::default());
    let hands = Hands { free: 4, send_by: draft.now().plus_ms(20_000), dedupe: &dedupe, busy: &busy, held: &held };
    if owed(&mut draft, definition, hands).is_ok() {
        folds(checkpoint, draft);
    }
}

/// A minute after what the state says, under the next epoch.
pub(super) fn next(checkpoint: &Checkpoint) -> Draft {
    Draft::next(checkpoint.clone(), checkpoint.at.max(Timestamp::from_micros(0)).plus_ms(60_000), 2, 7)
}

/// What a draft seals folds to the draft's own state.
pub(super) fn folds(before: &Checkpoint, draft: Draft) {
    if draft.is_empty() || before.seq == u64::MAX {
        return;
    }
    let sealed = draft.seal();
    let mut folded = before.clone();
    fold(&mut folded, &sealed.envelope).expect("what a draft sealed folds");
    assert_eq!(folded, sealed.checkpoint, "the fold of the bytes is the draft's state");
}

/// The CBOR items that stand one after the other; what is none is one item.
pub(super) fn items(input: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    let mut decoder = Decoder::new(input);
    while decoder.position() < input.len() {
        let from = decoder.position();
        let until = if decoder.skip().is_ok() { decoder.position() } else { input.len() };
        found.push(&input[from..until]);
        decoder.set_position(until);
    }
    found
}
