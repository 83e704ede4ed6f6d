//! What was sent and settled, kept apart from the product's own books and by other means: from events alone.

use std::collections::{BTreeMap, BTreeSet};

use lodestep_core::checkpoint::{ActionState, Checkpoint};
use lodestep_core::effect::Class;
use lodestep_core::event::{Event, Resolution, UnknownNext};
use lodestep_core::rules::owed::dispatchable;
use lodestep_core::{Ordinal, Timestamp};

/// One effect as the outside world would know it.
#[derive(Debug)]
struct Effect {
    class: Class,
    key: Option<String>,
    valid_ms: u64,
    /// Nothing is sent from then on; a person's word that it did not happen lifts it.
    deadline: Option<Timestamp>,
    /// Attempts that may have arrived.
    maybe: BTreeSet<u32>,
    /// When the first of these was sent.
    first: Option<Timestamp>,
}

#[derive(Debug, Default)]
pub struct Ledger {
    effects: BTreeMap<Ordinal, Effect>,
    attempts: BTreeSet<(Ordinal, u32)>,
    settled: BTreeSet<Ordinal>,
    cancelled: bool,
}

impl Ledger {
    pub fn sends(&self) -> usize {
        self.attempts.len()
    }

    /// Takes the events of a transition that led to this state.
    pub fn take(&mut self, after: &Checkpoint, events: &[Event]) {
        for event in events {
            self.take_one(after, event);
        }
    }

    fn take_one(&mut self, after: &Checkpoint, event: &Event) {
        match event {
            Event::ActionProposed(e) => {
                let (class, key, valid_ms) = (e.class, e.key.clone(), e.key_valid_for_ms);
                let deadline = e.deadline;
                let effect = Effect { class, key, valid_ms, deadline, maybe: BTreeSet::new(), first: None };
                assert!(self.effects.insert(e.ordinal, effect).is_none(), "an ordinal is given once");
            }
            Event::ActionRebound(e) => {
                let effect = self.effects.get_mut(&e.ordinal).expect("it was proposed");
                assert!(effect.maybe.is_empty(), "action {} goes by another tool and may have arrived", e.ordinal);
                assert!(effect.key.is_none() || effect.key == e.key, "the key is minted once");
                (effect.class, effect.key, effect.valid_ms) = (e.class, e.key.clone(), e.key_valid_for_ms);
            }
            Event::AttemptStarted(e) => self.send(after, e.ordinal, e.attempt),
            Event::AttemptNotSent(e) => {
                let effect = self.effects.get_mut(&e.ordinal).expect("it was proposed");
                effect.maybe.remove(&e.attempt);
                effect.first = effect.first.filter(|_| !effect.maybe.is_empty());
            }
            Event::LookupInconclusive(e) if matches!(e.next, UnknownNext::Again(_)) => self.forget(e.ordinal),
            Event::DoubtResolved(e) if e.resolution == Resolution::SendAgain => {
                self.forget(e.ordinal);
                self.effects.get_mut(&e.ordinal).expect("it was proposed").deadline = None;
            }
            Event::DoubtResolved(e) => self.settle(e.ordinal),
            Event::ActionRefused(e) => self.settle(e.ordinal),
            Event::ActionFinished(e) => self.settle(e.ordinal),
            Event::ActionDenied(e) => self.settle(e.ordinal),
            Event::ActionWithdrawn(e) => {
                let maybe = &self.effects[&e.ordinal].maybe;
                assert!(maybe.is_empty(), "action {} was withdrawn and may have arrived", e.ordinal);
                self.settle(e.ordinal);
            }
            Event::DeadlinePassed(e) => {
                let effect = &self.effects[&e.ordinal];
                let unsent = effect.maybe.is_empty() || effect.class.is_repeatable();
                assert!(unsent, "action {} was called failed and may have arrived", e.ordinal);
                self.settle(e.ordinal);
            }
            Event::QuestionAnswered(e) => self.settle(e.ordinal),
            Event::CancelRequested(_) => self.cancelled = true,
            _ => {}
        }
    }

    fn send(&mut self, after: &Checkpoint, ordinal: Ordinal, attempt: u32) {
        assert!(!self.cancelled, "action {ordinal} was sent after a cancel");
        assert!(!self.settled.contains(&ordinal), "action {ordinal} was sent after it was settled");
        assert!(self.attempts.insert((ordinal, attempt)), "attempt {ordinal}.{attempt} was made twice");
        let effect = self.effects.get_mut(&ordinal).expect("it was proposed");
        let action = &after.pending[&ordinal];
        assert_eq!(action.key, effect.key, "the key is minted once");
        let now = after.at;
        if let Some(deadline) = effect.deadline {
            let ActionState::Open { send_by, .. } = action.state else { panic!("it is open") };
            assert!(now < deadline && send_by <= deadline, "{ordinal}.{attempt} may be sent after its deadline");
        }
        if !effect.maybe.is_empty() {
            assert_eq!(effect.class, Class::Keyed, "{ordinal}.{attempt} may be a second time: {effect:?}");
            let end = effect.first.expect("it was sent").plus_ms(effect.valid_ms);
            assert!(now < end, "{ordinal}.{attempt} is sent under a forgotten key");
            let ActionState::Open { send_by, .. } = action.state else { panic!("it is open") };
            assert!(send_by <= end, "{ordinal}.{attempt} may be sent under a forgotten key");
        }
        effect.maybe.insert(attempt);
        effect.first.get_or_insert(now);
    }

    fn forget(&mut self, ordinal: Ordinal) {
        let effect = self.effects.get_mut(&ordinal).expect("it was proposed");
        effect.maybe.clear();
        effect.first = None;
    }

    fn settle(&mut self, ordinal: Ordinal) {
        assert!(self.settled.insert(ordinal), "action {ordinal} was settled twice");
    }

    /// Compares with the state: what is settled is not pending and is never dispatched.
    pub fn compare(&self, checkpoint: &Checkpoint, epoch: u64, end_of_time: Timestamp) {
        for ordinal in &self.settled {
            assert!(!checkpoint.pending.contains_key(ordinal), "action {ordinal} is settled and pending");
        }
        for ordinal in dispatchable(checkpoint, epoch, end_of_time) {
            assert!(!self.settled.contains(&ordinal), "action {ordinal} is settled and dispatched");
        }
        let open = checkpoint.effect_log.count;
        let sent: BTreeSet<Ordinal> = self.attempts.iter().map(|(ordinal, _)| *ordinal).collect();
        assert_eq!(open, sent.len() as u64, "one action is one effect");
    }
}
