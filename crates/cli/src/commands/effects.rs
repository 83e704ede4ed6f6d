//! `effects`: what a run did to the world.

use lodestep::core::Result;
use lodestep::inspect;
use serde_json::json;

use crate::app::App;

/// Lists a run's effects.
pub async fn effects(app: &App, run: &str) -> Result<u8> {
    let runtime = app.open_to_read()?;
    let row = app.find(&runtime, run).await?;
    let effects = inspect::effects(runtime.store(), &row.run).await?;
    let mut text = String::new();
    for effect in &effects {
        let by = effect.by.map(|by| format!(" by {by:?}").to_lowercase()).unwrap_or_default();
        text.push_str(&format!(
            "{:<4} {:<16} {:<10} {:<10} {} attempt{}{by}  {}\n",
            effect.action.to_string(),
            effect.tool,
            effect.class.as_str(),
            effect.state,
            effect.attempts.len(),
            if effect.attempts.len() == 1 { "" } else { "s" },
            effect.key
        ));
        for attempt in effect.attempts.iter().filter(|_| effect.attempts.len() > 1) {
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
