//! Models that stand behind a server in tests.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use lodestep_model::{Model, ModelError, ModelFuture, Reply, Request};

/// A model that answers as the function says. A call without an id gets one from the server.
pub fn from_fn<F>(answer: F) -> impl Model
where
    F: Fn(&Request) -> Result<Reply, ModelError> + Send + Sync,
{
    Function(answer)
}

/// A model that gives these replies, one for each time that it is asked, and after the last of them is not there any more.
///
/// A fault that answers without asking takes none of them.
pub fn in_order(replies: impl IntoIterator<Item = Reply>) -> impl Model {
    let replies = Mutex::new(replies.into_iter().collect::<VecDeque<_>>());
    from_fn(move |_| {
        let next = replies.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        next.ok_or_else(|| ModelError::lost("no reply is left in the script"))
    })
}

struct Function<F>(F);

impl<F: Fn(&Request) -> Result<Reply, ModelError> + Send + Sync> Model for Function<F> {
    fn ask<'a>(&'a self, request: &'a Request) -> ModelFuture<'a> {
        Box::pin(std::future::ready((self.0)(request)))
    }
}
