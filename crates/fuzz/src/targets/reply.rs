//! A model's reply: decided on, and what is owed after it.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use lodestep::tools::schema::Schemas;
use lodestep_core::rules::decide::{Question, decide};
use lodestep_core::rules::owed::{Hands, owed};
use lodestep_model::{Call, Reply, StopReason};

use super::answer;
use super::run::{folds, next};
use crate::corpus::{definition, run_asking};

/// A reply as JSON. What is no reply is taken as the arguments of a call of each tool.
pub(super) fn reply(input: &[u8]) -> u64 {
    let reply = serde_json::from_slice(input).unwrap_or_else(|_| of_arguments(input));
    static SCHEMAS: OnceLock<Schemas> = OnceLock::new();
    let (definition, (asking, call)) = (definition(), run_asking());
    let schemas = SCHEMAS.get_or_init(|| Schemas::of(definition));
    let mut draft = next(asking);
    let transcript = draft.put(input);
    let check = |tool: &_, arguments: &_| schemas.check(tool, arguments);
    let (priors, apart) = (BTreeMap::new(), BTreeMap::new());
    let question =
        Question { definition, call: *call, reply: &reply, transcript, check: &check, priors: &priors, apart: &apart };
    decide(&mut draft, &question).expect("a reply never contradicts the state");
    let (dedupe, busy, held) = Default::default();
    let hands = Hands { free: 4, send_by: draft.now().plus_ms(20_000), dedupe: &dedupe, busy: &busy, held: &held };
    owed(&mut draft, definition, hands).expect("a decision leaves a sound state");
    let said: String = draft.events().iter().map(|event| event.name().split_at(8).0).collect();
    folds(asking, draft);
    answer(&said)
}

fn of_arguments(input: &[u8]) -> Reply {
    let arguments = String::from_utf8_lossy(input);
    let call = |name: &String| Call { id: name.clone(), name: name.clone(), arguments: arguments.to_string() };
    let calls = definition().tools.iter().map(|tool| call(&tool.name)).collect();
    Reply { text: String::new(), calls, stop: StopReason::ToolCalls, ..Reply::default() }
}
