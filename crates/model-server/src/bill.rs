//! The bill: what came, what became of it, and what it cost.

use std::time::Instant;

use serde_json::Value;

use crate::dialect::Shape;
use crate::plan::Fault;
use crate::refusal::Kind;

/// Every request so far, in the order in which they came.
#[derive(Clone, Debug, Default)]
pub struct Bill {
    /// One for each request.
    pub entries: Vec<Entry>,
}

/// One request.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The shape that its path belongs to; `None` for a path that no shape has.
    pub shape: Option<Shape>,
    /// `POST`.
    pub method: String,
    /// `/v1/messages`.
    pub path: String,
    /// True when it asked for a stream.
    pub streamed: bool,
    /// What became of it.
    pub outcome: Outcome,
    /// True once the last byte of its answer was handed to the connection.
    pub delivered: bool,
    /// What it is billed for. A refused request is not billed, nor one that a fault answered for.
    pub tokens: Tokens,
    /// The body, where it was JSON.
    pub body: Option<Value>,
    /// The headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The answer's `request-id` or `x-request-id`.
    pub request_id: String,
    /// When its head had come.
    pub came: Instant,
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is being read, or the mind is being asked.
    Underway,
    /// It was answered.
    Answered,
    /// It was refused.
    Refused {
        /// Why.
        kind: Kind,
        /// What the client was told.
        message: String,
    },
    /// The plan's fault took it.
    Fault(Fault),
    /// The mind gave an error.
    Failed(String),
}

/// Tokens of a request and its reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Of the prompt, all of them: also those that the cache had or took.
    pub input: u64,
    /// Of the reply.
    pub output: u64,
    /// Of the prompt those that the cache had.
    pub cache_read: u64,
    /// Of the prompt those that the cache took.
    pub cache_write: u64,
}

impl Entry {
    /// A header's value; empty when it is not there.
    pub fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// Why it was refused, where it was.
    pub fn refused(&self) -> Option<Kind> {
        match self.outcome {
            Outcome::Refused { kind, .. } => Some(kind),
            _ => None,
        }
    }
}

impl Bill {
    /// What all of it comes to.
    pub fn total(&self) -> Tokens {
        self.entries.iter().fold(Tokens::default(), |sum, entry| Tokens {
            input: sum.input + entry.tokens.input,
            output: sum.output + entry.tokens.output,
            cache_read: sum.cache_read + entry.tokens.cache_read,
            cache_write: sum.cache_write + entry.tokens.cache_write,
        })
    }

    /// How many were refused for this.
    pub fn refused(&self, kind: Kind) -> usize {
        self.entries.iter().filter(|entry| entry.refused() == Some(kind)).count()
    }

    /// How many were refused because they are wrong in themselves. No client should ever make one.
    pub fn refused_malformed(&self) -> usize {
        self.entries.iter().filter_map(Entry::refused).filter(|kind| kind.is_malformed()).count()
    }

    /// How many were refused because the window is too small for them.
    pub fn refused_too_long(&self) -> usize {
        self.refused(Kind::TooLong)
    }

    /// How many were answered, by the mind and without a fault.
    pub fn answered(&self) -> usize {
        self.entries.iter().filter(|entry| entry.outcome == Outcome::Answered).count()
    }
}
