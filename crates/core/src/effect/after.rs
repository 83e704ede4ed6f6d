//! What to do with an attempt that may have been sent and has no outcome.

use crate::effect::class::Class;
use crate::time::Timestamp;

/// The next step of an attempt whose outcome is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterUnknown {
    /// Run it again: a repeat leaves the same.
    RunAgain,
    /// Send it again under its key, which the receiver still honours.
    SendAgain,
    /// Ask the tool's own lookup, not before this time.
    LookUp(Timestamp),
    /// Only a person can say. The run is in doubt.
    Doubt,
}

/// What is known of the action when its attempt turns out unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The class stored with the action.
    pub class: Class,
    /// When the first attempt may have been sent.
    pub first: Timestamp,
    /// When the last attempt may last have been sent.
    pub last_possible: Timestamp,
    /// How long the receiver keeps a key, in milliseconds from the first send.
    pub key_valid_for_ms: u64,
    /// How long after the last possible send a lookup can be believed, in milliseconds.
    pub settles_after_ms: u64,
    /// Attempts so far.
    pub attempts: u32,
    /// The most attempts that the runtime makes by itself.
    pub max_attempts: u32,
}

/// The class table for an unknown outcome.
///
/// A keyed effect is sent again only under its key while that is valid: a key that the receiver has
/// forgotten is no key. When the attempts are used up a person is asked, for a repeatable action the
/// caller records a failure instead.
pub fn after_unknown(sent: Sent, now: Timestamp) -> AfterUnknown {
    match sent.class {
        Class::Read | Class::Idempotent => AfterUnknown::RunAgain,
        Class::Keyed => {
            let valid = now < sent.first.plus_ms(sent.key_valid_for_ms);
            if valid && sent.attempts < sent.max_attempts { AfterUnknown::SendAgain } else { AfterUnknown::Doubt }
        }
        Class::Checkable => AfterUnknown::LookUp(sent.last_possible.plus_ms(sent.settles_after_ms)),
        Class::Unsafe => AfterUnknown::Doubt,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_micros(0).plus_ms(ms)
    }

    #[test]
    fn g05_the_class_decides() {
        let sent = |class, attempts| Sent {
            class,
            first: at(0),
            last_possible: at(500),
            key_valid_for_ms: 1_000,
            settles_after_ms: 100,
            attempts,
            max_attempts: 3,
        };
        for (class, attempts, now_ms, expected) in [
            (Class::Read, 9, 5_000, AfterUnknown::RunAgain),
            (Class::Idempotent, 9, 5_000, AfterUnknown::RunAgain),
            (Class::Keyed, 1, 999, AfterUnknown::SendAgain),
            (Class::Keyed, 1, 1_000, AfterUnknown::Doubt),
            (Class::Keyed, 3, 10, AfterUnknown::Doubt),
            (Class::Checkable, 1, 10, AfterUnknown::LookUp(at(600))),
            (Class::Checkable, 9, 9_999, AfterUnknown::LookUp(at(600))),
            (Class::Unsafe, 1, 10, AfterUnknown::Doubt),
        ] {
            assert_eq!(after_unknown(sent(class, attempts), at(now_ms)), expected, "{class} {attempts} {now_ms}");
        }
    }
}
