//! Names in filters that nothing of the store has: a word that finds nothing may be misspelt.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use lodestep::core::ids::DEFAULT_NAMESPACE;
use lodestep::core::{Definition, Error, Result};
use lodestep::inspect;
use lodestep::store::{Filter, RunRow, Store};

use crate::select::{MOST, Selection};

/// What a listing says that found nothing, a line for each name that no run has.
///
/// # Errors
///
/// The store's errors.
pub async fn notes(store: &dyn Store, selection: &Selection) -> Result<Vec<String>> {
    let mut unknown = Vec::new();
    unknown.extend(agent(store, selection).await?);
    for label in &selection.labels {
        unknown.extend(label_of(store, label).await?);
    }
    unknown.extend(tool(store, selection).await?);
    Ok(unknown.iter().map(|unknown| format!("{}; {}", unknown.what(), unknown.next())).collect())
}

/// That no run is of the agent that was named.
///
/// # Errors
///
/// The store's errors.
pub async fn agent(store: &dyn Store, selection: &Selection) -> Result<Option<Error>> {
    let Some(agent) = &selection.agent else { return Ok(None) };
    let of_agent = Filter { agent: Some(agent.clone()), limit: Some(1), ..Filter::default() };
    if !store.list(DEFAULT_NAMESPACE, &of_agent).await?.is_empty() {
        return Ok(None);
    }
    let rows = newest(store).await?;
    let near = near(agent, rows.iter().map(|row| row.agent.as_str()));
    let next = near.unwrap_or_else(|| "`lodestep ls` shows the runs and their agents".to_owned());
    let what = format!("no run of this store is of an agent `{}`", agent.escape_debug());
    Ok(Some(Error::new("run.no_such_agent", what, next)))
}

async fn label_of(store: &dyn Store, label: &(String, String)) -> Result<Option<Error>> {
    let with_it = Filter { labels: vec![label.clone()], limit: Some(1), ..Filter::default() };
    if !store.list(DEFAULT_NAMESPACE, &with_it).await?.is_empty() {
        return Ok(None);
    }
    let given = format!("{}={}", label.0, label.1);
    let rows = newest(store).await?;
    let known: Vec<String> =
        rows.iter().flat_map(|row| &row.labels).map(|(name, value)| format!("{name}={value}")).collect();
    let near = near(&given, known.iter().map(String::as_str));
    let next = near.unwrap_or_else(|| "`lodestep ls` shows the runs and their labels".to_owned());
    let what = format!("no run of this store has a label `{}`", given.escape_debug());
    Ok(Some(Error::new("run.no_such_label", what, next)))
}

async fn tool(store: &dyn Store, selection: &Selection) -> Result<Option<Error>> {
    let Some(tool) = &selection.tool else { return Ok(None) };
    let definitions = definitions(store).await?;
    let known: Vec<&str> = definitions.iter().flat_map(|of| &of.tools).map(|tool| tool.name.as_str()).collect();
    if definitions.is_empty() || known.contains(&tool.as_str()) {
        return Ok(None);
    }
    let next =
        near(tool, known.iter().copied()).unwrap_or_else(|| "`lodestep show RUN` shows what a run calls".to_owned());
    let what = format!("none of the newest runs has a tool `{}`", tool.escape_debug());
    Ok(Some(Error::new("run.no_such_tool", what, next)))
}

fn near<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    lodestep::nearest(given, known).map(|near| format!("did you mean `{near}`?"))
}

async fn newest(store: &dyn Store) -> Result<Vec<RunRow>> {
    store.list(DEFAULT_NAMESPACE, &Filter { limit: Some(MOST), ..Filter::default() }).await
}

/// The definitions of the newest thousand runs, each once, as far as they can be read.
///
/// # Errors
///
/// The store's errors.
pub async fn definitions(store: &dyn Store) -> Result<Vec<Definition>> {
    let mut definitions = BTreeMap::new();
    for row in newest(store).await? {
        if let Entry::Vacant(new) = definitions.entry(row.definition) {
            let opened = inspect::open(store, &row.run.key).await.ok();
            new.insert(opened.and_then(|opened| opened.definition));
        }
    }
    Ok(definitions.into_values().flatten().collect())
}
