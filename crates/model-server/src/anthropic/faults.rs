//! Faults that are an answer, in this shape's words.

use serde_json::json;

use super::error_body;
use crate::dialect::Failure;
use crate::plan::Fault;
use crate::question::Question;

/// Statuses and types are those of the errors page.
pub fn failure(fault: &Fault, sent_key: &str, question: &Question) -> Option<Failure> {
    let error = |status, kind, message: &str| Failure::json(status, &error_body(kind, message, "req_fault"));
    Some(match fault {
        Fault::RateLimited(headers) => {
            let message = "This request would exceed your organization's rate limit.";
            Failure { headers: headers.clone(), ..error(429, "rate_limit_error", message) }
        }
        Fault::Overloaded => error(529, "overloaded_error", "Overloaded"),
        Fault::InternalError => error(500, "api_error", "Internal server error"),
        Fault::Unauthorized => error(401, "authentication_error", &format!("invalid x-api-key: {sent_key}")),
        Fault::Forbidden => {
            let message = format!("Your API key {sent_key} does not have permission to use the specified resource.");
            error(403, "permission_error", &message)
        }
        Fault::ModelNotFound => error(404, "not_found_error", &format!("model: {}", question.model)),
        Fault::OutOfCredit => {
            error(402, "billing_error", "Your credit balance is too low to access the Anthropic API.")
        }
        Fault::NotJson if question.streamed => {
            Failure::events("event: message_start\ndata: {\"type\": \"message_sta\n\n")
        }
        Fault::UnexpectedShape if question.streamed => Failure::events(
            "event: message_start\ndata: {\"type\":\"message_start\",\"ok\":[true]}\n\nevent: done\ndata: [1]\n\n",
        ),
        Fault::UnexpectedShape => Failure::json(200, &json!({"ok": [true]})),
        other => return Failure::of_proxy(other),
    })
}
