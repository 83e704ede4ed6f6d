//! `[model]`: who is asked, and what a call may take.

use std::path::Path;
use std::time::Duration;

use lodestep_core::definition::{ModelSpec, Price};
use lodestep_core::reference::{Piece, pieces};
use lodestep_providers::{Dialect, OutputLimitField, Patience};
use serde_json::{Map, Value};

use super::duration::{DAY_MS, SECOND_MS};
use super::money::micro_usd;
use super::names::shown;
use super::reader::Item;
use super::references::{Allowed, note};
use super::schema::json;
use super::table::Table;
use crate::model::service::sound_url;

/// The most tokens that a window may be said to have.
const WINDOW_TOKENS: u64 = 100_000_000;

/// How long a call may take, at least and at most.
const TIMEOUT_MS: (u64, u64) = (SECOND_MS, DAY_MS);

/// Who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Offline,
    Script,
    Service(Dialect),
}

const PROVIDERS: [(&str, Asked); 4] = [
    ("anthropic", Asked::Service(Dialect::Anthropic)),
    ("openai", Asked::Service(Dialect::OpenAi)),
    ("offline", Asked::Offline),
    ("script", Asked::Script),
];

/// Reads `[model]`; the variables that it needs are added to `secrets`.
pub(super) fn model(file: &Table<'_>, folder: &Path, secrets: &mut Vec<String>) -> ModelSpec {
    let mut spec = ModelSpec::default();
    let item = file.need("model", "[model]");
    let Some(table) = item.and_then(|item| item.table("model", "[model] with `provider = \"offline\"`")) else {
        return spec;
    };
    let asked = table.need("provider", "provider = \"offline\"").and_then(|item| item.one_of(&PROVIDERS));
    let provider = asked.and_then(|asked| PROVIDERS.iter().find(|(_, other)| *other == asked));
    spec.provider = provider.map(|(name, _)| (*name).to_owned()).unwrap_or_default();
    spec.name = name(&table, asked, folder);
    let stated = service(&table, asked, &mut spec);
    if let Some(window) = stated {
        spec.context_window = window;
    }
    let whole = |key, bounds, stand_in: u64| table.get(key).and_then(|item| item.whole(bounds)).unwrap_or(stand_in);
    spec.context_window = whole("context_window", 1_024..=WINDOW_TOKENS, spec.context_window);
    spec.max_output_tokens = whole("max_output_tokens", 1..=WINDOW_TOKENS, spec.max_output_tokens);
    spec.max_faulty_replies = whole("max_faulty_replies", 1..=100, 3) as u32;
    spec.max_attempts = whole("max_attempts", 1..=1_000, 5) as u32;
    let retry = table.get("max_output_tokens_retry");
    spec.max_output_tokens_retry = retry.as_ref().and_then(|item| item.whole(1..=WINDOW_TOKENS));
    room(&table, &spec);
    spec.price = table.get("price").and_then(|item| price(&item));
    table.close();
    for text in [Some(&spec.name), spec.base_url.as_ref(), spec.api_key.as_ref()].into_iter().flatten() {
        note(secrets, text);
    }
    spec
}

/// Judges what a reply and its retry may take by each other and by the window.
fn room(table: &Table<'_>, spec: &ModelSpec) {
    let (reply, window) = (spec.max_output_tokens, spec.context_window);
    let mend = "`context_window` is request and reply together; make it larger";
    if reply >= window {
        let said = table.get("max_output_tokens").or_else(|| table.get("context_window"));
        let at = said.map_or(table.at, |item| item.at);
        let what = format!("a reply of {reply} tokens leaves no room for a request in a window of {window}");
        table.faults.add(at, what, mend);
    }
    let (Some(item), Some(retry)) = (table.get("max_output_tokens_retry"), spec.max_output_tokens_retry) else {
        return;
    };
    if retry < reply {
        let what = format!("`max_output_tokens_retry` = {retry} is less than `max_output_tokens` = {reply}");
        item.fault(
            what,
            "it is the limit of the one more try after a reply that was cut; make it larger, or take it out",
        );
    } else if retry >= window && reply < window {
        let what = format!("a retry of {retry} tokens leaves no room for a request in a window of {window}");
        item.fault(what, mend);
    }
}

/// What only services have: place, key, parameters, times. Gives the window that is usual for the service.
fn service(table: &Table<'_>, asked: Option<Asked>, spec: &mut ModelSpec) -> Option<u64> {
    let base_url = table.get("base_url");
    let api_key = table.get("api_key");
    let params = table.get("params");
    let limit_field = table.get("output_limit_field");
    let stream = table.get("stream");
    let (timeout, idle_timeout) = (table.get("timeout"), table.get("idle_timeout"));
    let given = [&base_url, &api_key, &params, &limit_field, &stream, &timeout, &idle_timeout];
    spec.base_url = base_url.as_ref().and_then(|item| item.said(&Allowed::Environment));
    spec.api_key = api_key.as_ref().and_then(key);
    spec.whole = stream.as_ref().and_then(Item::yes_or_no) == Some(false);
    let usual = Patience::default();
    spec.timeout_ms = timeout.as_ref().and_then(|item| unusual_ms(item, usual.whole));
    spec.idle_timeout_ms = idle_timeout.as_ref().and_then(|item| unusual_ms(item, usual.idle));
    let Asked::Service(dialect) = asked? else {
        for item in given.into_iter().flatten() {
            let what = format!("`{}`: the provider `{}` is no service", item.name, spec.provider);
            item.fault(what, "take it out, or ask a service: provider = \"anthropic\" or \"openai\"");
        }
        return None;
    };
    spec.output_limit_field = limit_field.as_ref().and_then(|item| output_limit_field(item, Some(dialect)));
    spec.params = params.as_ref().and_then(|item| parameters(item, dialect)).unwrap_or_default();
    match &base_url {
        None if api_key.is_none() => spec.api_key = Some(format!("${{env:{}}}", dialect.key_variable())),
        None => {}
        Some(item) => {
            if let Some(text) = &spec.base_url {
                judge_url(item, dialect, text, spec.api_key.is_some());
            }
            if table.get("context_window").is_none() {
                let what = "[model] has `base_url` and no `context_window`";
                item.fault(what, "add `context_window = 32_000`, as many tokens as that model takes");
            }
        }
    }
    Some(match dialect {
        Dialect::Anthropic => 200_000,
        Dialect::OpenAi => 128_000,
    })
}

/// The field of a chat completion that says how long the reply may be, judged by how the model is spoken to where that is known.
pub(super) fn output_limit_field(item: &Item<'_>, dialect: Option<Dialect>) -> Option<String> {
    let words = OutputLimitField::ALL.map(|field| (field.name(), field));
    let field = item.one_of(&words)?;
    if let Some(dialect) = dialect.filter(|dialect| *dialect != Dialect::OpenAi) {
        item.fault(format!("`{}`: the provider `{}` has one name for it", item.name, dialect.name()), "take it out");
    }
    Some(field.name().to_owned())
}

/// A length of time, if it is not the usual one.
fn unusual_ms(item: &Item<'_>, usual: Duration) -> Option<u64> {
    let ms = item.duration(TIMEOUT_MS.0..=TIMEOUT_MS.1)?;
    (Duration::from_millis(ms) != usual).then_some(ms)
}

/// One with references is judged where it is used.
pub(super) fn judge_url(item: &Item<'_>, dialect: Dialect, text: &str, has_key: bool) {
    if text.contains("${") {
        return;
    }
    if let Err((what, mend)) = sound_url(dialect, text, has_key) {
        item.fault(format!("`{}`: {what}", item.name), mend);
    }
}

/// A key is a reference to variables: the file is no place for its value.
pub(super) fn key(item: &Item<'_>) -> Option<String> {
    let text = item.said(&Allowed::Environment)?;
    let parts = pieces(&text).unwrap_or_default();
    let is_plain = parts.iter().all(|part| matches!(part, Piece::Environment(_, None)));
    if !is_plain {
        item.fault(
            format!("`{}` holds more than a reference to a variable", item.name),
            "a key doesn't belong into a file: put it into a variable and write \"${env:API_KEY}\"",
        );
    }
    is_plain.then_some(text)
}

fn parameters(item: &Item<'_>, dialect: Dialect) -> Option<Map<String, Value>> {
    let table = item.table("params", "a table, such as { temperature = 0.2 }")?;
    for (name, own) in table.entries() {
        if dialect.own_fields().contains(name) {
            let mend = match *name {
                "max_tokens" => "write `max_output_tokens` in [model]",
                "max_completion_tokens" => {
                    "write `max_output_tokens` in [model], and `output_limit_field` if the place insists on this name"
                }
                "model" => "write `name` in [model]",
                "stream" => "write `stream` in [model]",
                _ => "take it out: the runtime fills it in",
            };
            own.fault(format!("`{}` is not for `params` to say", own.name), mend);
        }
    }
    match json(item)? {
        Value::Object(params) => Some(params),
        _ => None,
    }
}

/// The script's file, or the name that the provider knows. Without a provider the name is not judged.
fn name(table: &Table<'_>, asked: Option<Asked>, folder: &Path) -> String {
    let item = match asked {
        Some(Asked::Script) => table.need("name", "name = \"script.json\""),
        Some(Asked::Service(Dialect::Anthropic)) => table.need("name", "name = \"claude-sonnet-4-5\""),
        Some(Asked::Service(Dialect::OpenAi)) => table.need("name", "name = \"gpt-5-mini\""),
        Some(Asked::Offline) | None => table.get("name"),
    };
    let Some(item) = item else { return String::new() };
    let name = match asked {
        Some(Asked::Service(_)) => item.said(&Allowed::Environment),
        _ => item.text(),
    };
    let Some(name) = name else { return String::new() };
    if asked != Some(Asked::Script) {
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
    let other = |key| table.get(key).and_then(|item| micro_usd(&item));
    let (cache_read_micro_usd, cache_write_micro_usd) = (other("cache_read"), other("cache_write"));
    table.close();
    Some(Price { input_micro_usd: input?, output_micro_usd: output?, cache_read_micro_usd, cache_write_micro_usd })
}
