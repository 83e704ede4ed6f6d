//! `context`: the request that a decision saw, rebuilt, with what it was made of.

use lodestep::core::Result;
use lodestep::core::context::Manifest;
use lodestep::inspect::{self, Asked, Which};
use serde_json::{Value, json};

use crate::app::App;
use crate::text::visible;

/// Prints a request: 0 when it was rebuilt to the byte, 1 when it can't be.
pub async fn context(app: &App, run: &str, at: Option<u64>, decision: Option<u32>) -> Result<u8> {
    let runtime = app.open_to_read()?;
    let row = app.find(&runtime, run).await?;
    let which = match (at, decision) {
        (Some(at), _) => Which::AtStep(at),
        (None, Some(decision)) => Which::Decision(decision),
        (None, None) => Which::Newest,
    };
    let asked = inspect::request(runtime.store(), &row.run, which).await?;
    if app.json {
        app.print(&format!("{}\n", as_json(row.run.key.run.as_str(), &asked)));
    } else {
        app.print(&as_text(row.run.key.run.as_str(), &asked));
    }
    Ok(if asked.request.is_ok() { 0 } else { 1 })
}

fn as_json(run: &str, asked: &Asked) -> Value {
    let request = asked.request.as_ref();
    json!({
        "run": run, "step": asked.step, "call": asked.call, "decision": asked.decision, "digest": asked.digest,
        "manifest": asked.manifest, "request": request.ok(), "why_not": request.err(),
    })
}

fn as_text(run: &str, asked: &Asked) -> String {
    let decision = asked.decision.map_or("no decision".to_owned(), |decision| format!("decision {decision}"));
    let mut text = format!("run {run}  step {}  call {} of the model  {decision}\n", asked.step, asked.call);
    match &asked.manifest {
        Some(manifest) => text.push_str(&table(manifest)),
        None => text.push_str("the manifest was erased\n"),
    }
    match &asked.request {
        Ok(request) => {
            let json = serde_json::to_string_pretty(request).unwrap_or_default();
            text.push_str(&format!("digest {}, as recorded\n\n{}\n", asked.digest, visible(&json)));
        }
        Err(why) => text.push_str(&format!("\nthe request can't be rebuilt: {}\n", visible(why))),
    }
    text
}

/// The sections with their estimated tokens, the longest name first in width.
fn table(manifest: &Manifest) -> String {
    let names = manifest.sections.iter().map(|section| section.section.len());
    let width = names.max().unwrap_or_default().max("whole request".len());
    let row = |name: &str, tokens: u64| format!("  {name:<width$}  {tokens:>9}\n");
    let rows: String = manifest.sections.iter().map(|section| row(&section.section, section.tokens)).collect();
    let shown: Vec<String> = manifest.actions.iter().map(u32::to_string).collect();
    let shown = if shown.is_empty() { "none".to_owned() } else { shown.join(", ") };
    format!(
        "  {:<width$}  {:>9}\n{rows}{}{}  actions in full: {shown}\n  assembler {}\n",
        "section",
        "tokens",
        row("whole request", manifest.tokens),
        row("window for it", manifest.budget),
        manifest.assembler
    )
}
