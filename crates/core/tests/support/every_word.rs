//! One word of each kind, with fixed fields.

use lodestep_core::definition::QuotaLimits;
use lodestep_core::quota::Quota;
use lodestep_core::rules::inbox::{Became, Message, Word};
use lodestep_core::rules::upgrade::{Binding, Upgrade};
use lodestep_core::{Digest, Ordinal, RunId};

/// Every word that can be said to a run, named, in the order of their numbers.
pub fn all() -> Vec<(&'static str, Message)> {
    let (request, ordinal) = (Digest::of(b"request"), Ordinal(1));
    let to = RunId::parse("fork").expect("an id");
    let amounts = QuotaLimits {
        total_tokens: Some(1),
        input_tokens: Some(2),
        output_tokens: Some(3),
        usd_micro: Some(4),
        model_calls: Some(5),
        tool_calls: Some(6),
        active_time_ms: Some(7),
        deadline_ms: Some(8),
    };
    let words = [
        ("approve", Word::Approve { request }),
        ("edit", Word::ApproveEdited { request, arguments: b"{}".to_vec(), same: Some(request), dedupe: None }),
        ("deny", Word::Deny { request, reason: "no".to_owned() }),
        ("answer", Word::Answer { request, value: "42".to_owned() }),
        ("cancel", Word::Cancel { reason: "enough".to_owned() }),
        ("resume", Word::Resume),
        ("release", Word::Release),
        ("happened", Word::Resolve { ordinal, became: Became::Happened(b"7".to_vec()), attempt: None }),
        ("retry", Word::Resolve { ordinal, became: Became::SendAgain, attempt: Some(2) }),
        ("abandon", Word::Resolve { ordinal, became: Became::Abandoned("lost".to_owned()), attempt: None }),
        ("did not happen", Word::Resolve { ordinal, became: Became::DidNotHappen, attempt: None }),
        ("late outcome", Word::LateOutcome { ordinal, attempt: 2, ok: true, result: b"7".to_vec() }),
        ("pause", Word::Pause { reason: "lunch".to_owned() }),
        ("tell", Word::Tell { text: "Use the second one.".to_owned() }),
        ("signal", Word::Signal { name: "paid".to_owned(), value: b"{\"cents\":5}".to_vec() }),
        ("top-up", Word::TopUp { quota: Quota::Usd, amount: 2_500_000 }),
        ("reuse", Word::Reuse { request }),
        ("grant", Word::Grant { to, amounts }),
        ("upgrade", Word::Upgrade(Box::new(upgrade(request, ordinal)))),
    ];
    words.into_iter().map(|(name, word)| (name, Message { by: "ann".to_owned(), word })).collect()
}

fn upgrade(from: Digest, ordinal: Ordinal) -> Upgrade {
    let (key, dedupe) = ("k1:key".to_owned(), Some("once-1".to_owned()));
    let binding = Binding { ordinal, arguments: from, misfit: Some("no".to_owned()), key, same: from, dedupe };
    let quota = Some(QuotaLimits { model_calls: Some(3), ..QuotaLimits::default() });
    Upgrade { from, definition: b"{}".to_vec(), quota, bindings: vec![binding] }
}
