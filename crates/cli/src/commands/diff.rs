//! `diff`: what changed between two steps of a run, or between two runs.

use lodestep::Runtime;
use lodestep::core::Result;
use lodestep::inspect::{self, Change, Opened};
use serde_json::json;

use crate::app::App;
use crate::text::{line, short_id};

/// Prints the differences: of a run from a step to another, or of a run and another one.
pub async fn diff(app: &App, run: &str, other: Option<&str>, from: Option<u64>, to: Option<u64>) -> Result<u8> {
    let runtime = app.open_to_read()?;
    let before = match (from, other) {
        // Within one run the start is what everything is compared with.
        (None, None) => state(app, &runtime, run, Some(1)).await?,
        (from, _) => state(app, &runtime, run, from).await?,
    };
    let after = state(app, &runtime, other.unwrap_or(run), to).await?;
    let changes = inspect::diff(&before, &after);
    if app.json {
        let side = |opened: &Opened| json!({"run": opened.checkpoint.run, "step": opened.checkpoint.seq});
        app.print(&format!("{}\n", json!({"before": side(&before), "after": side(&after), "changes": changes})));
        return Ok(0);
    }
    let side = |opened: &Opened| {
        format!("run {} at step {}", short_id(opened.checkpoint.run.as_str(), &[]), opened.checkpoint.seq)
    };
    let mut text = format!("from {} to {}\n", side(&before), side(&after));
    if changes.is_empty() {
        text.push_str("nothing changed\n");
    }
    text.extend(changes.iter().map(words));
    app.print(&text);
    Ok(0)
}

async fn state(app: &App, runtime: &Runtime, run: &str, at: Option<u64>) -> Result<Opened> {
    let row = app.find(runtime, run).await?;
    match at {
        Some(at) => inspect::open_at(runtime.store(), &row, at).await,
        None => inspect::open(runtime.store(), &row.run.key).await,
    }
}

/// One difference as a line.
pub fn words(change: &Change) -> String {
    let of = if change.of.is_empty() { String::new() } else { format!(" {}", line(&change.of, 64)) };
    let text = |text: &String| if text.is_empty() { "nothing".to_owned() } else { line(text, 160) };
    let what = match (&change.before, &change.after) {
        (Some(before), Some(after)) => format!("{} -> {}", text(before), text(after)),
        (None, Some(after)) => format!("new: {}", text(after)),
        (Some(before), None) => format!("gone: {}", text(before)),
        (None, None) => String::new(),
    };
    format!("{}{of}: {what}\n", change.part)
}
