//! `verify`: do the journals still say what they said?

use lodestep::core::Result;
use lodestep::inspect::{self, Report};
use lodestep::store::Audit;
use serde_json::{Value, json};

use crate::app::App;
use crate::text::short_id;

/// Verifies one run, or all, with what belongs to none. Exits 7 when something is damaged.
pub async fn verify(app: &App, run: Option<String>) -> Result<u8> {
    let runtime = app.open_to_read()?;
    let audit = match run {
        Some(run) => Audit { runs: vec![runtime.find(&run).await?.run], strays: Vec::new() },
        None => runtime.store().audit().await?,
    };
    let (mut reports, mut text, mut damaged) = (Vec::new(), String::new(), false);
    for run in audit.runs {
        let id = short_id(run.key.run.as_str(), &[]).to_owned();
        match inspect::verify(runtime.store(), &run).await {
            Ok(report) => {
                damaged |= !report.faults.is_empty();
                text.push_str(&in_words(&id, &report));
                reports.push(json!(report));
            }
            Err(error) => {
                damaged = true;
                text.push_str(&format!("run {id}: DAMAGED: {}\n", error.what()));
                reports.push(json!({"run": run.key.as_ref(), "faults": [error.what()]}));
            }
        }
    }
    if !audit.strays.is_empty() {
        damaged = true;
        text.push_str(
            &audit.strays.iter().fold("store: DAMAGED\n".to_owned(), |text, stray| format!("{text}  {stray}\n")),
        );
        reports.push(json!({"run": null, "faults": audit.strays}));
    }
    app.say(if text.is_empty() { "no runs\n" } else { &text }, &Value::Array(reports));
    Ok(if damaged { 7 } else { 0 })
}

fn in_words(id: &str, report: &Report) -> String {
    if report.faults.is_empty() {
        let erased = if report.erased > 0 { format!(", {} values erased", report.erased) } else { String::new() };
        return format!(
            "run {id}: sound. {} transitions, {} snapshots, {} rows, {} values{erased}\n  head  {}\n  state {}\n",
            report.transitions, report.snapshots, report.rows, report.values, report.head, report.state
        );
    }
    report.faults.iter().fold(format!("run {id}: DAMAGED\n"), |text, fault| format!("{text}  {fault}\n"))
}
