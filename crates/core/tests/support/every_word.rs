//! One word of each kind, with fixed fields.

use lodestep_core::quota::Quota;
use lodestep_core::rules::inbox::{Became, Message, Word};
use lodestep_core::{Digest, Ordinal};

/// Every word that can be said to a run, named, in the order of their numbers.
pub fn all() -> Vec<(&'static str, Message)> {
    let (request, ordinal) = (Digest::of(b"request"), Ordinal(1));
    let words = [
        ("approve", Word::Approve { request }),
        ("edit", Word::ApproveEdited { request, arguments: b"{}".to_vec(), same: Some(request), dedupe: None }),
        ("deny", Word::Deny { request, reason: "no".to_owned() }),
        ("answer", Word::Answer { request, value: "42".to_owned() }),
        ("cancel", Word::Cancel { reason: "enough".to_owned() }),
        ("resume", Word::Resume),
        ("release", Word::Release),
        ("happened", Word::Resolve { ordinal, became: Became::Happened(b"7".to_vec()) }),
        ("retry", Word::Resolve { ordinal, became: Became::SendAgain }),
        ("abandon", Word::Resolve { ordinal, became: Became::Abandoned("lost".to_owned()) }),
        ("late outcome", Word::LateOutcome { ordinal, attempt: 2, ok: true, result: b"7".to_vec() }),
        ("pause", Word::Pause { reason: "lunch".to_owned() }),
        ("tell", Word::Tell { text: "Use the second one.".to_owned() }),
        ("signal", Word::Signal { name: "paid".to_owned(), value: b"{\"cents\":5}".to_vec() }),
        ("top-up", Word::TopUp { quota: Quota::Usd, amount: 2_500_000 }),
    ];
    words.into_iter().map(|(name, word)| (name, Message { by: "ann".to_owned(), word })).collect()
}
