//! An answer of an HTTP tool's receiver, byte for byte: its status, headers and body, and what of an effect is known by it.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use lodestep::tools::Sight;
use lodestep::tools::http::Heard;
use lodestep_core::definition::{HttpLookup, HttpRequest, HttpTool, Sign};
use lodestep_core::effect::{Class, Seen};
use lodestep_core::rules::settle::LookedUp;
use tokio::runtime::{Builder, Runtime};

use super::answer;

/// Each class reads it, as a first attempt and as one after another that may have been sent; so does a lookup.
pub(super) fn answer_of_a_receiver(input: &[u8]) -> u64 {
    let tool = tool();
    let heard = Heard::new(tool, input);
    let mut said = String::new();
    for class in [Class::Read, Class::Idempotent, Class::Keyed, Class::Checkable, Class::Unsafe] {
        for maybe_sent in [false, true] {
            let sight = thread().block_on(heard.attempt(class, maybe_sent));
            is_honest(input, class, &sight);
            said += &format!("{:?}", sight.seen)[..4];
        }
    }
    let looked_up = thread().block_on(heard.look_up());
    if !is_answer(input) {
        assert!(matches!(looked_up, LookedUp::NoAnswer(_)), "no answer was taken for {looked_up:?}");
    }
    let kind = format!("{looked_up:?}");
    said += kind.split('(').next().unwrap_or_default();
    answer(&said)
}

/// A request went out. What came back never proves that it did not, and what is no answer settles nothing of an effect.
fn is_honest(input: &[u8], class: Class, sight: &Sight) {
    // Redirects that lead nowhere give no result to what may be repeated freely: it is as if it had not begun.
    assert!(sight.seen != Seen::NotStarted || class.is_repeatable(), "{class}: it was sent");
    assert!(!sight.text.is_empty(), "{class}: an outcome without a word");
    assert!(sight.retry_after_ms.is_none() || sight.seen == Seen::AskedToWait, "{class}: a wait that nobody asked for");
    if !is_answer(input) {
        assert_eq!(sight.seen, Seen::Interrupted, "{class}: no answer was taken for one");
    }
}

/// Could it be one? Every answer begins so.
fn is_answer(input: &[u8]) -> bool {
    input.trim_ascii_start().starts_with(b"HTTP/1.")
}

fn tool() -> &'static HttpTool {
    static TOOL: OnceLock<HttpTool> = OnceLock::new();
    TOOL.get_or_init(|| {
        let request = |method: &str| HttpRequest {
            method: method.to_owned(),
            url: "http://receiver.test/effects".to_owned(),
            headers: BTreeMap::new(),
            body: None,
        };
        let word = |word: &str| Sign::Word(word.to_owned());
        let lookup = HttpLookup {
            request: request("GET"),
            field: Some("effect.state".to_owned()),
            done: vec![word("done")],
            absent: vec![Sign::Status(404)],
            running: vec![word("running")],
        };
        HttpTool { request: request("POST"), lookup: Some(lookup), allow_hosts: Vec::new() }
    })
}

/// A connection is a task beside its attempt; both are polled by whoever calls the target, and nothing else goes on.
fn thread() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| Builder::new_current_thread().enable_time().build().expect("a runtime without a thread"))
}
