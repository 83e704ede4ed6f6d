//! `verify`: do the journals still say what they said?

use lodestep::core::Result;
use lodestep::core::ids::DEFAULT_NAMESPACE;
use lodestep::inspect::{self, Report};
use lodestep::store::Filter;
use serde_json::{Value, json};

use crate::app::App;
use crate::text::short_id;

/// Verifies one run, or all. Exits 7 when something is damaged.
pub async fn verify(app: &App, run: Option<String>) -> Result<u8> {
    let runtime = app.open(false)?;
    let rows = match run {
        Some(run) => vec![app.find(&runtime, &run).await?],
        None => runtime.store().list(DEFAULT_NAMESPACE, &Filter::default()).await?,
    };
    let (mut reports, mut text, mut damaged) = (Vec::new(), String::new(), false);
    for row in rows {
        let id = short_id(row.run.key.run.as_str(), &[]).to_owned();
        match inspect::verify(runtime.store(), &row.run.key).await {
            Ok(report) => {
                damaged |= !report.faults.is_empty();
                text.push_str(&in_words(&id, &report));
                reports.push(json!(report));
            }
            Err(error) => {
                damaged = true;
                text.push_str(&format!("run {id}: DAMAGED: {}\n", error.what()));
                reports.push(json!({"run": row.run.key.as_ref(), "faults": [error.what()]}));
            }
        }
    }
    app.say(if text.is_empty() { "no runs\n" } else { &text }, &Value::Array(reports));
    Ok(if damaged { 7 } else { 0 })
}

fn in_words(id: &str, report: &Report) -> String {
    if report.faults.is_empty() {
        let erased = if report.erased > 0 { format!(", {} values erased", report.erased) } else { String::new() };
        return format!(
            "run {id}: sound. {} transitions, {} snapshots, {} values{erased}\n  head  {}\n  state {}\n",
            report.transitions, report.snapshots, report.values, report.head, report.state
        );
    }
    report.faults.iter().fold(format!("run {id}: DAMAGED\n"), |text, fault| format!("{text}  {fault}\n"))
}
