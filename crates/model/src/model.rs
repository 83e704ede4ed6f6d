//! The trait between the runtime and a model.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use crate::{Reply, Request, Usage};

/// The future that [`Model::ask`] returns.
pub type ModelFuture<'a> = Pin<Box<dyn Future<Output = Result<Reply, ModelError>> + Send + 'a>>;

/// A language model.
///
/// An implementation keeps no state between calls that the next answer needs: the request is all there is.
/// It does not retry; retries are the runtime's, and are recorded.
pub trait Model: Send + Sync {
    /// Asks once.
    ///
    /// After `Ok` the reply is whole. Dropping the future gives the call up; whether the provider bills it is unknown.
    ///
    /// # Errors
    ///
    /// A [`ModelError`] says whether the same request may be sent again.
    fn ask<'a>(&'a self, request: &'a Request) -> ModelFuture<'a>;

    /// Asks once, and tells meanwhile what has come, where the model can say. The reply is the same as of [`ask`](Self::ask).
    ///
    /// # Errors
    ///
    /// As [`ask`](Self::ask).
    fn ask_watched<'a>(
        &'a self,
        request: &'a Request,
        watch: &'a (dyn Fn(Progress<'_>) + Send + Sync),
    ) -> ModelFuture<'a> {
        let _ = watch;
        self.ask(request)
    }

    /// What a limit of the rate of calls is counted by: whoever has the same text shares the service's limits. It is stored,
    /// and names no secret. `None` where there is nothing to share.
    fn shares_limits_as(&self) -> Option<String> {
        None
    }
}

/// A piece of a reply that is still coming. It is for people to see: a reply counts only when it is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress<'a> {
    /// Of the text.
    Text(&'a str),
    /// Of the reasoning before it.
    Reasoning(&'a str),
    /// A call of this tool begins.
    Call(&'a str),
    /// Of a call's arguments.
    Arguments(&'a str),
}

/// Why a call brought no reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelError {
    /// Nothing was sent: no connection, no name. It costs nothing and may be tried again.
    NotSent(String),
    /// The provider asks to wait, so many milliseconds from now where it says how long.
    Busy {
        /// What it said.
        message: String,
        /// How long to wait, in milliseconds.
        retry_after_ms: Option<u64>,
    },
    /// Sent, and the answer was lost, broken or a server fault. It may have been billed; it may be tried again.
    Lost {
        /// What went wrong.
        message: String,
        /// What the provider had said by then that it used; zero of what it had not said.
        reported: Usage,
    },
    /// The request is longer than the model's context.
    TooLong(String),
    /// The provider will not take this request however often it is sent (a bad key, a bad parameter).
    Rejected(String),
}

impl ModelError {
    /// An answer that was lost, of which the provider has not said what it used.
    pub fn lost(message: impl Into<String>) -> Self {
        Self::Lost { message: message.into(), reported: Usage::default() }
    }

    /// An answer that was lost says what the provider had reported; any other error costs nothing and stays as it is.
    pub fn reporting(self, reported: Usage) -> Self {
        match self {
            Self::Lost { message, .. } => Self::Lost { message, reported },
            other => other,
        }
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSent(why) => write!(f, "nothing was sent: {why}"),
            Self::Busy { message, .. } => write!(f, "the provider is busy: {message}"),
            Self::Lost { message, .. } => write!(f, "the reply was lost: {message}"),
            Self::TooLong(why) => write!(f, "the request is too long: {why}"),
            Self::Rejected(why) => write!(f, "the provider rejects the request: {why}"),
        }
    }
}

impl std::error::Error for ModelError {}
