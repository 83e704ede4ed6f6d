//! `[model]`: who is asked, and what a call may take.

use std::path::Path;

use lodestep_core::definition::{ModelSpec, Price};

use super::money::micro_usd;
use super::names::shown;
use super::reader::Item;
use super::table::Table;

/// The most tokens that a window may be said to have.
const WINDOW_TOKENS: u64 = 100_000_000;

const PROVIDERS: [(&str, &str); 2] = [("offline", "offline"), ("script", "script")];

/// Reads `[model]`.
pub(super) fn model(file: &Table<'_>, folder: &Path) -> ModelSpec {
    let mut spec = ModelSpec {
        provider: "offline".to_owned(),
        name: String::new(),
        max_output_tokens: 4_096,
        context_window: 32_000,
        price: None,
        max_faulty_replies: 3,
        max_attempts: 5,
    };
    let item = file.need("model", "[model]");
    let Some(table) = item.and_then(|item| item.table("model", "[model] with `provider = \"offline\"`")) else {
        return spec;
    };
    let provider = table.need("provider", "provider = \"offline\"").and_then(|item| provider(&item));
    spec.name = name(&table, provider, folder);
    spec.provider = provider.unwrap_or_default().to_owned();
    let whole = |key, bounds, stand_in: u64| table.get(key).and_then(|item| item.whole(bounds)).unwrap_or(stand_in);
    spec.context_window = whole("context_window", 1_024..=WINDOW_TOKENS, spec.context_window);
    spec.max_output_tokens = whole("max_output_tokens", 1..=WINDOW_TOKENS, spec.max_output_tokens);
    spec.max_faulty_replies = whole("max_faulty_replies", 1..=100, 3) as u32;
    spec.max_attempts = whole("max_attempts", 1..=1_000, 5) as u32;
    if spec.max_output_tokens >= spec.context_window {
        let said = table.get("max_output_tokens").or_else(|| table.get("context_window"));
        let at = said.map_or(table.at, |item| item.at);
        let (reply, window) = (spec.max_output_tokens, spec.context_window);
        let what = format!("a reply of {reply} tokens leaves no room for a request in a window of {window}");
        table.faults.add(at, what, "`context_window` is request and reply together; make it larger");
    }
    spec.price = table.get("price").and_then(|item| price(&item));
    table.close();
    spec
}

fn provider(item: &Item<'_>) -> Option<&'static str> {
    if let Some(later @ ("anthropic" | "openai")) = item.value().as_str() {
        item.fault(format!("the provider `{later}` is not in this version"), "it has offline and script");
        return None;
    }
    item.one_of(&PROVIDERS)
}

/// The script's file, or the name that the provider knows. Without a provider the name is not judged.
fn name(table: &Table<'_>, provider: Option<&str>, folder: &Path) -> String {
    const EXAMPLE: &str = "name = \"script.json\"";
    let item = if provider == Some("script") { table.need("name", EXAMPLE) } else { table.get("name") };
    let Some((item, name)) = item.and_then(|item| Some((item.clone(), item.text()?))) else { return String::new() };
    if provider != Some("script") {
        return name;
    }
    let path = super::inputs::absolute(&folder.join(&name));
    if !path.is_file() {
        item.fault(format!("there is no script `{}`", shown(&name)), format!("it is looked for at {}", path.display()));
    }
    path.to_string_lossy().into_owned()
}

fn price(item: &Item<'_>) -> Option<Price> {
    let table = item.table("price", "a table: { input = 3.00, output = 15.00 }, in usd per million tokens")?;
    let amount = |key, example| table.need(key, example).and_then(|item| micro_usd(&item));
    let (input, output) = (amount("input", "input = 3.00"), amount("output", "output = 15.00"));
    table.close();
    Some(Price { input_micro_usd: input?, output_micro_usd: output? })
}
