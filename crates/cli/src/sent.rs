//! What one needs to look for an attempt in its receiver's ledger: the key and the time.

use lodestep::core::Timestamp;
use lodestep::core::checkpoint::Action;
use lodestep::inspect::{self, Opened};
use lodestep::store::Store;

/// An attempt that may have reached its receiver.
#[derive(Clone, Debug)]
pub struct Sent {
    /// The key that it was sent under, if it had one.
    pub key: Option<String>,
    /// When its intent was committed: it was sent right after, if at all.
    pub at: Option<Timestamp>,
}

/// The key and the time of an action's last attempt.
pub async fn sent(store: &dyn Store, opened: &Opened, action: &Action) -> Sent {
    let key = action.key.clone();
    if action.attempts <= 1 && action.first_sent.is_some() {
        return Sent { key, at: action.first_sent };
    }
    let effects = inspect::effects(store, &opened.row.run).await.unwrap_or_default();
    let effect = effects.into_iter().find(|effect| effect.action == action.ordinal);
    Sent { key, at: effect.and_then(|effect| effect.attempts.last().map(|last| last.at)) }
}

impl Sent {
    /// In a few words.
    pub fn in_words(&self) -> String {
        let at = self.at.map(|at| format!("sent {at}")).unwrap_or_default();
        let key = self.key.as_ref().map(|key| format!("key {key}")).unwrap_or_default();
        [at, key].into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ")
    }
}
