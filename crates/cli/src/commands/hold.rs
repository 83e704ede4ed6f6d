//! `hold`, and `release` of what is held: the dispatch of a tool, a model or an agent stops in every run, and goes on.

use lodestep::Runtime;
use lodestep::core::hold::{DispatchHold, Held, Target};
use lodestep::core::{Definition, Error, Result};
use lodestep::store::{Holding, Store};
use serde_json::{Value, json};

use crate::app::App;
use crate::text::line;
use crate::unknown;

/// Holds a target.
pub async fn hold(app: &App, target: &str, reason: &str) -> Result<u8> {
    let target = Target::parse(target)?;
    let runtime = app.open(false)?;
    let (said, hold) = match runtime.store().hold_dispatch(&target, &app.by(), reason).await? {
        Holding::New(hold) => ("", hold),
        Holding::Existing(hold) => ("already given: ", hold),
    };
    let release = app.command(&format!("release {}", crate::text::quoted(&target.to_string())));
    if let Some(warning) = holds_nothing(&runtime, &hold).await? {
        lodestep::note!("note: {warning}");
    }
    let text = format!("{said}{}nothing is sent to it from now on; `{release}` ends it\n", in_a_line(&hold));
    let verdict = if said.is_empty() { "accepted" } else { "already_given" };
    app.say(&text, &json!({"verdict": verdict, "hold": as_json(&hold)}));
    Ok(0)
}

/// What a hold is that holds nothing of any run: misspelt, perhaps, or for runs that are still to come.
///
/// # Errors
///
/// The store's errors.
async fn holds_nothing(runtime: &Runtime, hold: &DispatchHold) -> Result<Option<String>> {
    let definitions = unknown::definitions(runtime.store()).await?;
    let holds =
        |definition: &Definition| Held::of(std::slice::from_ref(hold), definition).number_of(&hold.target).is_some();
    if definitions.is_empty() || definitions.iter().any(holds) {
        return Ok(None);
    }
    let (kind, name) = match &hold.target {
        Target::Tool(name) => ("tool", name),
        Target::Model(name) => ("model", name),
        Target::Agent(name) => ("agent", name),
    };
    let names = definitions.iter().flat_map(|definition| names(&hold.target, definition));
    let near = match lodestep::nearest(name, names) {
        Some(near) => format!("did you mean `{kind}:{near}`?"),
        None => "it is held for those that may come".to_owned(),
    };
    Ok(Some(format!("no run has {} {kind} `{}`; {near}", article(kind), line(name, 100))))
}

fn article(kind: &str) -> &'static str {
    if kind == "agent" { "an" } else { "a" }
}

/// The names that a target of this kind can have in a definition.
fn names<'a>(target: &Target, definition: &'a Definition) -> Vec<&'a str> {
    match target {
        Target::Tool(_) => definition.tools.iter().flat_map(|tool| [tool.name.as_str(), tool.group.as_str()]).collect(),
        Target::Model(_) => vec![definition.model.name.as_str(), definition.model.provider.as_str()],
        Target::Agent(_) => vec![definition.name.as_str()],
    }
}

/// That what was named as a run is held, or almost so.
///
/// # Errors
///
/// The store's errors.
pub async fn meant(store: &dyn Store, name: &str) -> Result<Option<Error>> {
    let held: Vec<String> = store.dispatch_holds().await?.open.iter().map(|hold| hold.target.to_string()).collect();
    let names = held.iter().filter_map(|target| target.split_once(':'));
    let Some(near) = lodestep::nearest(name, names.map(|(_, name)| name)) else { return Ok(None) };
    let target = held.iter().find(|target| target.split_once(':').is_some_and(|(_, name)| name == near));
    let what = format!("there is no run `{}` in this store", name.escape_default());
    Ok(target.map(|target| Error::new("run.not_found", what, format!("did you mean `{target}`, which is held?"))))
}

/// Ends the hold on a target.
pub async fn release(app: &App, target: &str) -> Result<u8> {
    let target = Target::parse(target)?;
    let runtime = app.open(false)?;
    let Some(ended) = runtime.store().release_dispatch(&target, &app.by()).await? else {
        let held = runtime.store().dispatch_holds().await?.open;
        let held: Vec<String> = held.iter().map(|hold| hold.target.to_string()).collect();
        let near = lodestep::nearest(&target.to_string(), held.iter().map(String::as_str));
        let next = match (near, held.is_empty()) {
            (Some(near), _) => format!("did you mean `{near}`?"),
            (None, true) => "nothing is held".to_owned(),
            (None, false) => format!("held are: {}", held.join(", ")),
        };
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
