//! The table from what a worker saw of an attempt to what is known about it.
//!
//! A timeout is not a failure: it is unknown whether the effect happened. Only what is proven counts.

use crate::effect::class::Class;

/// What a worker saw of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// An answer that says it was done.
    Done,
    /// A command's program did not start, a connection or a name was refused, TLS failed: no byte was sent.
    NotStarted,
    /// HTTP 429 or 503 with Retry-After, or 409 to a keyed request: the receiver says that it did nothing yet.
    AskedToWait,
    /// A command ended with a status that is not 0, an HTTP answer of another 4xx, an MCP `isError`: a final no.
    Refused,
    /// A command was ended by a signal, or an MCP session was lost: it may have done its work before.
    Interrupted,
    /// No answer in time.
    TimedOut,
    /// HTTP 5xx or 408, a reset after the first byte: something answered, and it does not say what happened.
    ServerFault,
    /// The worker died between intent and outcome.
    WorkerDied,
}

/// What is known about an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// It was applied, and there is a result.
    Applied,
    /// It was not applied: it may be sent again.
    NotApplied,
    /// It failed for good: the model is told.
    Failed,
    /// It may have been applied: the class decides.
    Unknown,
}

/// The table itself.
pub fn known(seen: Seen) -> Known {
    match seen {
        Seen::Done => Known::Applied,
        Seen::NotStarted | Seen::AskedToWait => Known::NotApplied,
        Seen::Refused => Known::Failed,
        Seen::Interrupted | Seen::TimedOut | Seen::ServerFault | Seen::WorkerDied => Known::Unknown,
    }
}

/// What an HTTP status means to a tool of a class. `retry_after_ms` is the wait that the answer asks for.
///
/// A 409 tells a keyed request that one under its key is still under way. A redirect that was not followed says of
/// an effect neither that it happened nor that it did not; what may repeat freely just has no result.
pub fn http_status(status: u16, retry_after_ms: Option<u64>, class: Class) -> Seen {
    match status {
        200..=299 => Seen::Done,
        300..=399 if class.is_repeatable() => Seen::Refused,
        429 => Seen::AskedToWait,
        503 if retry_after_ms.is_some() => Seen::AskedToWait,
        409 if class == Class::Keyed => Seen::AskedToWait,
        408 => Seen::ServerFault,
        400..=499 => Seen::Refused,
        _ => Seen::ServerFault,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eff_02_only_what_is_proven_counts() {
        for (seen, expected) in [
            (Seen::Done, Known::Applied),
            (Seen::NotStarted, Known::NotApplied),
            (Seen::AskedToWait, Known::NotApplied),
            (Seen::Refused, Known::Failed),
            (Seen::Interrupted, Known::Unknown),
            (Seen::TimedOut, Known::Unknown),
            (Seen::ServerFault, Known::Unknown),
            (Seen::WorkerDied, Known::Unknown),
        ] {
            assert_eq!(known(seen), expected, "{seen:?}");
        }
    }

    #[test]
    fn http_rows() {
        const WAIT: Option<u64> = Some(1_000);
        for (status, retry_after_ms, class, expected) in [
            (200, None, Class::Read, Known::Applied),
            (201, None, Class::Keyed, Known::Applied),
            (301, None, Class::Read, Known::Failed),
            (302, None, Class::Unsafe, Known::Unknown),
            (303, None, Class::Keyed, Known::Unknown),
            (308, None, Class::Idempotent, Known::Failed),
            (404, None, Class::Unsafe, Known::Failed),
            (408, None, Class::Unsafe, Known::Unknown),
            (409, None, Class::Unsafe, Known::Failed),
            (409, None, Class::Keyed, Known::NotApplied),
            (422, None, Class::Keyed, Known::Failed),
            (429, WAIT, Class::Unsafe, Known::NotApplied),
            (429, None, Class::Unsafe, Known::NotApplied),
            (500, None, Class::Keyed, Known::Unknown),
            (503, WAIT, Class::Unsafe, Known::NotApplied),
            (503, None, Class::Unsafe, Known::Unknown),
            (504, WAIT, Class::Unsafe, Known::Unknown),
            (100, None, Class::Unsafe, Known::Unknown),
        ] {
            assert_eq!(known(http_status(status, retry_after_ms, class)), expected, "{status} {class}");
        }
    }
}
