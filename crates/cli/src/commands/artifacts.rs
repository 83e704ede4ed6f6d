//! `artifacts`: what a run made.

use std::io::Write as _;

use lodestep::core::{Error, Result};
use serde_json::{Value, json};

use crate::app::App;
use crate::findings::Findings;

/// Lists a run's artifacts, or prints one's bytes.
pub async fn artifacts(app: &App, run: &str, name: Option<String>, version: Option<u32>) -> Result<u8> {
    let runtime = app.open_to_read()?;
    let row = app.find(&runtime, run).await?;
    Findings::of(app).tell_of(app, &row.run);
    let rows = runtime.store().artifacts(&row.run).await?;
    let Some(name) = name else {
        let text: String = rows
            .iter()
            .map(|row| {
                format!("{}  version {}  {} bytes  {}\n", row.name, row.version, row.content.len, row.content.digest)
            })
            .collect();
        let list: Vec<Value> = rows
            .iter()
            .map(|row| json!({"name": row.name, "version": row.version, "bytes": row.content.len, "digest": row.content.digest}))
            .collect();
        app.say(if text.is_empty() { "no artifacts\n" } else { &text }, &Value::Array(list));
        return Ok(0);
    };
    let wanted = rows.iter().rev().find(|row| row.name == name && version.is_none_or(|version| row.version == version));
    let Some(found) = wanted else {
        let known: Vec<String> = rows.iter().map(|row| format!("{} (version {})", row.name, row.version)).collect();
        let what = format!(
            "the run has no artifact `{}`{}",
            name.escape_default(),
            version.map(|version| format!(" of version {version}")).unwrap_or_default()
        );
        let next = if known.is_empty() { "it has none".to_owned() } else { format!("it has: {}", known.join(", ")) };
        return Err(Error::new("artifact.not_found", what, next));
    };
    let blobs = runtime.store().values(&row.run, &[found.content]).await?;
    let bytes = blobs.get(&found.content.digest).ok_or_else(|| {
        Error::new(
            "store.value_missing",
            format!("the bytes of {name} are gone"),
            "`lodestep verify` says what else is missing",
        )
    })?;
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(bytes).and_then(|()| out.flush());
    Ok(0)
}
