//! Short texts of the command line, of files and of definitions: references, patterns, durations, amounts, names, times.

use lodestep::agent::{duration_ms, usd_micro};
use lodestep_core::effect::dedupe_key;
use lodestep_core::hold::Target;
use lodestep_core::policy::matches;
use lodestep_core::reference::{pieces, with_inputs};
use lodestep_core::rules::inbox::is_signal_name;
use lodestep_core::{Digest, Labels, RunId, Timestamp, label};
use serde_json::json;

use super::{answer, answer_of};

/// A text read as each of them; its first line is also a pattern, and the second a name.
pub(super) fn text(input: &[u8]) -> u64 {
    let Ok(text) = std::str::from_utf8(input) else { return answer("not UTF-8") };
    let (pattern, name) = text.split_once('\n').unwrap_or((text, text));
    let inputs = json!({ "x": text, "y": { "z": [1, null] } });
    let split = pieces(text);
    let _ = with_inputs(text, &inputs);
    let dedupe = dedupe_key(text, &inputs);
    let _ = (duration_ms(text), usd_micro(text), Target::parse(text), is_signal_name(text), Digest::from_hex(text));
    if let Ok(run) = RunId::parse(text) {
        assert_eq!(run.as_str(), text, "an id is itself");
    }
    if let Some(at) = Timestamp::parse(text) {
        assert_eq!(Timestamp::parse(&at.to_string()).map(Timestamp::as_micros), Some(at.as_micros()), "{at}");
    }
    let labels: Labels = [(pattern.to_owned(), name.to_owned())].into();
    let labelled = label::check(&labels);
    assert!(matches(name, name) || name.contains('*'), "a name fits itself");
    let fits = matches(pattern, name);
    answer_of(&split, |pieces| format!("{fits} {}", "p".repeat(pieces.len().min(4))))
        ^ answer_of(&dedupe, |_| "key".to_owned()).rotate_left(1)
        ^ answer_of(&labelled, |()| "label".to_owned()).rotate_left(2)
}
