//! Anthropic's Messages API.
//!
//! Where a rule is said to be the reference's, the pages "Create a Message", "Streaming messages", "Errors", "Prompt
//! caching", "Extended thinking" and "Handle tool calls" of the API's documentation are meant. Refusals are worded as the
//! service words them, as far as its users have reported the words.

mod blocks;
mod check;
mod faults;
mod pairs;
mod read;
mod stream;
mod thinking;
mod tools;
mod write;

use hyper::HeaderMap;
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::body::{Piece, Place};
use crate::cache::{Cache, Hit};
use crate::dialect::{Dialect, Failure};
use crate::options::Options;
use crate::plan::Fault;
use crate::question::Question;
use crate::refusal::{Checked, Kind, Refusal};
use crate::tokens::Prompt;

/// The shape.
pub(crate) struct Messages;

/// A 400 of the service.
fn refuse(kind: Kind, message: impl Into<String>) -> Refusal {
    refuse_with(kind, 400, "invalid_request_error", message)
}

fn refuse_with(kind: Kind, status: u16, error: &'static str, message: impl Into<String>) -> Refusal {
    Refusal { kind, status, error, code: None, param: None, message: message.into() }
}

/// A refusal if the condition does not hold.
fn ensure(holds: bool, kind: Kind, message: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(refuse(kind, message())) }
}

fn sent<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

impl Dialect for Messages {
    fn request_id_header(&self) -> &'static str {
        "request-id"
    }

    fn request_id(&self, number: usize) -> String {
        format!("req_{number:024}")
    }

    /// As the reference's overview says of required headers: `x-api-key`, `anthropic-version` and `content-type`. A request
    /// without a body has no content type.
    fn check_headers(&self, headers: &HeaderMap, options: &Options) -> Checked {
        let unauthorized = |message| refuse_with(Kind::Key, 401, "authentication_error", message);
        let key = sent(headers, "x-api-key").ok_or_else(|| unauthorized("x-api-key header is required"))?;
        if key != options.key {
            return Err(unauthorized("invalid x-api-key"));
        }
        let Some(version) = sent(headers, "anthropic-version") else {
            return Err(refuse(Kind::Version, "anthropic-version: header is required"));
        };
        ensure(matches!(version, "2023-06-01" | "2023-01-01"), Kind::Version, || {
            format!("anthropic-version: \"{version}\" is not a valid version")
        })?;
        let has_body = headers.contains_key("content-length") || headers.contains_key("transfer-encoding");
        let is_json = sent(headers, "content-type").is_some_and(|kind| kind.starts_with("application/json"));
        ensure(is_json || !has_body, Kind::ContentType, || "Content-Type must be application/json".into())
    }

    fn sent_key<'a>(&self, headers: &'a HeaderMap) -> &'a str {
        sent(headers, "x-api-key").unwrap_or_default()
    }

    fn not_json(&self, why: &str) -> Refusal {
        refuse(Kind::Json, format!("The request body is not valid JSON: {why}"))
    }

    fn rejected(&self, why: &str) -> Refusal {
        refuse(Kind::Value, why)
    }

    fn too_large(&self) -> Refusal {
        let message = "Request exceeds the maximum allowed number of bytes.";
        refuse_with(Kind::TooLarge, 413, "request_too_large", message)
    }

    fn no_path(&self, method: &str, _: &str) -> Refusal {
        match method {
            "GET" | "POST" => refuse_with(Kind::Path, 404, "not_found_error", "Not Found"),
            _ => refuse_with(Kind::Path, 405, "invalid_request_error", "Method Not Allowed"),
        }
    }

    fn check(&self, body: &Value, options: &Options) -> Checked {
        check::check(body, options)
    }

    fn read(&self, body: &Value) -> Question {
        read::read(body)
    }

    fn too_long(&self, tokens: u64, window: u64) -> Refusal {
        refuse(Kind::TooLong, format!("prompt is too long: {tokens} tokens > {window} maximum"))
    }

    fn cached(&self, cache: &mut Cache, prompt: &Prompt) -> Hit {
        cache.by_marks(prompt)
    }

    fn refusal(&self, refusal: &Refusal, request_id: &str) -> Value {
        error_body(refusal.error, &refusal.message, request_id)
    }

    fn failure(&self, fault: &Fault, sent_key: &str, question: &Question) -> Option<Failure> {
        faults::failure(fault, sent_key, question)
    }

    fn whole(&self, answer: &Answer, options: &Options) -> Vec<Piece> {
        vec![Piece::new(Place::Between, &write::message(answer, options))]
    }

    fn stream(&self, answer: &Answer, options: &Options) -> Vec<Piece> {
        stream::events(answer, options)
    }

    fn error_event(&self) -> Piece {
        let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
        stream::event(Place::End, &error.to_string(), "error")
    }

    fn models(&self, names: &[String]) -> Value {
        let model = |name: &String| json!({"type": "model", "id": name, "display_name": name, "created_at": "2025-01-01T00:00:00Z"});
        let data: Vec<Value> = names.iter().map(model).collect();
        json!({"data": data, "has_more": false, "first_id": names.first(), "last_id": names.last()})
    }
}

/// An error, as the errors page shows it.
fn error_body(error: &str, message: &str, request_id: &str) -> Value {
    json!({"type": "error", "error": {"type": error, "message": message}, "request_id": request_id})
}
