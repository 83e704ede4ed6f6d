//! The table from what a worker saw of an attempt to what is known about it.
//!
//! A timeout is not a failure: it is unknown whether the effect happened. Only what is proven counts.

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

/// What an HTTP status means, after DESIGN's table; `keyed` because 409 tells a keyed request to ask again.
pub fn http_status(status: u16, retry_after: bool, keyed: bool) -> Seen {
    match status {
        200..=399 => Seen::Done,
        429 => Seen::AskedToWait,
        503 if retry_after => Seen::AskedToWait,
        409 if keyed => Seen::AskedToWait,
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
        for (status, retry_after, keyed, expected) in [
            (200, false, false, Known::Applied),
            (201, false, true, Known::Applied),
            (404, false, false, Known::Failed),
            (408, false, false, Known::Unknown),
            (409, false, false, Known::Failed),
            (409, false, true, Known::NotApplied),
            (422, false, true, Known::Failed),
            (429, true, false, Known::NotApplied),
            (429, false, false, Known::NotApplied),
            (500, false, true, Known::Unknown),
            (503, true, false, Known::NotApplied),
            (503, false, false, Known::Unknown),
            (504, true, false, Known::Unknown),
            (100, false, false, Known::Unknown),
        ] {
            assert_eq!(known(http_status(status, retry_after, keyed)), expected, "{status}");
        }
    }
}
