//! `effects`: what a run did to the world.

use lodestep::core::Result;
use lodestep::inspect::{self, KnownBy};
use serde_json::json;

use crate::app::App;
use crate::findings::Findings;
use crate::text::line;

/// Lists a run's effects.
pub async fn effects(app: &App, run: &str) -> Result<u8> {
    let runtime = app.open_to_read()?;
    let row = app.find(&runtime, run).await?;
    Findings::of(app).tell_of(app, &row.run);
    let effects = inspect::effects(runtime.store(), &row.run).await?;
    let mut text = String::new();
    for effect in &effects {
        let by = match (effect.by, &effect.said_by) {
            (Some(KnownBy::Settled(by)), _) => format!(" by {by:?}").to_lowercase(),
            (Some(KnownBy::Person), Some(name)) => format!(" by person {}", line(name, 64)),
            (Some(KnownBy::Person), None) => " by person".to_owned(),
            (None, _) => String::new(),
        };
        let why = effect.reason.as_deref().map(|reason| format!(": {}", line(reason, 200))).unwrap_or_default();
        text.push_str(&format!(
            "{:<4} {:<16} {:<10} {:<10} {} attempt{}{by}{why}  {}\n",
            effect.action.to_string(),
            effect.tool,
            effect.class.as_str(),
            effect.state,
            effect.attempts.len(),
            if effect.attempts.len() == 1 { "" } else { "s" },
            effect.key
        ));
        for attempt in &effect.attempts {
            text.push_str(&format!(
                "       attempt {} at {} (epoch {}): {}\n",
                attempt.attempt, attempt.at, attempt.epoch, attempt.outcome
            ));
        }
    }
    if effects.is_empty() {
        text.push_str("no effects\n");
    }
    app.say(&text, &json!(effects));
    Ok(0)
}
