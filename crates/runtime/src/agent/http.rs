//! A tool that is an HTTP request: its url, headers and body, the hosts that it may reach, and how its lookup is read.
//!
//! Whether a host answers is found out when a request is sent.

use std::collections::BTreeMap;
use std::net::IpAddr;

use hyper::http::HeaderName;
use lodestep_core::definition::{HttpLookup, HttpRequest, HttpTool, Sign, ToolKind};
use lodestep_core::effect::Class;
use lodestep_core::reference::{Piece, pieces};
use serde_json::Value;

use super::names::shown;
use super::reader::Item;
use super::references::{Allowed, Fillable, note};
use super::table::Table;
use super::tools::Ground;
use crate::tools::http::{Target, may_connect};

const METHODS: [(&str, &str); 5] =
    [("GET", "GET"), ("POST", "POST"), ("PUT", "PUT"), ("PATCH", "PATCH"), ("DELETE", "DELETE")];

/// Headers that the runtime or the connection sets.
const OWN_HEADERS: [&str; 11] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "upgrade",
    "te",
    "trailer",
    "expect",
    "accept-encoding",
    "keep-alive",
    "idempotency-key",
];

/// How a lookup is written.
const LOOKUP: &str = "lookup = { method = \"GET\", url = \"https://…/${key}\", done = [200], absent = [404] }";

/// What is known of the tool when its requests are read.
pub(super) struct About<'a> {
    pub class: Option<Class>,
    /// Its input schema; nothing when that is at fault already.
    pub schema: Option<&'a Value>,
    pub ground: &'a Ground<'a>,
}

/// Reads `http` and `lookup` of a tool; the variables that they need are added to `secrets`.
pub(super) fn kind(table: &Table<'_>, about: &About<'_>, secrets: &mut Vec<String>) -> ToolKind {
    let item = table.get("http");
    let inner =
        item.as_ref().and_then(|item| item.table("http", "a table: { method = \"POST\", url = \"https://…\" }"));
    let allow_hosts: Vec<String> =
        inner.as_ref().and_then(|inner| inner.get("allow_hosts")).map(|item| hosts(&item)).unwrap_or_default();
    let read = inner.as_ref().map(|inner| request(inner, about, &allow_hosts, secrets));
    if let Some(inner) = inner {
        inner.close();
    }
    let lookup = lookup(table, about, &allow_hosts, secrets);
    ToolKind::Http(Box::new(HttpTool { request: read.unwrap_or_else(nothing), lookup, allow_hosts }))
}

fn nothing() -> HttpRequest {
    HttpRequest { method: String::new(), url: String::new(), headers: BTreeMap::new(), body: None }
}

fn hosts(item: &Item<'_>) -> Vec<String> {
    let texts = item.texts("[\"localhost:8080\"]", &Allowed::Nothing).unwrap_or_default();
    for text in &texts {
        let sound = Target::parse(&format!("http://{text}")).is_ok_and(|target| target.authorization.is_none());
        let bare = text.parse::<IpAddr>().is_ok() || !text.contains(['/', '*', '?', '#', ' ']);
        if !(bare && (sound || text.parse::<IpAddr>().is_ok())) {
            let what = format!("`{}`: \"{}\" is no host", item.name, shown(text));
            item.fault(what, "write a name or an address, and a port if only that one is meant: \"localhost:8080\"");
        }
    }
    texts
}

fn request(table: &Table<'_>, about: &About<'_>, allowed: &[String], secrets: &mut Vec<String>) -> HttpRequest {
    let properties = about.schema.map(properties);
    let fillable = Fillable { inputs: about.ground.inputs, properties: properties.as_deref() };
    let method = table.need("method", "method = \"POST\"").and_then(|item| item.one_of(&METHODS));
    let url = table.need("url", "url = \"https://api.example/v1/items\"");
    let url = url.and_then(|item| url_text(&item, about, &fillable, allowed)).unwrap_or_default();
    let headers = table.get("headers").map(|item| headers(&item, &fillable)).unwrap_or_default();
    for text in std::iter::once(&url).chain(headers.values()) {
        note(secrets, text);
    }
    let body = table.get("body").and_then(|item| body(&item, method, &fillable));
    HttpRequest { method: method.unwrap_or_default().to_owned(), url, headers, body }
}

fn properties(schema: &Value) -> Vec<String> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flat_map(|properties| properties.keys().cloned()).collect()
}

fn url_text(item: &Item<'_>, about: &About<'_>, fillable: &Fillable<'_>, allowed: &[String]) -> Option<String> {
    let text = item.said(&Allowed::Request(fillable))?;
    let pieces = pieces(&text).ok()?;
    let mut plain = String::new();
    for piece in &pieces {
        match piece {
            Piece::Text(text) => plain.push_str(text),
            Piece::Argument(_) | Piece::Key if !is_behind_host(&plain) => {
                let what = format!("`{}`: no argument may choose the host", item.name);
                item.fault(
                    what,
                    "write the host, then a /, then the argument: \"https://api.example/items/${arg:id}\"",
                );
                return None;
            }
            // What stands first may be a whole base, such as https://api.example.
            Piece::Environment(..) | Piece::Input(_) if plain.is_empty() => plain.push_str("https://base"),
            _ => plain.push('x'),
        }
        if let Piece::Argument(name) = piece {
            needs_to_be_required(item, name, about.schema);
        }
    }
    match Target::parse(&plain) {
        Err(why) => item.fault(format!("`{}`: {why}", item.name), "write it whole: \"https://api.example/v1/items\""),
        Ok(target) => reachable(item, &target, allowed),
    }
    Some(text)
}

fn is_behind_host(plain: &str) -> bool {
    plain.split_once("://").is_some_and(|(_, rest)| rest.contains(['/', '?']))
}

/// An url without one of its parts is another url.
fn needs_to_be_required(item: &Item<'_>, name: &str, schema: Option<&Value>) {
    let Some(schema) = schema else { return };
    let required = schema.get("required").and_then(Value::as_array);
    if !required.is_some_and(|required| required.iter().any(|other| other.as_str() == Some(name))) {
        let what = format!("`{}`: the argument `{}` may be missing", item.name, shown(name));
        item.fault(what, format!("add it to `required` of `input`: required = [\"{name}\"]"));
    }
}

/// A host that is written out and is surely not public.
fn reachable(item: &Item<'_>, target: &Target, allowed: &[String]) {
    let host = target.host.as_str();
    let address = match host {
        "localhost" => Some(IpAddr::from([127, 0, 0, 1])),
        host => host.parse().ok(),
    };
    if address.is_some_and(|address| !may_connect(address, host, target.port, allowed)) {
        let what =
            format!("`{}`: {host} is no public address, and none but those that the file names are reached", item.name);
        item.fault(what, format!("add `allow_hosts = [\"{}\"]` to `http`", target.host_header()));
    }
}

fn headers(item: &Item<'_>, fillable: &Fillable<'_>) -> BTreeMap<String, String> {
    let mut headers = BTreeMap::new();
    let table = item.table("headers", "a table, such as { Authorization = \"Bearer ${env:TOKEN}\" }");
    for (name, item) in table.iter().flat_map(Table::entries) {
        let Ok(parsed) = HeaderName::from_bytes(name.as_bytes()) else {
            item.fault(format!("`{}` is no name for a header", shown(name)), "use letters, digits and -");
            continue;
        };
        if OWN_HEADERS.contains(&parsed.as_str()) || parsed.as_str().starts_with("lodestep-") {
            item.fault(format!("`{}` is a header that the runtime sets", shown(name)), "take it out");
            continue;
        }
        let Some(text) = item.text_with(&Allowed::Request(fillable)) else { continue };
        if headers.insert(parsed.as_str().to_owned(), text).is_some() {
            item.fault(format!("the header `{}` is there twice", shown(name)), "keep one; case makes no difference");
        }
    }
    headers
}

fn body(item: &Item<'_>, method: Option<&str>, fillable: &Fillable<'_>) -> Option<String> {
    let text = item.text_with(&Allowed::Request(fillable))?;
    if let Some(method @ ("GET" | "DELETE")) = method {
        item.fault(format!("`{}`: a {method} has no body", item.name), "take it out; its arguments are the query");
    }
    match pieces(&text).ok()?.as_slice() {
        [Piece::Argument(name)] => Some((*name).to_owned()),
        _ => {
            let mend = "write body = \"${arg:NAME}\", or leave it out: then the arguments are sent as JSON";
            item.fault(format!("`{}` is not one argument", item.name), mend);
            None
        }
    }
}

fn lookup(table: &Table<'_>, about: &About<'_>, allowed: &[String], secrets: &mut Vec<String>) -> Option<HttpLookup> {
    let item = match about.class {
        Some(Class::Checkable) => table.need("lookup", LOOKUP)?,
        class => {
            let item = table.get("lookup")?;
            if let Some(class) = class {
                let what = format!("a tool of class {class} is never looked up");
                item.fault(what, "add `class = \"checkable\"`, or take it out");
            }
            item
        }
    };
    let inner = item.table("http lookup", &format!("a table: {LOOKUP}"))?;
    let request = request(&inner, about, allowed, secrets);
    let field = inner.get("field").and_then(|item| item.said(&Allowed::Nothing));
    let signs = |key| inner.get(key).map(|item| signs(&item, field.as_deref())).unwrap_or_default();
    let (done, absent, running) = (signs("done"), signs("absent"), signs("running"));
    if done.is_empty() || absent.is_empty() {
        let what = format!("`{}` does not say what means done and what absent", item.name);
        item.fault(what, "write done = [200] and absent = [404], or words of a `field`");
    }
    let lists = [&done, &absent, &running];
    let twice = done
        .iter()
        .chain(&absent)
        .chain(&running)
        .find(|sign| lists.iter().filter(|list| list.contains(sign)).count() > 1);
    if let Some(sign) = twice {
        item.fault(format!("`{}`: {} is in two lists", item.name, spelled(sign)), "keep it in one");
    }
    inner.close();
    Some(HttpLookup { request, field, done, absent, running })
}

fn spelled(sign: &Sign) -> String {
    match sign {
        Sign::Status(status) => status.to_string(),
        Sign::Word(word) => format!("\"{}\"", shown(word)),
    }
}

fn signs(item: &Item<'_>, field: Option<&str>) -> Vec<Sign> {
    let items = item.list("[200] or [\"paid\"]").unwrap_or_default();
    let sign = |item: &Item<'_>| {
        if item.value().as_integer().is_some() {
            return item.whole(200..=599).and_then(|status| u16::try_from(status).ok()).map(Sign::Status);
        }
        let word = item.text()?;
        if field.is_none() {
            item.fault(format!("`{}` is a word, and no `field` is named", item.name), "add field = \"status\"");
        }
        Some(Sign::Word(word))
    };
    items.iter().filter_map(sign).collect()
}
