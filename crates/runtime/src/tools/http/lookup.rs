//! What a lookup's answer says of an effect.
//!
//! Statuses and words are compared as the file lists them. An answer that fits no list says nothing for sure.

use lodestep_core::definition::{HttpLookup, Sign};
use lodestep_core::rules::settle::LookedUp;
use serde_json::Value;

use super::answer::Answer;

/// Reads an answer. A server that is busy or in trouble has given none.
pub(super) fn said(lookup: &HttpLookup, answer: &Answer) -> LookedUp {
    let word = word(lookup, answer);
    let fits = |signs: &[Sign]| {
        signs.iter().any(|sign| match sign {
            Sign::Status(status) => *status == answer.status,
            Sign::Word(expected) => word.as_ref() == Some(expected),
        })
    };
    let found = [fits(&lookup.done), fits(&lookup.absent), fits(&lookup.running)];
    match found {
        [true, false, false] => LookedUp::Done(match answer.body.is_empty() {
            true => b"done, says the lookup".to_vec(),
            false => answer.body.clone(),
        }),
        [false, true, false] => LookedUp::Absent,
        [false, false, true] => LookedUp::Running,
        [false, false, false] if matches!(answer.status, 408 | 429 | 500..=599) => {
            LookedUp::NoAnswer(format!("HTTP {}", answer.status))
        }
        [false, false, false] => LookedUp::Unknown(unknown(lookup, answer.status, word.as_deref())),
        _ => LookedUp::Unknown(format!("HTTP {} fits more than one of done, absent and running", answer.status)),
    }
}

/// The text of the field, in an answer that is a success.
fn word(lookup: &HttpLookup, answer: &Answer) -> Option<String> {
    let field = lookup.field.as_deref().filter(|_| (200..300).contains(&answer.status))?;
    let body: Value = serde_json::from_slice(&answer.body).ok()?;
    let found = field.split('.').try_fold(&body, |value, name| value.get(name))?;
    Some(found.as_str().map_or_else(|| found.to_string(), str::to_owned))
}

fn unknown(lookup: &HttpLookup, status: u16, word: Option<&str>) -> String {
    let field = lookup.field.as_deref();
    let said = match (field, word) {
        (Some(field), Some(word)) => format!(" with {field} = {:?}", word.chars().take(100).collect::<String>()),
        (Some(field), None) => format!(" without a field {field}"),
        (None, _) => String::new(),
    };
    format!("HTTP {status}{said} is listed neither as done nor as absent nor as running")
}
