//! Acts on the run's own state: done in the decision's own transition, performed by nobody.

use serde_json::Value;

use crate::checkpoint::{Checkpoint, NOTES};
use crate::definition::StateAct;
use crate::draft::Draft;
use crate::error::Result;
use crate::event::{ActionFinished, ArtifactShown, Event, Evidence, MilestoneMarked, NoteTaken, SettledBy};
use crate::ids::Ordinal;

/// The most bytes of a milestone's title.
const TITLE_BYTES: usize = 500;

/// Pushes what the act does and its outcome. Asking, waiting and finishing wait at their gates instead.
pub(super) fn act(draft: &mut Draft, ordinal: Ordinal, act: StateAct, arguments: &Value) -> Result<()> {
    let done = match act {
        StateAct::Ask | StateAct::Finish | StateAct::WaitForSignal | StateAct::Wait => return Ok(()),
        StateAct::Note => note(draft, arguments)?,
        StateAct::Plan => plan(draft, arguments)?,
        StateAct::OpenArtifact => show(draft, arguments, true)?,
        StateAct::CloseArtifact => show(draft, arguments, false)?,
    };
    let (ok, text) = match done {
        Ok(text) => (true, text),
        Err(fault) => (false, fault),
    };
    let result = draft.put(text);
    draft.push(Event::ActionFinished(ActionFinished { ordinal, attempt: 0, ok, result, by: SettledBy::Core }))
}

/// What an act says to the model: what was done, or why not.
type Said = std::result::Result<String, String>;

fn text_of<'a>(arguments: &'a Value, name: &str) -> &'a str {
    arguments.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn note(draft: &mut Draft, arguments: &Value) -> Result<Said> {
    let (key, text) = (text_of(arguments, "key"), text_of(arguments, "text"));
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
    if key.is_empty() || key.len() > 32 || !key.chars().all(plain) {
        return Ok(Err(format!("`{}` is no key: use 1 to 32 of a-z 0-9 _ -", key.escape_default())));
    }
    let limits = draft.checkpoint().limits;
    let others = draft.checkpoint().notes.iter().filter(|(name, _)| *name != key);
    let (count, others) =
        others.fold((0, 0_u64), |(count, bytes), (_, note)| (count + 1, bytes.saturating_add(note.len)));
    if !text.is_empty() && count >= NOTES {
        return Ok(Err(format!("there are {count} notes, and no more can be taken; remove or join some")));
    }
    let all = others.saturating_add(text.len() as u64);
    if text.len() > limits.note_bytes as usize || all > u64::from(limits.notes_bytes) {
        let (note, notes) = (limits.note_bytes, limits.notes_bytes);
        let text = text.len();
        return Ok(Err(format!("{text} bytes: a note may have {note}, all notes {notes} (the others have {others})")));
    }
    let stored = (!text.is_empty()).then(|| draft.put(text));
    draft.push(Event::NoteTaken(NoteTaken { key: key.to_owned(), text: stored }))?;
    Ok(Ok(if stored.is_some() { "noted".to_owned() } else { "removed".to_owned() }))
}

fn plan(draft: &mut Draft, arguments: &Value) -> Result<Said> {
    let (id, status) = (text_of(arguments, "milestone"), text_of(arguments, "status"));
    let checkpoint = draft.checkpoint();
    let known = checkpoint.plan.iter().find(|milestone| milestone.id == id);
    if let Some(tool) = known.and_then(|milestone| milestone.requires_action.as_ref()) {
        return Ok(Err(format!("milestone {id} is marked by the runtime when {tool} has finished")));
    }
    if id.is_empty()
        || id.len() > 64
        || (known.is_none() && checkpoint.plan.len() >= checkpoint.limits.milestones as usize)
    {
        return Ok(Err(format!(
            "a milestone's name has 1 to 64 bytes, a plan at most {} of them",
            checkpoint.limits.milestones
        )));
    }
    let reached = match status {
        "open" => None,
        _ => match evidence(checkpoint, text_of(arguments, "evidence")) {
            Ok(evidence) => Some(evidence),
            Err(fault) => return Ok(Err(fault)),
        },
    };
    let new = known.is_none();
    let title = text_of(arguments, "title");
    if title.len() > TITLE_BYTES {
        return Ok(Err(format!("a milestone's title has at most {TITLE_BYTES} bytes; notes and artifacts take more")));
    }
    let title = (new && !title.is_empty()).then(|| draft.put(title));
    draft.push(Event::MilestoneMarked(MilestoneMarked { id: id.to_owned(), title, reached: reached.clone() }))?;
    Ok(Ok(match reached {
        Some(_) => format!("milestone {id} is reached"),
        None => format!("milestone {id} is open"),
    }))
}

/// Evidence names an action that has an outcome or an artifact that exists; without it stands the model's word.
fn evidence(checkpoint: &Checkpoint, text: &str) -> std::result::Result<Evidence, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(Evidence::Declared);
    }
    if let Some(number) = text.strip_prefix("action ") {
        let ordinal = number.trim().trim_start_matches('#').parse().map(Ordinal).ok();
        let settled = |ordinal: &Ordinal| {
            ordinal.0 >= 1 && ordinal.0 <= checkpoint.last_ordinal && !checkpoint.pending.contains_key(ordinal)
        };
        return match ordinal.filter(settled) {
            Some(ordinal) => Ok(Evidence::Action(ordinal)),
            None => Err(format!("action {number} has no outcome; name one that has")),
        };
    }
    let name = text.strip_prefix("artifact ").unwrap_or(text).trim();
    match checkpoint.artifacts.get(name) {
        Some(artifact) => Ok(Evidence::Artifact(name.to_owned(), artifact.version)),
        None => Err(format!("there is no artifact `{name}`; evidence is `action N` or `artifact NAME`")),
    }
}

fn show(draft: &mut Draft, arguments: &Value, open: bool) -> Result<Said> {
    let name = text_of(arguments, "name");
    let Some(artifact) = draft.checkpoint().artifacts.get(name).copied() else {
        let names: Vec<&String> = draft.checkpoint().artifacts.keys().collect();
        return Ok(Err(format!("there is no artifact `{}`; there are {names:?}", name.escape_default())));
    };
    draft.push(Event::ArtifactShown(ArtifactShown { name: name.to_owned(), open }))?;
    let (version, bytes) = (artifact.version, artifact.content.len);
    Ok(Ok(if open {
        format!("{name}, version {version}, {bytes} bytes, is shown under \"Open artifacts\" from the next decision on")
    } else {
        format!("{name} is no longer shown")
    }))
}
