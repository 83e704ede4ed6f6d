//! What an answer means: the outcome table over its status, and the words for it.

use std::time::{Duration, SystemTime};

use hyper::StatusCode;
use hyper::http::HeaderMap;
use lodestep_core::effect::outcome::http_status;
use lodestep_core::effect::{Class, Seen};
use lodestep_core::time::Timestamp;

use super::exchange::BODY_BYTES;
use crate::tools::Sight;

/// So much of a body is told with a failure.
const TOLD_CHARS: usize = 4_000;

/// An answer, whole.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Answer {
    /// A header's value, where it is a text.
    pub fn text_of(&self, header: &str) -> Option<&str> {
        self.headers.get(header)?.to_str().ok()
    }

    /// The wait that `Retry-After` asks for, in milliseconds.
    fn retry_after_ms(&self, now: Timestamp) -> Option<u64> {
        let said = self.text_of("retry-after")?.trim();
        if let Ok(seconds) = said.parse::<u64>() {
            return Some(seconds.saturating_mul(1_000));
        }
        let at = httpdate::parse_http_date(said).ok()?;
        let now = SystemTime::UNIX_EPOCH + Duration::from_micros(u64::try_from(now.as_micros()).unwrap_or(0));
        Some(at.duration_since(now).map_or(0, |wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)))
    }
}

/// What was seen of an attempt that was answered, when none before it can have been sent.
pub(super) fn sight(answer: Answer, class: Class, now: Timestamp) -> Sight {
    let asked = answer.retry_after_ms(now);
    told(http_status(answer.status, asked, class), asked, answer, class)
}

/// The same, when an attempt before it may have been sent under this key. That the asker is not let in now says
/// nothing of what an earlier request did.
pub(super) fn later_sight(answer: Answer, now: Timestamp) -> Sight {
    let asked = answer.retry_after_ms(now);
    let seen = match answer.status {
        401 | 403 | 407 => Seen::ServerFault,
        status => http_status(status, asked, Class::Keyed),
    };
    told(seen, asked, answer, Class::Keyed)
}

fn told(seen: Seen, asked: Option<u64>, answer: Answer, class: Class) -> Sight {
    if seen == Seen::Done {
        let text = if answer.body.is_empty() { without_body(&answer).into_bytes() } else { answer.body };
        return Sight::new(seen, text);
    }
    Sight { retry_after_ms: asked.filter(|_| seen == Seen::AskedToWait), ..Sight::new(seen, failure(&answer, class)) }
}

fn named(status: u16) -> String {
    let reason = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    reason.map_or_else(|| format!("HTTP {status}"), |reason| format!("HTTP {status} {reason}"))
}

fn without_body(answer: &Answer) -> String {
    let said = named(answer.status);
    answer.text_of("location").map_or_else(|| said.clone(), |location| format!("{said}, location {location}"))
}

fn failure(answer: &Answer, class: Class) -> String {
    let said = named(answer.status);
    if (300..400).contains(&answer.status) {
        let location = answer.text_of("location").unwrap_or("nowhere");
        let why = if class.is_repeatable() { "" } else { "; an effect is not sent again to another address" };
        return format!("{said}, a redirect to {location} that was not followed{why}");
    }
    let body = String::from_utf8_lossy(&answer.body);
    match body.trim() {
        "" => said,
        body => format!("{said}: {}", body.chars().take(TOLD_CHARS).collect::<String>()),
    }
}

/// Why an answer is not taken.
pub(super) fn too_long_text() -> String {
    format!("http.too_long: the answer is longer than {} MiB and was not read", BODY_BYTES / 1024 / 1024)
}

/// An answer that is too long says by its status what it came to. A read without its result has none.
pub(super) fn too_long(status: u16, class: Class) -> Sight {
    let seen = match http_status(status, None, class) {
        Seen::Done if class == Class::Read => Seen::Refused,
        seen => seen,
    };
    let done = if seen == Seen::Done { "; the request itself was done" } else { "" };
    Sight::new(seen, format!("{}: {}{done}", named(status), too_long_text()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, headers: &[(&'static str, &str)]) -> Answer {
        let headers = headers
            .iter()
            .map(|(name, value)| (hyper::http::HeaderName::from_static(name), value.parse().expect("a value")));
        Answer { status, headers: headers.collect(), body: Vec::new() }
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = Timestamp::from_micros(1_800_000_000_000_000);
        for (said, expected) in [
            ("120", Some(120_000)),
            ("0", Some(0)),
            ("99999999999999999999", None),
            ("Fri, 15 Jan 2027 08:01:00 GMT", Some(60_000)),
            ("Fri, 15 Jan 2021 08:01:00 GMT", Some(0)),
            ("soon", None),
        ] {
            assert_eq!(answer(503, &[("retry-after", said)]).retry_after_ms(now), expected, "{said}");
        }
        let seen = |said: &str| sight(answer(503, &[("retry-after", said)]), Class::Unsafe, now);
        assert_eq!((seen("2").seen, seen("2").retry_after_ms), (Seen::AskedToWait, Some(2_000)));
        assert_eq!(seen("soon").seen, Seen::ServerFault, "a word that means nothing promises nothing");
    }

    #[test]
    fn a_result_is_never_empty() {
        let text =
            |answer| String::from_utf8(sight(answer, Class::Unsafe, Timestamp::from_micros(0)).text).expect("UTF-8");
        assert_eq!(text(answer(204, &[])), "HTTP 204 No Content");
        assert_eq!(text(answer(201, &[("location", "/x/7")])), "HTTP 201 Created, location /x/7");
        assert_eq!(text(answer(404, &[])), "HTTP 404 Not Found");
        assert_eq!(
            text(answer(307, &[("location", "/y")])),
            "HTTP 307 Temporary Redirect, a redirect to /y that was not followed; an effect is not sent again to another address"
        );
    }
}
