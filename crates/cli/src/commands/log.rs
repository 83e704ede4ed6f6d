//! `log`: a run's events.

use lodestep::core::event::{CallAnswered, CallFailure, Envelope, Event};
use lodestep::core::quota::Quota;
use lodestep::core::{Digest, Result};
use serde_json::{Value, json};

use crate::app::App;
use crate::findings::Findings;
use crate::text::line;

/// Prints a run's events, one a line.
pub async fn log(app: &App, run: &str, from: u64, limit: usize) -> Result<u8> {
    let runtime = app.open_to_read()?;
    let row = app.find(&runtime, run).await?;
    Findings::of(app).tell_of(app, &row.run);
    for row in runtime.store().journal(&row.run, from, limit).await? {
        let envelope = Envelope::from_bytes(&row.envelope)?;
        for event in &envelope.events {
            let value = serde_json::to_value(event).unwrap_or(Value::Null);
            let fields = value.as_object().and_then(|object| object.values().next()).cloned().unwrap_or(Value::Null);
            let said = said(event, row.values.as_deref().unwrap_or_default());
            if app.json {
                let entry = json!({"step": envelope.seq, "at": envelope.at.to_string(), "epoch": envelope.epoch,
                    "event": event.name(), "fields": fields, "said": said});
                app.print(&format!("{entry}\n"));
            } else {
                let said = said.map(|said| format!(": {}", line(&said, 200))).unwrap_or_default();
                let fields = match event {
                    Event::CallAnswered(answered) => line(&answer(answered), 300),
                    _ => line(&without_digests(&fields), 120),
                };
                let fields = format!("{fields}{said}");
                app.print(&format!("{:<5} {}  {:<18} {fields}\n", envelope.seq, envelope.at, event.name()));
            }
        }
    }
    Ok(0)
}

/// What is charged for a call whose reply nobody has.
const UNCONFIRMED: &str = "charged as reserved, unconfirmed";

/// The same, of which more was reported than was held back.
const REPORTED: &str = "charged as reported before it was lost, unconfirmed";

/// A reply whose text was changed where it came in.
const ILL_FORMED: &str = "halves of surrogate pairs in its text became U+FFFD; the transcript has it as it came";

/// What was said with it: why an action was denied, a call of the model failed, or the run was cancelled or stopped. `None`
/// once it was erased.
fn said(event: &Event, values: &[Vec<u8>]) -> Option<String> {
    match event {
        Event::CallAnswered(answered) if answered.about.as_ref()?.ill_formed.is_some() => Some(ILL_FORMED.to_owned()),
        Event::CallLost(_) => Some(format!("{UNCONFIRMED}: its worker is gone")),
        Event::CallFailed(failed) if failed.why == CallFailure::Lost => {
            let charge = if failed.charged.is_some() { REPORTED } else { UNCONFIRMED };
            Some(words(event, values).map_or_else(|| charge.to_owned(), |why| format!("{charge}: {why}")))
        }
        _ => words(event, values),
    }
}

fn words(event: &Event, values: &[Vec<u8>]) -> Option<String> {
    let text = match event {
        Event::CallFailed(failed) => &failed.text,
        Event::ActionDenied(denied) => &denied.text,
        Event::CancelRequested(cancel) => &cancel.reason,
        Event::RunStopped(stopped) => &stopped.text,
        _ => return None,
    };
    let value = values.iter().find(|value| Digest::of(value) == text.digest)?;
    Some(String::from_utf8_lossy(value).into_owned())
}

/// What an answer used, first, and what else there is to say of it.
fn answer(answered: &CallAnswered) -> String {
    let (used, about) = (&answered.used, answered.about.clone().unwrap_or_default());
    let mut text =
        format!("call={} input_tokens={} output_tokens={}", answered.call, used.input_tokens, used.output_tokens);
    for (name, tokens) in
        [("cache_read_tokens", about.cache_read_tokens), ("cache_write_tokens", about.cache_write_tokens)]
    {
        if tokens > 0 {
            text.push_str(&format!(" {name}={tokens}"));
        }
    }
    if used.usd_micro > 0 {
        text.push_str(&format!(" usd={}", Quota::Usd.shown(used.usd_micro)));
    }
    text.push_str(&format!(
        " reported={} faulty={} cut={} reply={}B",
        answered.reported, answered.faulty, about.cut, answered.reply.len
    ));
    for (name, said) in [("model", about.model), ("request_id", about.request_id)] {
        text.extend(said.map(|said| format!(" {name}={said}")));
    }
    text
}

/// The fields that a person reads: digests shortened, empty ones left out.
fn without_digests(fields: &Value) -> String {
    let Some(fields) = fields.as_object() else { return String::new() };
    let words = fields.iter().filter_map(|(name, value)| match value {
        Value::Null => None,
        Value::Object(inner) if inner.contains_key("digest") && inner.contains_key("len") => {
            Some(format!("{name}={}B", inner["len"]))
        }
        Value::String(text) if text.len() == 64 => Some(format!("{name}={}…", &text.get(..8)?)),
        Value::String(text) => Some(format!("{name}={text}")),
        other => Some(format!("{name}={other}")),
    });
    words.collect::<Vec<_>>().join(" ")
}
