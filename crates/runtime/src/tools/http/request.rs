//! A request with its references filled in, and its arguments where they belong.
//!
//! An argument that the url or a header names goes there and nowhere else. The others are one JSON object in the body of POST, PUT and
//! PATCH, and the query otherwise. What is filled into an url is percent-encoded, but for a value that begins it.

use std::collections::BTreeSet;

use hyper::Method;
use hyper::body::Bytes;
use hyper::http::{HeaderMap, HeaderName, HeaderValue};
use lodestep_core::definition::HttpRequest;
use lodestep_core::json::canonical;
use lodestep_core::reference::{Piece, pieces};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};

use super::target::Target;
use super::{Call, Purpose, Trouble};

/// All but RFC 3986's unreserved characters.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A request, ready to be sent.
#[derive(Clone, Debug)]
pub(super) struct Hop {
    pub method: Method,
    pub target: Target,
    /// All but `Host`, `Content-Length` and the url's own `Authorization`.
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// Fills in a request of a call.
pub(super) fn filled(call: &Call<'_>, request: &HttpRequest, purpose: Purpose) -> Result<Hop, Trouble> {
    let method = Method::from_bytes(request.method.as_bytes())
        .map_err(|_| Trouble::Refused(format!("`{}` is no method", request.method)))?;
    let mut headers = own_headers(call)?;
    for (name, text) in &request.headers {
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| Trouble::Refused(format!("`{name}` is no name for a header")))?;
        headers.insert(name.clone(), header_value(&name, &fill(call, text, as_it_stands)?)?);
    }
    let mut url = fill(call, &request.url, in_url)?;
    let rest = rest(call, request)?;
    let body = match (&request.body, takes_body(&method)) {
        (Some(name), _) => {
            add_query(&mut url, &rest);
            let is_text = !call.artifacts.contains_key(name);
            default_type(&mut headers, if is_text { "text/plain; charset=utf-8" } else { "application/octet-stream" });
            Bytes::from(bytes(call, name)?)
        }
        (None, true) => {
            default_type(&mut headers, "application/json");
            Bytes::from(canonical(&Value::Object(rest)))
        }
        (None, false) => {
            // A lookup asks for what its url names, and for nothing beyond it.
            if purpose == Purpose::Attempt {
                add_query(&mut url, &rest);
            }
            Bytes::new()
        }
    };
    let target = Target::parse(&url).map_err(Trouble::Refused)?;
    Ok(Hop { method, target, headers, body })
}

fn takes_body(method: &Method) -> bool {
    *method == Method::POST || *method == Method::PUT || *method == Method::PATCH
}

fn own_headers(call: &Call<'_>) -> Result<HeaderMap, Trouble> {
    let mut headers = HeaderMap::new();
    headers.insert("accept", HeaderValue::from_static("*/*"));
    headers.insert("user-agent", HeaderValue::from_static(concat!("lodestep/", env!("CARGO_PKG_VERSION"))));
    if !call.key.is_empty() {
        let name = HeaderName::from_static("idempotency-key");
        headers.insert(name.clone(), header_value(&name, call.key)?);
    }
    for (name, value) in call.identity {
        let name = HeaderName::from_static(name);
        headers.insert(name.clone(), header_value(&name, value)?);
    }
    Ok(headers)
}

/// The error does not show the value: it may hold a secret.
fn header_value(name: &HeaderName, value: &str) -> Result<HeaderValue, Trouble> {
    HeaderValue::from_bytes(value.as_bytes())
        .map_err(|_| Trouble::Refused(format!("the value of the header `{name}` holds a character that none can hold")))
}

fn default_type(headers: &mut HeaderMap, media_type: &'static str) {
    headers.entry("content-type").or_insert(HeaderValue::from_static(media_type));
}

/// How a value is put behind what was filled in before it.
type Put = fn(&mut String, &str, &Piece<'_>) -> Result<(), Trouble>;

fn as_it_stands(filled: &mut String, value: &str, _: &Piece<'_>) -> Result<(), Trouble> {
    filled.push_str(value);
    Ok(())
}

fn in_url(filled: &mut String, value: &str, piece: &Piece<'_>) -> Result<(), Trouble> {
    let from_model = matches!(piece, Piece::Argument(_));
    if filled.is_empty() && !from_model {
        filled.push_str(value);
        return Ok(());
    }
    if value.is_empty() && from_model && !filled.contains('?') {
        return Err(Trouble::Refused("an argument in the url's path is empty: it would lead elsewhere".to_owned()));
    }
    filled.extend(utf8_percent_encode(value, ENCODED));
    Ok(())
}

fn fill(call: &Call<'_>, text: &str, put: Put) -> Result<String, Trouble> {
    let mut filled = String::new();
    for piece in pieces(text).map_err(Trouble::Refused)? {
        let value = match &piece {
            Piece::Text(text) => {
                filled.push_str(text);
                continue;
            }
            Piece::Input(name) => call.inputs.get(*name).map(plain).unwrap_or_default(),
            Piece::Environment(name, default) => call.environment.resolve(name, *default).map_err(Trouble::NotSent)?,
            Piece::Argument(name) => argument(call, name)?,
            Piece::Key => call.key.to_owned(),
        };
        put(&mut filled, &value, &piece)?;
    }
    Ok(filled)
}

/// A text as it is, anything else as JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn argument(call: &Call<'_>, name: &str) -> Result<String, Trouble> {
    if call.artifacts.contains_key(name) {
        return artifact_text(call, name);
    }
    let value = call.arguments.get(name).filter(|value| !value.is_null());
    value.map(plain).ok_or_else(|| Trouble::Refused(format!("the argument `{name}` is needed and is not given")))
}

fn bytes(call: &Call<'_>, name: &str) -> Result<Vec<u8>, Trouble> {
    match call.artifacts.get(name) {
        Some(bytes) => Ok(bytes.clone()),
        None => argument(call, name).map(String::into_bytes),
    }
}

fn artifact_text(call: &Call<'_>, name: &str) -> Result<String, Trouble> {
    let bytes = call.artifacts.get(name).map(Vec::as_slice).unwrap_or_default();
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| {
        let why = "artifact.not_text: it is not UTF-8; only `body` can send it";
        Trouble::Refused(format!("the artifact of the argument `{name}` can't be sent as a text: {why}"))
    })
}

/// The arguments that nothing of the request names, artifacts as their text.
fn rest(call: &Call<'_>, request: &HttpRequest) -> Result<Map<String, Value>, Trouble> {
    let texts = std::iter::once(&request.url).chain(request.headers.values());
    let named = texts.flat_map(|text| pieces(text).unwrap_or_default()).filter_map(|piece| match piece {
        Piece::Argument(name) => Some(name),
        _ => None,
    });
    let named: BTreeSet<&str> = named.chain(request.body.as_deref()).collect();
    let mut rest = Map::new();
    for (name, value) in call.arguments.as_object().into_iter().flatten() {
        if named.contains(name.as_str()) {
            continue;
        }
        let value = match call.artifacts.contains_key(name) {
            true => Value::String(artifact_text(call, name)?),
            false => value.clone(),
        };
        rest.insert(name.clone(), value);
    }
    Ok(rest)
}

/// A list is its elements one by one; what is null is left out.
fn add_query(url: &mut String, arguments: &Map<String, Value>) {
    for (name, value) in arguments {
        let values = match value {
            Value::Array(values) => values.iter().collect(),
            value => vec![value],
        };
        for value in values.into_iter().filter(|value| !value.is_null()) {
            url.push(if url.contains('?') { '&' } else { '?' });
            url.extend(utf8_percent_encode(name, ENCODED));
            url.push('=');
            url.extend(utf8_percent_encode(&plain(value), ENCODED));
        }
    }
}
