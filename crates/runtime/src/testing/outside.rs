//! The world that tools act on, and the ledger of what was really applied. It outlives every process: what was sent
//! arrives, whoever died meanwhile.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lodestep_core::effect::Class;
use lodestep_core::rules::settle::LookedUp;
use tokio::sync::oneshot;

use super::chance::Chance;
use super::witness::Witness;
use crate::tools::{Functions, ToolCall, ToolError};

/// What was sent arrives within so many milliseconds. A lookup is believed no earlier, see `SETTLES_AFTER_MS`.
const LONGEST_DELIVERY_MS: u64 = 3_000;

/// How long after the last possible send a lookup can be believed.
pub(super) const SETTLES_AFTER_MS: u64 = 5_000;

/// How long an attempt may take.
pub(super) const TIMEOUT_MS: u64 = 10_000;

/// The effects, by run and action.
pub(super) struct Outside {
    chance: Arc<Chance>,
    witness: Arc<Witness>,
    ledger: Mutex<BTreeMap<(String, u32), Effect>>,
}

/// What the world knows of one action.
#[derive(Clone, Debug)]
pub(super) struct Effect {
    pub tool: String,
    pub class: Class,
    pub arguments: String,
    /// How often it was applied. A receiver of a keyed tool knows the key again.
    pub times: u32,
    on_its_way: u32,
}

impl Outside {
    pub(super) fn new(chance: Arc<Chance>, witness: Arc<Witness>) -> Arc<Self> {
        Arc::new(Self { chance, witness, ledger: Mutex::default() })
    }

    /// The tools, one for each class, which misbehave in so many of a thousand attempts.
    pub(super) fn functions(self: &Arc<Self>, misbehaves: u32) -> Functions {
        let mut functions = Functions::default();
        for class in Class::ALL {
            let (name, outside) = (tool_of(class), self.clone());
            let perform = move |call: ToolCall| {
                let outside = outside.clone();
                async move { outside.perform(class, call, misbehaves).await }
            };
            if class == Class::Checkable {
                let outside = self.clone();
                functions.add_checkable(name, perform, move |call: ToolCall| {
                    let outside = outside.clone();
                    async move { outside.look_up(&call, misbehaves).await }
                });
            } else {
                functions.add(name, perform);
            }
        }
        functions
    }

    /// What was really applied.
    pub(super) fn ledger(&self) -> BTreeMap<(String, u32), Effect> {
        self.lock().clone()
    }

    /// Was it applied? `None` while it may still arrive.
    pub(super) fn truth(&self, run: &str, action: u32) -> Option<bool> {
        match self.lock().get(&(run.to_owned(), action)) {
            None => Some(false),
            Some(effect) if effect.times > 0 => Some(true),
            Some(effect) => (effect.on_its_way == 0).then_some(false),
        }
    }

    async fn perform(self: Arc<Self>, class: Class, call: ToolCall, misbehaves: u32) -> Result<Vec<u8>, ToolError> {
        self.witness.calls_tool(class, &call);
        self.know(class, &call);
        if !self.chance.permille(misbehaves) {
            return self.answered(call, 50).await;
        }
        match self.chance.below(8) {
            0 => Err(ToolError::NotSent("no connection".to_owned())),
            // Who has the effect, or will, does not refuse it.
            1 if self.truth(&call.run, call.action) == Some(false) => Err(ToolError::Rejected("no".to_owned())),
            2 => Err(ToolError::Unknown("reset before it arrived".to_owned())),
            3 => {
                self.apply(&call);
                Err(ToolError::Unknown("reset after it arrived".to_owned()))
            }
            4 => {
                drop(self.send(&call, LONGEST_DELIVERY_MS));
                Err(ToolError::Unknown("reset, and it is on its way".to_owned()))
            }
            5 => {
                self.apply(&call);
                std::panic::resume_unwind(Box::new("a tool that panics"))
            }
            6 => {
                drop(self.send(&call, LONGEST_DELIVERY_MS));
                std::future::pending().await
            }
            _ => self.answered(call, LONGEST_DELIVERY_MS).await,
        }
    }

    async fn answered(self: Arc<Self>, call: ToolCall, within_ms: u64) -> Result<Vec<u8>, ToolError> {
        let answer = self.send(&call, within_ms);
        answer.await.map_err(|_| ToolError::Unknown("no answer".to_owned()))
    }

    /// Puts a call on its way: from here on nothing that happens to its sender matters.
    fn send(self: &Arc<Self>, call: &ToolCall, within_ms: u64) -> oneshot::Receiver<Vec<u8>> {
        let (answer, answered) = oneshot::channel();
        let (there, back) = (self.chance.ms_below(within_ms), self.chance.ms_below(within_ms));
        self.change(call, |effect| effect.on_its_way += 1);
        let (outside, call) = (self.clone(), call.clone());
        tokio::spawn(async move {
            tokio::time::sleep(there).await;
            outside.apply(&call);
            outside.change(&call, |effect| effect.on_its_way -= 1);
            tokio::time::sleep(back).await;
            // Who asked may be dead.
            let _ = answer.send(result_of(&call));
        });
        answered
    }

    async fn look_up(&self, call: &ToolCall, misbehaves: u32) -> LookedUp {
        tokio::time::sleep(Duration::from_millis(1)).await;
        if self.chance.permille(misbehaves) {
            return match self.chance.below(3) {
                0 => LookedUp::NoAnswer("no answer".to_owned()),
                1 => LookedUp::NotNow("busy".to_owned()),
                _ => LookedUp::Unknown("can't tell".to_owned()),
            };
        }
        match self.truth(&call.run, call.action) {
            None => LookedUp::Running,
            Some(true) => LookedUp::Done(result_of(call)),
            Some(false) => LookedUp::Absent,
        }
    }

    fn apply(&self, call: &ToolCall) {
        self.witness.tell(|| format!("{} action {} arrives, attempt {}", call.run, call.action, call.attempt));
        self.change(call, |effect| {
            if effect.class != Class::Keyed || effect.times == 0 {
                effect.times += 1;
            }
        });
    }

    fn know(&self, class: Class, call: &ToolCall) {
        self.lock().entry((call.run.clone(), call.action)).or_insert_with(|| Effect {
            tool: tool_of(class).to_owned(),
            class,
            arguments: call.arguments.to_string(),
            times: 0,
            on_its_way: 0,
        });
    }

    fn change(&self, call: &ToolCall, change: impl FnOnce(&mut Effect)) {
        if let Some(effect) = self.lock().get_mut(&(call.run.clone(), call.action)) {
            change(effect);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(String, u32), Effect>> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The tool of a class.
pub(super) fn tool_of(class: Class) -> &'static str {
    match class {
        Class::Read => "look",
        Class::Idempotent => "put",
        Class::Keyed => "pay",
        Class::Checkable => "book",
        Class::Unsafe => "shout",
    }
}

/// What the tool answers: the same for the same arguments.
pub(super) fn result_of(call: &ToolCall) -> Vec<u8> {
    format!("done {}", call.arguments).into_bytes()
}
