//! Words from outside. A message is judged in its sender's own transaction, against the state with
//! every unread message applied, so that the sender learns at once whether it counts.
//!
//! Here are the words that mean a request; those on what became of an action are in `doubt`, those that mean the run as a whole
//! in `run`, those between a run and its forks in `fork`.

mod doubt;
mod fork;
mod run;

use minicbor::{Decode, Encode};

use crate::checkpoint::{Action, ActionState, ClosedRequest, Closing, Phase};
use crate::definition::QuotaLimits;
use crate::digest::Digest;
use crate::draft::Draft;
use crate::effect::identity::{effect_key, request_name};
use crate::error::{Error, Result};
use crate::event::{
    ActionApproved, ActionDenied, ActionProposed, DeniedBy, Ending, Event, Gate, InboxRead, QuestionAnswered, Request,
};
use crate::ids::{Ordinal, RunId};
use crate::quota::Quota;
use crate::rules::upgrade::{self, Upgrade};
use crate::time::Timestamp;

pub use doubt::late_word;
pub use run::{GUIDANCE_BYTES, is_signal_name};

/// How long what was sent is waited for after a cancel, in milliseconds.
pub const CANCEL_GRACE_MS: u64 = 10_000;

/// The most bytes of one message.
pub const MESSAGE_BYTES: usize = 256 * 1024;

/// The most unread messages of one run.
pub const UNREAD_MESSAGES: usize = 256;

/// A word to a run.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Message {
    /// Who says it.
    #[n(0)]
    pub by: String,
    /// What they say.
    #[n(1)]
    pub word: Word,
}

/// What can be said to a run.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Word {
    /// Yes to a request.
    #[n(0)]
    Approve {
        /// Its name.
        #[n(0)]
        request: Digest,
    },
    /// Yes, but with these arguments: another action, the person's own.
    #[n(1)]
    ApproveEdited {
        /// The name of the request that is replaced.
        #[n(0)]
        request: Digest,
        /// The canonical arguments.
        #[cbor(n(1), with = "minicbor::bytes")]
        arguments: Vec<u8>,
        /// Their sameness, for effects.
        #[n(2)]
        same: Option<Digest>,
        /// Their dedupe key, for tools that have one.
        #[n(3)]
        dedupe: Option<String>,
    },
    /// No to a request.
    #[n(2)]
    Deny {
        /// Its name.
        #[n(0)]
        request: Digest,
        /// What the model is told.
        #[n(1)]
        reason: String,
    },
    /// An answer to a question. Empty and falsy answers count as given.
    #[n(3)]
    Answer {
        /// The request's name.
        #[n(0)]
        request: Digest,
        /// The answer.
        #[n(1)]
        value: String,
    },
    /// The run shall end.
    #[n(4)]
    Cancel {
        /// Why.
        #[n(0)]
        reason: String,
    },
    /// A stopped run shall go on.
    #[n(5)]
    Resume,
    /// A quarantined run shall go on.
    #[n(6)]
    Release,
    /// A person knows what became of an action in doubt.
    #[n(7)]
    Resolve {
        /// The action.
        #[n(0)]
        ordinal: Ordinal,
        /// What became of it.
        #[n(1)]
        became: Became,
        /// The attempt whose doubt they were shown: a word that comes when a later one is in doubt does not count.
        #[n(2)]
        attempt: Option<u32>,
    },
    /// A worker that had lost its lease reports what its attempt came to.
    #[n(8)]
    LateOutcome {
        /// The action.
        #[n(0)]
        ordinal: Ordinal,
        /// The attempt.
        #[n(1)]
        attempt: u32,
        /// True when it was done, false when it was refused for good.
        #[n(2)]
        ok: bool,
        /// The result.
        #[cbor(n(3), with = "minicbor::bytes")]
        result: Vec<u8>,
    },
    /// The run shall stop until someone resumes it.
    #[n(9)]
    Pause {
        /// Why.
        #[n(0)]
        reason: String,
    },
    /// The model shall know this at its next decision.
    #[n(10)]
    Tell {
        /// What.
        #[n(0)]
        text: String,
    },
    /// Something happened that a wait may wait for.
    #[n(11)]
    Signal {
        /// Its name.
        #[n(0)]
        name: String,
        /// What it carries, canonical JSON.
        #[cbor(n(1), with = "minicbor::bytes")]
        value: Vec<u8>,
    },
    /// A quota's limit shall be raised.
    #[n(12)]
    TopUp {
        /// Which quota.
        #[n(0)]
        quota: Quota,
        /// By how much, in the quota's unit: a count, millionths of a usd, or milliseconds.
        #[n(1)]
        amount: u64,
    },
    /// An equal effect of the lineage was done: its outcome is this action's.
    #[n(20)]
    Reuse {
        /// The request that shows it.
        #[n(0)]
        request: Digest,
    },
    /// A fork may spend a part of what is left.
    #[n(21)]
    Grant {
        /// The fork.
        #[n(0)]
        to: RunId,
        /// How much of each limited quota.
        #[n(1)]
        amounts: QuotaLimits,
    },
    /// The run shall go on with another definition.
    #[n(43)]
    Upgrade(#[n(0)] Box<Upgrade>),
}

/// What became of an action in doubt.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Became {
    /// It happened; this is its result.
    #[n(0)]
    Happened(#[cbor(n(0), with = "minicbor::bytes")] Vec<u8>),
    /// It did not happen: send it again.
    #[n(1)]
    SendAgain,
    /// Nobody will know: give it up.
    #[n(2)]
    Abandoned(#[n(0)] String),
    /// It did not happen: that is its end.
    #[n(3)]
    DidNotHappen,
}

/// What a sender is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It counts, and it is durable.
    Accepted,
    /// The same was said before; nothing changed.
    AlreadyGiven(String),
    /// It does not count; nothing changed.
    Refused(Error),
}

impl Message {
    /// The bytes that an inbox holds.
    pub fn to_bytes(&self) -> Vec<u8> {
        // Encoding into a vector can't fail.
        minicbor::to_vec(self).unwrap_or_default()
    }

    /// Reads a message back.
    ///
    /// # Errors
    ///
    /// `store.undecodable` when the bytes are no message.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        minicbor::decode(bytes).map_err(|error| {
            Error::new("store.undecodable", format!("a message can't be read: {error}"), "use a newer lodestep")
        })
    }

    /// Is it taken by an inbox that is full?
    pub fn has_room(&self) -> bool {
        matches!(self.word, Word::Cancel { .. } | Word::Pause { .. })
    }

    /// Must no intent be committed while this is unread?
    pub fn holds_intents(&self) -> bool {
        matches!(self.word, Word::Cancel { .. } | Word::Pause { .. } | Word::Upgrade(_))
    }
}

/// Judges a message against the state and the messages that are unread before it, and changes nothing.
///
/// # Errors
///
/// `run.illegal_event` when the state contradicts itself.
pub fn judge(mut draft: Draft, unread: &[(u64, Message)], message: &Message) -> Result<Verdict> {
    for (position, earlier) in unread {
        read(&mut draft, *position, earlier)?;
    }
    apply(&mut draft, message, Clock::Runs)
}

/// Does time count against a request?
#[derive(Clone, Copy, PartialEq, Eq)]
enum Clock {
    /// The word is being given: a request that has expired takes none.
    Runs,
    /// The word was given and taken in time, whenever it is read.
    Stands,
}

/// Reads one message: pushes what it means and that it was read.
///
/// A word that was accepted before its request expired counts however late it is read: the caller reads the
/// inbox before it asks what is [`owed`](super::owed::owed), which is what lets a request expire.
///
/// # Errors
///
/// `run.illegal_event` when the state contradicts itself.
pub fn read(draft: &mut Draft, position: u64, message: &Message) -> Result<Verdict> {
    let verdict = apply(draft, message, Clock::Stands)?;
    draft.push(Event::InboxRead(InboxRead { position }))?;
    Ok(verdict)
}

fn apply(draft: &mut Draft, message: &Message, clock: Clock) -> Result<Verdict> {
    let by = &message.by;
    match &message.word {
        Word::Approve { request } => match open_request(draft, request, clock) {
            Ok((action, Gate::Approval(_))) => accept(draft, [approved(action.ordinal, by)]),
            Ok(_) => refused("request.is_a_question", "this request is a question", "answer it with `lodestep answer`"),
            Err(closed) => Ok(closed_verdict(draft, closed, Closing::Approved, Digest::default())),
        },
        Word::ApproveEdited { request, arguments, same, dedupe } => match open_request(draft, request, clock) {
            Ok((action, Gate::Approval(_))) => edit(draft, &action, by, arguments, *same, dedupe.clone()),
            Ok(_) => refused("request.is_a_question", "this request is a question", "answer it with `lodestep answer`"),
            Err(closed) => Ok(closed_verdict(draft, closed, Closing::Edited, Digest::of(arguments))),
        },
        Word::Deny { request, reason } => {
            let text = if reason.is_empty() { "denied".to_owned() } else { format!("denied: {reason}") };
            match open_request(draft, request, clock) {
                Ok((action, _)) => {
                    let text = draft.put(text);
                    let denied =
                        ActionDenied { ordinal: action.ordinal, why: DeniedBy::Person, by: Some(by.clone()), text };
                    accept(draft, [Event::ActionDenied(denied)])
                }
                Err(closed) => Ok(closed_verdict(draft, closed, Closing::Denied, Digest::of(text.as_bytes()))),
            }
        }
        Word::Answer { request, value } => match open_request(draft, request, clock) {
            Ok((action, Gate::Answer(_))) => answer(draft, &action, by, value),
            Ok(_) => refused(
                "request.is_an_approval",
                "this request is an approval",
                "use `lodestep approve` or `lodestep deny`",
            ),
            Err(closed) => Ok(closed_verdict(draft, closed, Closing::Answered, Digest::of(value.as_bytes()))),
        },
        Word::Cancel { reason } => run::cancel(draft, by, reason),
        Word::Pause { reason } => run::pause(draft, by, reason),
        Word::Resume => run::resume(draft, by),
        Word::Release => run::release(draft, by),
        Word::Tell { text } => run::tell(draft, by, text),
        Word::Signal { name, value } => run::signal(draft, by, name, value),
        Word::TopUp { quota, amount } => run::top_up(draft, by, *quota, *amount),
        Word::Resolve { ordinal, became, attempt } => doubt::resolve(draft, by, *ordinal, *attempt, became),
        Word::Reuse { request } => fork::reuse(draft, request, clock),
        Word::Grant { to, amounts } => fork::grant(draft, by, to, amounts),
        Word::Upgrade(upgrade) => upgrade::upgrade(draft, by, upgrade),
        Word::LateOutcome { ordinal, attempt, ok, result } => {
            doubt::late_outcome(draft, *ordinal, *attempt, *ok, result)
        }
    }
}

pub(super) fn accept(draft: &mut Draft, events: impl IntoIterator<Item = Event>) -> Result<Verdict> {
    for event in events {
        draft.push(event)?;
    }
    Ok(Verdict::Accepted)
}

pub(super) fn refused(code: &'static str, what: impl Into<String>, next: impl Into<String>) -> Result<Verdict> {
    Ok(Verdict::Refused(Error::new(code, what, next)))
}

fn approved(ordinal: Ordinal, by: &str) -> Event {
    Event::ActionApproved(ActionApproved { ordinal, by: by.to_owned() })
}

/// The action and gate of an open request, or what is known of one that is over.
fn open_request(
    draft: &Draft,
    request: &Digest,
    clock: Clock,
) -> std::result::Result<(Action, Gate), Option<ClosedRequest>> {
    let checkpoint = draft.checkpoint();
    let named = |action: &&Action| match &action.state {
        ActionState::Gated { gate: Gate::Approval(asked) | Gate::Answer(asked) } => asked.name == *request,
        _ => false,
    };
    let over = matches!(checkpoint.phase, Phase::Cancelling { .. } | Phase::Ended { .. });
    if let Some(action) = checkpoint.pending.values().find(named) {
        let ActionState::Gated { gate } = &action.state else {
            return Err(None);
        };
        let (Gate::Approval(asked) | Gate::Answer(asked)) = gate else {
            return Err(None);
        };
        let has_passed = |at: Timestamp| clock == Clock::Runs && at <= draft.now();
        let expired = asked.expires_at.is_some_and(has_passed);
        let too_late = action.ends_at().is_some_and(has_passed);
        if !over && !expired && !too_late {
            return Ok((action.clone(), gate.clone()));
        }
        return Err(Some(ClosedRequest {
            name: *request,
            ordinal: action.ordinal,
            how: match (over, expired) {
                (true, _) => Closing::Withdrawn,
                (false, true) => Closing::Expired,
                (false, false) => Closing::Deadline,
            },
            by: None,
            word: Digest::default(),
        }));
    }
    Err(checkpoint.closed_requests.iter().rev().find(|closed| closed.name == *request).cloned())
}

/// The same word again was already given; another word is refused, saying what happened to the request and to its run.
fn closed_verdict(draft: &Draft, closed: Option<ClosedRequest>, wanted: Closing, word: Digest) -> Verdict {
    let ended = match draft.checkpoint().phase {
        Phase::Ended { ending: Ending::Completed, .. } => Some("its run has completed"),
        Phase::Ended { ending: Ending::Failed, .. } => Some("its run has failed"),
        Phase::Ended { ending: Ending::Cancelled, .. } | Phase::Cancelling { .. } => Some("its run was cancelled"),
        Phase::Active | Phase::Stopped { .. } => None,
    };
    let Some(closed) = closed else {
        return Verdict::Refused(Error::new(
            "request.over",
            format!("this request is over: {}", ended.unwrap_or("its run has moved on")),
            "`lodestep show RUN` says what happened",
        ));
    };
    let who = closed.by.map(|by| format!(" by {by}")).unwrap_or_default();
    let happened = match closed.how {
        Closing::Approved => format!("it was approved{who}"),
        Closing::Denied => format!("it was denied{who}"),
        Closing::Answered => format!("it was answered{who}"),
        Closing::Edited => format!("an edited version took its place{who}"),
        Closing::Expired => "it expired".to_owned(),
        Closing::Deadline => "the deadline of its action passed".to_owned(),
        Closing::Reused => "the outcome of an equal effect was taken".to_owned(),
        Closing::Withdrawn => "it was withdrawn".to_owned(),
        Closing::Superseded => "its tool or the policy changed, and it was asked anew under another name".to_owned(),
    };
    let happened = ended.map_or(happened.clone(), |ended| format!("{happened}, and {ended}"));
    if closed.how == wanted && closed.word == word {
        return Verdict::AlreadyGiven(happened);
    }
    let code = match closed.how {
        Closing::Expired | Closing::Deadline => "request.expired",
        Closing::Withdrawn => "request.withdrawn",
        Closing::Edited | Closing::Superseded => "request.stale",
        _ => "request.decided",
    };
    let what = format!("the request of action {} is over: {happened}", closed.ordinal);
    Verdict::Refused(Error::new(code, what, "nothing changed"))
}

fn answer(draft: &mut Draft, action: &Action, by: &str, value: &str) -> Result<Verdict> {
    let answer = draft.put(value);
    let event = QuestionAnswered { ordinal: action.ordinal, by: by.to_owned(), answer };
    accept(draft, [Event::QuestionAnswered(event)])
}

/// An edit is a new action of the person's own, under its own name and key; the old request is stale.
fn edit(
    draft: &mut Draft,
    old: &Action,
    by: &str,
    arguments: &[u8],
    same: Option<Digest>,
    dedupe: Option<String>,
) -> Result<Verdict> {
    if old.dedupe.is_some() && dedupe.is_none() {
        return refused(
            "request.no_dedupe_key",
            "the edit comes without its dedupe key",
            "approve with a newer lodestep",
        );
    }
    let run = draft.checkpoint().key();
    let ordinal = Ordinal(draft.checkpoint().last_ordinal.saturating_add(1));
    let value = draft.put(arguments);
    let key = old.key.is_some().then(|| effect_key(&run, ordinal, &old.tool, arguments));
    let request = Request {
        name: request_name(&run, ordinal, &old.tool, &old.tool_digest, &value.digest),
        expires_at: None,
        on_expiry: crate::definition::OnExpiry::Deny,
        window_ms: None,
        asked_at: draft.now(),
        remind_ms: None,
    };
    let proposed = ActionProposed {
        ordinal,
        call_id: String::new(),
        tool: old.tool.clone(),
        class: old.class,
        arguments: value,
        tool_digest: old.tool_digest,
        same: same.filter(|_| old.same.is_some()),
        key,
        gate: Gate::Approval(request),
        key_valid_for_ms: old.key_valid_for_ms,
        settles_after_ms: old.settles_after_ms,
        max_attempts: old.max_attempts,
        proposed_by: Some(by.to_owned()),
        counted: old.counted,
        dedupe: dedupe.filter(|_| old.dedupe.is_some()),
        elsewhere: None,
        deadline: old.deadline.map(|end| draft.now().plus_ms(end.ms_since(old.proposed_at))),
    };
    let text = draft.put(format!("a person changed the arguments: action {ordinal} is done in its place"));
    let denied = ActionDenied { ordinal: old.ordinal, why: DeniedBy::Edit, by: Some(by.to_owned()), text };
    accept(draft, [Event::ActionProposed(proposed), Event::ActionDenied(denied), approved(ordinal, by)])
}
