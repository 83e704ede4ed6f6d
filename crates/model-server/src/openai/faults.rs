//! Faults that are an answer, in this shape's words.

use serde_json::json;

use super::{check, error_body};
use crate::dialect::Failure;
use crate::plan::Fault;
use crate::question::Question;

/// Statuses and codes are those of the error codes guide.
pub fn failure(fault: &Fault, sent_key: &str, question: &Question) -> Option<Failure> {
    let error = |status, kind, code, message: &str| Failure::json(status, &error_body(kind, code, None, message));
    Some(match fault {
        Fault::RateLimited(headers) => {
            let message = "Rate limit reached for requests.";
            Failure { headers: headers.clone(), ..error(429, "requests", Some("rate_limit_exceeded"), message) }
        }
        Fault::Overloaded => error(529, "server_error", None, "The engine is currently overloaded."),
        Fault::InternalError => {
            error(500, "server_error", None, "The server had an error while processing your request.")
        }
        Fault::Unauthorized => {
            let message = format!("Incorrect API key provided: {sent_key}.");
            error(401, "invalid_request_error", Some("invalid_api_key"), &message)
        }
        Fault::Forbidden => {
            let message = format!("The key {sent_key} may not be used from your country, region, or territory.");
            error(403, "request_forbidden", Some("unsupported_country_region_territory"), &message)
        }
        Fault::ModelNotFound => {
            let refusal = check::unknown_model(&question.model);
            error(refusal.status, refusal.error, refusal.code, &refusal.message)
        }
        Fault::OutOfCredit => {
            let message = "You exceeded your current quota, please check your plan and billing details.";
            error(429, "insufficient_quota", Some("insufficient_quota"), message)
        }
        Fault::NotJson if question.streamed => Failure::events("data: {\"id\": \"chatcmpl\n\ndata: [DONE]\n\n"),
        Fault::UnexpectedShape if question.streamed => Failure::events("data: {\"ok\":[true]}\n\ndata: [DONE]\n\n"),
        Fault::UnexpectedShape => Failure::json(200, &json!({"ok": [true]})),
        other => return Failure::of_proxy(other),
    })
}
