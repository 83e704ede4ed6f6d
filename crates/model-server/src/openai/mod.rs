//! OpenAI's chat completions, and what is compatible with them.
//!
//! Where a rule is said to be the reference's, the page "Create chat completion" of the API reference, its streaming events
//! or the error codes guide are meant. Refusals are worded as the service words them, as far as its users have reported the
//! words.

mod check;
mod faults;
mod messages;
mod read;
mod stream;
mod tools;
mod write;

use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;
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
pub(crate) struct Completions;

/// A 400 of the service: about which field, with which code, in which words.
fn refuse(kind: Kind, param: &str, code: Option<&'static str>, message: impl Into<String>) -> Refusal {
    let param = (!param.is_empty()).then(|| param.to_owned());
    Refusal { kind, status: 400, error: "invalid_request_error", code, param, message: message.into() }
}

/// A refusal if the condition does not hold.
fn ensure(holds: bool, refusal: impl FnOnce() -> Refusal) -> Checked {
    if holds { Ok(()) } else { Err(refusal()) }
}

/// A value of another type than the field has.
fn wrong_type(kind: Kind, path: &str, expected: &str, got: &Value) -> Refusal {
    let got = crate::schema::called(got);
    let message = format!("Invalid type for '{path}': expected {expected}, but got {got} instead.");
    refuse(kind, path, Some("invalid_type"), message)
}

/// A field that the service does not have at this place.
fn unknown_parameter(path: &str) -> Refusal {
    refuse(Kind::UnknownField, path, Some("unknown_parameter"), format!("Unknown parameter: '{path}'."))
}

/// A field that has to be there.
fn missing(path: &str) -> Refusal {
    let message = format!("Missing required parameter: '{path}'.");
    refuse(Kind::MissingField, path, Some("missing_required_parameter"), message)
}

impl Dialect for Completions {
    fn request_id_header(&self) -> &'static str {
        "x-request-id"
    }

    fn request_id(&self, number: usize) -> String {
        format!("req_{number:032}")
    }

    fn check_headers(&self, headers: &HeaderMap, options: &Options) -> Checked {
        let unauthorized = |code, message: String| Refusal { status: 401, ..refuse(Kind::Key, "", code, message) };
        let key = self.sent_key(headers);
        if key.is_empty() {
            let message = "You didn't provide an API key. You need to provide your API key in an Authorization header \
                           using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).";
            return Err(unauthorized(None, message.into()));
        }
        if key != options.key {
            let message = format!("Incorrect API key provided: {}.", masked(key));
            return Err(unauthorized(Some("invalid_api_key"), message));
        }
        let has_body = headers.contains_key("content-length") || headers.contains_key("transfer-encoding");
        let kind = headers.get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        ensure(!has_body || kind.starts_with("application/json"), || {
            let message = format!(
                "Unsupported content type: '{kind}'. This API method only accepts 'application/json' requests."
            );
            refuse(Kind::ContentType, "", Some("unsupported_content_type"), message)
        })
    }

    fn sent_key<'a>(&self, headers: &'a HeaderMap) -> &'a str {
        let value = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        value.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default()
    }

    fn not_json(&self, why: &str) -> Refusal {
        refuse(Kind::Json, "", None, format!("We could not parse the JSON body of your request: {why}."))
    }

    fn rejected(&self, why: &str) -> Refusal {
        refuse(Kind::Value, "", None, why)
    }

    fn too_large(&self) -> Refusal {
        Refusal { status: 413, ..refuse(Kind::TooLarge, "", None, "The request body is too large.") }
    }

    fn no_path(&self, method: &str, path: &str) -> Refusal {
        let message = format!("Invalid URL ({method} {path})");
        Refusal { status: 404, ..refuse(Kind::Path, "", Some("unknown_url"), message) }
    }

    fn check(&self, body: &Value, options: &Options) -> Checked {
        check::check(body, options)
    }

    fn read(&self, body: &Value) -> Question {
        read::read(body)
    }

    fn too_long(&self, tokens: u64, window: u64) -> Refusal {
        let message = format!(
            "This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} tokens. \
             Please reduce the length of the messages."
        );
        refuse(Kind::TooLong, "messages", Some("context_length_exceeded"), message)
    }

    fn cached(&self, cache: &mut Cache, prompt: &Prompt) -> Hit {
        cache.by_prefix(prompt)
    }

    fn refusal(&self, refusal: &Refusal, _: &str) -> Value {
        error_body(refusal.error, refusal.code, refusal.param.as_deref(), &refusal.message)
    }

    fn failure(&self, fault: &Fault, sent_key: &str, question: &Question) -> Option<Failure> {
        faults::failure(fault, sent_key, question)
    }

    fn whole(&self, answer: &Answer, _: &Options) -> Vec<Piece> {
        vec![Piece::new(Place::Between, &write::completion(answer).to_string())]
    }

    fn stream(&self, answer: &Answer, _: &Options) -> Vec<Piece> {
        stream::chunks(answer)
    }

    fn error_event(&self) -> Piece {
        let message = "The server had an error processing your request. Sorry about that!";
        stream::data(Place::End, &error_body("server_error", Some("overloaded_error"), None, message))
    }

    fn models(&self, names: &[String]) -> Value {
        let model =
            |name: &String| json!({"id": name, "object": "model", "created": write::CREATED, "owned_by": "test"});
        json!({"object": "list", "data": names.iter().map(model).collect::<Vec<_>>()})
    }
}

/// A key as the service repeats it: its last four characters.
fn masked(key: &str) -> String {
    let shown = key.char_indices().rev().nth(3).map_or("", |(at, _)| &key[at..]);
    format!("****{shown}")
}

/// An error, as the error codes guide shows it.
fn error_body(error: &str, code: Option<&str>, param: Option<&str>, message: &str) -> Value {
    json!({"error": {"message": message, "type": error, "param": param, "code": code}})
}
