//! `hold`, and `release` of what is held: the dispatch of a tool, a model or an agent stops in every run, and goes on.

use lodestep::core::hold::{DispatchHold, Target};
use lodestep::core::{Error, Result};
use lodestep::store::Holding;
use serde_json::{Value, json};

use crate::app::App;
use crate::text::line;

/// Holds a target.
pub async fn hold(app: &App, target: &str, reason: &str) -> Result<u8> {
    let target = Target::parse(target)?;
    let runtime = app.open(false)?;
    let (said, hold) = match runtime.store().hold_dispatch(&target, &app.by(), reason).await? {
        Holding::New(hold) => ("", hold),
        Holding::Existing(hold) => ("already given: ", hold),
    };
    let release = app.command(&format!("release {}", crate::text::quoted(&target.to_string())));
    let text = format!("{said}{}nothing is sent to it from now on; `{release}` ends it\n", in_a_line(&hold));
    let verdict = if said.is_empty() { "accepted" } else { "already_given" };
    app.say(&text, &json!({"verdict": verdict, "hold": as_json(&hold)}));
    Ok(0)
}

/// Ends the hold on a target.
pub async fn release(app: &App, target: &str) -> Result<u8> {
    let target = Target::parse(target)?;
    let runtime = app.open(false)?;
    let Some(ended) = runtime.store().release_dispatch(&target, &app.by()).await? else {
        let held = runtime.store().dispatch_holds().await?.open;
        let held: Vec<String> = held.iter().map(|hold| hold.target.to_string()).collect();
        let next =
            if held.is_empty() { "nothing is held".to_owned() } else { format!("held are: {}", held.join(", ")) };
        return Err(Error::new("hold.not_found", format!("{target} is not held"), next));
    };
    let text = format!("released: {target}; the runs that waited for it go on as soon as a worker is there\n");
    app.say(&text, &json!({"verdict": "accepted", "hold": as_json(&ended)}));
    Ok(0)
}

/// Lists what is held.
pub async fn list(app: &App) -> Result<u8> {
    let runtime = app.open_to_read()?;
    let holds = runtime.store().dispatch_holds().await?.open;
    let text: String = holds.iter().map(in_a_line).collect();
    let text = if text.is_empty() { "nothing is held\n".to_owned() } else { text };
    app.say(&text, &Value::Array(holds.iter().map(as_json).collect()));
    Ok(0)
}

/// A hold in a line.
pub fn in_a_line(hold: &DispatchHold) -> String {
    let reason = if hold.reason.is_empty() { String::new() } else { format!(": {}", line(&hold.reason, 200)) };
    format!("held: {} by {} since {}{reason}\n", line(&hold.target.to_string(), 100), line(&hold.by, 60), hold.since)
}

fn as_json(hold: &DispatchHold) -> Value {
    json!({"target": hold.target, "by": hold.by, "reason": hold.reason, "since": hold.since.to_string()})
}
