//! Runs by what one of their effects came to. No index has that: it stands in a run's state, and of older actions in its journal.

use clap::ValueEnum;
use lodestep::core::Result;
use lodestep::core::checkpoint::How;
use lodestep::core::rules::standing::Status;
use lodestep::inspect::{self, Opened};
use lodestep::store::{RunRow, Store};

use super::Found;
use crate::select::{MOST, Selected, Selection};

/// What an effect came to, in the words of `effects`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CameTo {
    /// It failed for good: it did not happen.
    Failed,
    /// It was denied before it was sent.
    Denied,
    /// A person gave it up: whether it happened is unknown.
    GivenUp,
}

impl CameTo {
    fn word(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Denied => "denied",
            Self::GivenUp => "given up",
        }
    }

    fn is(self, how: How) -> bool {
        match self {
            Self::Failed => how == How::Failed,
            Self::Denied => matches!(how, How::Denied(_)),
            Self::GivenUp => how == How::Abandoned,
        }
    }
}

/// The runs with such an effect, of the tool that was named: the newest thousand of the other filters are looked into.
pub async fn came_to(store: &dyn Store, selection: &Selection, wanted: CameTo) -> Result<Found> {
    let others = Selection { tool: None, ..selection.clone() };
    let Selected { rows, note } = others.sieve(store)?.runs(store, &Status::ALL, MOST).await?;
    let mut found = Found::default();
    for row in rows {
        if has(store, &row, selection.tool.as_deref(), wanted).await? {
            found.rows.push(row);
        }
    }
    let looked = format!("only the newest {MOST} runs of the other filters were looked into for effects that are");
    found.notes.extend(note.map(|_| format!("{looked} {}", wanted.word())));
    Ok(found)
}

/// A run that can't be read has none that anybody could name.
async fn has(store: &dyn Store, row: &RunRow, tool: Option<&str>, wanted: CameTo) -> Result<bool> {
    let Ok(opened) = inspect::open(store, &row.run.key).await else { return Ok(false) };
    let is_of = |name: &str| tool.is_none_or(|tool| tool == name);
    let recent = &opened.checkpoint.recent;
    if recent.iter().any(|settled| settled.key.is_some() && is_of(&settled.tool) && wanted.is(settled.how)) {
        return Ok(true);
    }
    if !may_be_older(&opened, is_of) {
        return Ok(false);
    }
    let effects = inspect::effects(store, &row.run).await.unwrap_or_default();
    Ok(effects.iter().any(|effect| is_of(&effect.tool) && effect.state.starts_with(wanted.word())))
}

/// Did an effect that has left the state come to something else than done? What an agent was moved from is not known.
fn may_be_older(opened: &Opened, is_of: impl Fn(&str) -> bool) -> bool {
    let is_effect = |tool: &str| {
        let known = opened.definition.as_ref().and_then(|definition| definition.tool(tool));
        known.is_none_or(|tool| !tool.class.is_repeatable())
    };
    let older = opened.checkpoint.older.iter();
    older.filter(|(tool, counts)| counts.not_done > 0 && is_of(tool)).any(|(tool, _)| is_effect(tool))
}
