//! What the run made: saving a version, and searching one. Opening and closing are the core's.

use lodestep_core::effect::Seen;
use lodestep_core::rules::settle::NewArtifact;
use lodestep_core::{INLINE_VALUE_BYTES, Ordinal, Result, Stored, ValueRef};
use lodestep_store::{RunRef, Store};
use serde_json::Value;

use crate::tools::rooted::check_name;
use crate::tools::{PREVIEW_BYTES, RESULT_BYTES, Sight};

/// The most lines that a search answers.
const FOUND_LINES: usize = 50;

/// Saves the arguments' text under the arguments' name. The version is given when the outcome is committed.
pub(crate) async fn save(store: &dyn Store, run: &RunRef, arguments: &Value) -> Result<Sight> {
    let name = arguments.get("name").and_then(Value::as_str).unwrap_or_default();
    let text = arguments.get("text").and_then(Value::as_str).unwrap_or_default();
    if let Err(fault) = check_name(name) {
        return Ok(Sight::new(Seen::Refused, fault.to_string()));
    }
    let artifact = keep(store, run, name, text.as_bytes().to_vec()).await?;
    Ok(Sight { artifact: Some(artifact), ..Sight::new(Seen::Done, Vec::new()) })
}

/// Makes bytes durable as the next version of an artifact, as far as that is due before the commit.
pub(crate) async fn keep(store: &dyn Store, run: &RunRef, name: &str, bytes: Vec<u8>) -> Result<NewArtifact> {
    let versions = store.artifacts(run).await?;
    let last_version = versions.iter().filter(|row| row.name == name).map(|row| row.version).max().unwrap_or(0);
    let (content, inline) = if bytes.len() > INLINE_VALUE_BYTES {
        (store.put_value(bytes).await?, None)
    } else {
        (ValueRef::of(&bytes), Some(bytes))
    };
    Ok(NewArtifact { name: name.to_owned(), last_version, content, inline })
}

/// A result that is too long for a checkpoint: the whole becomes an artifact, byte for byte, and a preview is shown.
pub(crate) struct Long<'a> {
    sight: &'a Sight,
    name: String,
}

impl<'a> Long<'a> {
    /// `None` for one that is short enough.
    pub(crate) fn of(sight: &'a Sight, ordinal: Ordinal) -> Option<Self> {
        let is_long = sight.text.len() > RESULT_BYTES && sight.artifact.is_none();
        is_long.then(|| Self { sight, name: format!("output-{ordinal}.txt") })
    }

    /// Keeps the whole. Only what was done makes an artifact; of anything else what is shown is all that is kept.
    pub(crate) async fn keep(&self, store: &dyn Store, run: &RunRef) -> Result<Sight> {
        if self.sight.seen != Seen::Done {
            return Ok(self.cut("the rest is not kept"));
        }
        let artifact = keep(store, run, &self.name, self.sight.text.clone()).await?;
        let kept = if self.sight.cut_from_bytes.is_some() { "what was kept" } else { "the whole" };
        let cut = self.cut(&format!("{kept} is artifact {}: open or search it", self.name));
        Ok(Sight { artifact: Some(artifact), ..cut })
    }

    /// The beginning of it, up to a whole character, and what became of the rest.
    pub(crate) fn cut(&self, rest: &str) -> Sight {
        let bytes = &self.sight.text;
        let (preview, flag) = preview(&bytes[..PREVIEW_BYTES]);
        let all = match self.sight.cut_from_bytes {
            Some(said) => format!("truncated at the source: {said} bytes were written"),
            None => format!("{} bytes in all", bytes.len()),
        };
        let text = format!("{preview}\n[… {all}; {rest}{flag} …]").into_bytes();
        let Sight { seen, retry_after_ms, cut_from_bytes, .. } = *self.sight;
        Sight { seen, text, artifact: None, retry_after_ms, cut_from_bytes }
    }
}

/// The text of bytes that were cut somewhere, without the character that the cut went through; and what to say when they
/// are no text.
fn preview(bytes: &[u8]) -> (String, &'static str) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (text.to_owned(), ""),
        Err(error) if error.error_len().is_none() => {
            (String::from_utf8_lossy(&bytes[..error.valid_up_to()]).into_owned(), "")
        }
        Err(_) => (String::from_utf8_lossy(bytes).into_owned(), "; not UTF-8: what is no text is shown as U+FFFD"),
    }
}

/// Searches an artifact's lines for all words of a query, without regard to case.
pub(crate) async fn search(store: &dyn Store, run: &RunRef, arguments: &Value, known: Option<Stored>) -> Result<Sight> {
    let name = arguments.get("name").and_then(Value::as_str).unwrap_or_default();
    let query = arguments.get("query").and_then(Value::as_str).unwrap_or_default().to_lowercase();
    let words: Vec<&str> = query.split_whitespace().collect();
    let Some(stored) = (match known {
        Some(stored) => Some(stored),
        None => store.artifacts(run).await?.into_iter().rev().find(|row| row.name == name).map(|row| row.content),
    }) else {
        return Ok(Sight::new(Seen::Refused, format!("there is no artifact `{}`", name.escape_default())));
    };
    if words.is_empty() {
        return Ok(Sight::new(Seen::Refused, "the query is empty"));
    }
    let blobs = store.values(run, &[stored]).await?;
    let bytes = blobs.get(&stored.digest).map(Vec::as_slice).unwrap_or_default();
    let text = String::from_utf8_lossy(bytes);
    let fits = |line: &str| {
        let line = line.to_lowercase();
        words.iter().all(|word| line.contains(word))
    };
    let found: Vec<(usize, &str)> = text.lines().enumerate().filter(|(_, line)| fits(line)).collect();
    let mut answer: Vec<String> = found
        .iter()
        .take(FOUND_LINES)
        .map(|(at, line)| format!("{name}:{}: {}", at + 1, line.chars().take(400).collect::<String>()))
        .collect();
    answer.push(format!("{} of {} lines", found.len().min(FOUND_LINES), found.len()));
    Ok(Sight::new(Seen::Done, answer.join("\n")))
}
