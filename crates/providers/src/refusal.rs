//! What an answer other than 2xx means: whether the same request may be sent again, and when.

use std::time::SystemTime;

use lodestep_model::ModelError;
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, LOCATION};
use serde_json::Value;

use crate::retry_after;
use crate::settings::OutputLimitField;

/// What providers say of a request that is too long, in lower case.
const TOO_LONG: [&str; 9] = [
    "prompt is too long",
    "context_length_exceeded",
    "maximum context length",
    "context window",
    "exceed_context_size",
    "exceeds the available context",
    "exceed context",
    "input is too long",
    "too many input tokens",
];

/// What they say of an account that can't pay, in lower case. Asking again does not help.
const UNPAID: [&str; 4] = ["insufficient_quota", "credit balance", "billing", "payment required"];

/// What helps where no key was sent.
const NO_KEY: &str = "No key was sent: say `api_key` in [agents.NAME.model] of lodestep.toml, then resume, or in [model], then \
                      `upgrade` the run";

/// What helps where one was.
const WRONG_KEY: &str =
    "Is the key the right one, and may it use this model? Change it where `api_key` has it from, then resume";

/// What helps where an account can't pay.
const PAY: &str = "See to the account that the key belongs to, then resume";

/// What they say of a field that they don't take, in lower case.
const UNSUPPORTED: [&str; 5] = ["unsupported", "not supported", "unrecognized", "unknown", "not permitted"];

/// What a request was sent with, as far as a refusal may be about it.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// Was there a key?
    pub has_key: bool,
    /// Where it said how long the reply may be, if there is a choice.
    pub output_limit_field: Option<OutputLimitField>,
}

/// What is said in an answer's body, and the provider's name for the call.
pub fn of(status: StatusCode, headers: &HeaderMap, body: &[u8], sent: Sent) -> ModelError {
    let said = said(status, headers, body);
    let lower = String::from_utf8_lossy(body).to_lowercase();
    let tells = |signs: &[&str]| signs.iter().any(|sign| lower.contains(sign));
    match status.as_u16() {
        413 => ModelError::TooLong(said),
        400 | 422 if tells(&TOO_LONG) => ModelError::TooLong(said),
        400 | 422 => match sent.output_limit_field.and_then(|field| another_limit_field(field, &lower)) {
            Some(mend) => rejected(&said, &mend),
            None => ModelError::Rejected(said),
        },
        401 | 403 if !sent.has_key => rejected(&said, NO_KEY),
        401 | 403 => rejected(&said, WRONG_KEY),
        402 => rejected(&said, PAY),
        429 if tells(&UNPAID) => rejected(&said, PAY),
        404 => rejected(&said, "Is `base_url` where the service is, and does it have the model that `name` says?"),
        409 | 425 | 429 | 503 | 529 => {
            let retry_after_ms = retry_after::wait_ms(headers, SystemTime::now());
            ModelError::Busy { message: said, retry_after_ms }
        }
        300..400 => {
            let to = headers.get(LOCATION).and_then(|to| to.to_str().ok()).unwrap_or("nowhere");
            ModelError::Rejected(format!(
                "{said}: a redirect to {to}, which is not followed; set base_url to it if it is right"
            ))
        }
        // It may have waited for what the model said.
        408 | 500.. => ModelError::lost(said),
        _ => ModelError::Rejected(said),
    }
}

/// What was said, as a sentence, and what helps.
fn rejected(said: &str, mend: &str) -> ModelError {
    let end = if said.ends_with(['.', '!', '?']) { "" } else { "." };
    ModelError::Rejected(format!("{said}{end} {mend}"))
}

/// What helps where the place does not take the field that the request said its limit in.
fn another_limit_field(field: OutputLimitField, body: &str) -> Option<String> {
    let other = match field {
        OutputLimitField::MaxTokens => OutputLimitField::MaxCompletionTokens,
        OutputLimitField::MaxCompletionTokens => OutputLimitField::MaxTokens,
    };
    let is_refused = body.contains(field.name()) && UNSUPPORTED.iter().any(|sign| body.contains(sign));
    is_refused.then(|| {
        format!(
            "Say `output_limit_field = \"{}\"`: in [agents.NAME.model] of lodestep.toml, then resume, or in [model], \
             then `upgrade` the run",
            other.name()
        )
    })
}

/// What an `error` object in a stream means: the tokens before it may have been billed. Of a request that is too long there
/// are none, and nothing of a reply; some servers say that only here.
pub fn in_stream(error: &Value, has_begun: bool) -> ModelError {
    let said = format!("an error in the stream: {}", message_of(error).unwrap_or_else(|| error.to_string()));
    let lower = error.to_string().to_lowercase();
    if !has_begun && TOO_LONG.iter().any(|sign| lower.contains(sign)) {
        ModelError::TooLong(said)
    } else {
        ModelError::lost(said)
    }
}

/// The provider's name for the call.
pub fn request_id(headers: &HeaderMap) -> Option<String> {
    let named = ["request-id", "x-request-id"].iter().find_map(|name| headers.get(*name));
    let id = named?.to_str().ok()?;
    (!id.is_empty() && id.len() <= 200).then(|| id.to_owned())
}

fn said(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> String {
    let mut said = format!("HTTP {}", status.as_u16());
    if let Some(reason) = status.canonical_reason() {
        said.push_str(&format!(" {reason}"));
    }
    let json: Option<Value> = serde_json::from_slice(body).ok();
    let message = match &json {
        Some(json) => message_of(json.get("error").unwrap_or(json)),
        None => None,
    };
    let text = message.unwrap_or_else(|| String::from_utf8_lossy(body).trim().to_owned());
    if !text.is_empty() {
        said.push_str(&format!(": {}", text));
    }
    if let Some(id) = request_id(headers) {
        said.push_str(&format!(" (request {id})"));
    }
    said
}

/// The message of an error object, with its type where it has one. Some servers give the text alone.
fn message_of(error: &Value) -> Option<String> {
    if let Value::String(text) = error {
        return Some(text.clone());
    }
    let field = |name| error.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let message = field("message").or_else(|| field("detail"))?;
    let kind = field("type").or_else(|| field("code"));
    Some(kind.map_or_else(|| message.to_owned(), |kind| format!("{kind}: {message}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_body(status: u16, body: &str) -> ModelError {
        of_limit(status, body, None)
    }

    fn of_limit(status: u16, body: &str, output_limit_field: Option<OutputLimitField>) -> ModelError {
        let mut headers = HeaderMap::new();
        headers.insert("request-id", "req_1".parse().unwrap());
        headers.insert("retry-after", "7".parse().unwrap());
        of(StatusCode::from_u16(status).unwrap(), &headers, body.as_bytes(), Sent { has_key: true, output_limit_field })
    }

    #[test]
    fn a_place_that_refuses_the_name_of_the_limit_is_told_it_by_the_other() {
        use OutputLimitField::{MaxCompletionTokens, MaxTokens};
        let newer = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
        for (field, message, mend) in [
            (MaxTokens, newer, Some("max_completion_tokens")),
            (MaxCompletionTokens, "Unrecognized request argument supplied: max_completion_tokens", Some("max_tokens")),
            (MaxTokens, "max_tokens: 9000 is more than this model's 8192", None),
            (MaxTokens, "Unsupported parameter: 'temperature'", None),
        ] {
            let body = serde_json::json!({"error": {"message": message}}).to_string();
            let error = of_limit(400, &body, Some(field));
            let ModelError::Rejected(said) = error else { panic!("{error:?}") };
            let named = said.split_once("`output_limit_field = \"").and_then(|(_, rest)| rest.split_once('"'));
            assert_eq!(named.map(|(name, _)| name), mend, "{said}");
        }
    }

    #[test]
    fn an_error_in_a_stream_is_a_lost_reply_or_a_request_that_is_too_long() {
        let of = |json: &str| in_stream(&serde_json::from_str(json).expect(json), false);
        let overloaded = of(r#"{"type":"overloaded_error","message":"Overloaded"}"#);
        let ModelError::Lost { message: said, .. } = overloaded else { panic!("{overloaded:?}") };
        assert_eq!(said, "an error in the stream: overloaded_error: Overloaded");
        let long = of(r#"{"code":"context_length_exceeded","message":"too many"}"#);
        assert!(matches!(long, ModelError::TooLong(_)), "{long:?}");
        assert!(matches!(of("null"), ModelError::Lost { .. }));
        let late = in_stream(&serde_json::json!({"code": "context_length_exceeded", "message": "x"}), true);
        assert!(matches!(late, ModelError::Lost { .. }), "a reply had begun, and is billed: {late:?}");
    }

    #[test]
    fn each_status_has_its_meaning() {
        let long = [
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 tokens > 8 maximum"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"This model's maximum context length is 8 tokens.","code":"context_length_exceeded"}}"#,
            ),
            (
                400,
                r#"{"error":{"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}"#,
            ),
            (413, "<html>too large</html>"),
        ];
        for (status, body) in long {
            assert!(matches!(of_body(status, body), ModelError::TooLong(_)), "{status} {body}");
        }
        for status in [429, 503, 529, 409] {
            let busy = of_body(status, r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#);
            let ModelError::Busy { message, retry_after_ms: Some(7_000) } = busy else { panic!("{busy:?}") };
            assert!(message.contains("overloaded_error: Overloaded (request req_1)"), "{message}");
        }
        for (status, body) in [
            (400, "{}"),
            (401, r#"{"error":{"message":"invalid x-api-key"}}"#),
            (402, ""),
            (404, r#"{"error":"model `x` not found"}"#),
            (429, r#"{"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}"#),
            (307, ""),
        ] {
            assert!(matches!(of_body(status, body), ModelError::Rejected(_)), "{status} {body}");
        }
        for status in [500, 502, 504, 408] {
            assert!(matches!(of_body(status, "<html>bad gateway</html>"), ModelError::Lost { .. }), "{status}");
        }
        let ModelError::Rejected(said) = of_body(404, r#"{"error":"model `x` not found"}"#) else { panic!() };
        assert!(said.starts_with("HTTP 404 Not Found: model `x` not found (request req_1). Is `base_url` "), "{said}");
    }
}
