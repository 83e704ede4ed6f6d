//! An answer of a model's service: a whole reply, and a stream that is cut anywhere, in both dialects.

use std::sync::OnceLock;

use lodestep_model::{ModelError, Reply};
use lodestep_providers::Dialect;
use lodestep_providers::testing::{streamed, whole};
use tokio::runtime::{Builder, Runtime};

use super::answer;

pub(super) fn answer_of_a_service(input: &[u8]) -> u64 {
    let mut said = String::new();
    for dialect in [Dialect::Anthropic, Dialect::OpenAi] {
        said += &kind(&whole(dialect, input));
        let once = thread().block_on(streamed(dialect, input, usize::MAX));
        assert_eq!(once, thread().block_on(streamed(dialect, input, 7)), "where a stream is cut does not matter");
        if once.is_ok() {
            let mark: &[u8] = match dialect {
                Dialect::Anthropic => b"message_stop",
                Dialect::OpenAi => b"[DONE]",
            };
            // A mark may be spelled with escapes in JSON.
            let is_marked = input.windows(mark.len()).any(|part| part == mark) || input.contains(&b'\\');
            assert!(is_marked, "a reply without its end mark");
        }
        said += &kind(&once);
    }
    answer(&said)
}

/// What it was taken for, and how much of it there is.
fn kind(read: &Result<Reply, ModelError>) -> String {
    match read {
        Err(ModelError::Lost { message: why, .. }) => why.chars().filter(|c| !c.is_ascii_digit()).take(60).collect(),
        Err(ModelError::TooLong(_)) => "too long".to_owned(),
        Err(other) => panic!("an answer of 200 is whole, lost, or says that it was asked for too much: {other}"),
        Ok(reply) => {
            for call in &reply.calls {
                assert!(!call.arguments.is_empty(), "a call without arguments has an empty object");
            }
            let blocks =
                reply.blocks.as_ref().map(|blocks| serde_json::from_str::<Vec<serde_json::Value>>(&blocks.json));
            assert!(!matches!(blocks, Some(Err(_))), "blocks are a JSON array");
            let sizes = (reply.text.len().min(3), reply.calls.len().min(3), reply.usage.is_some(), blocks.is_some());
            format!("{:?} {sizes:?}", reply.stop)
        }
    }
}

fn thread() -> &'static Runtime {
    static THREAD: OnceLock<Runtime> = OnceLock::new();
    THREAD.get_or_init(|| Builder::new_current_thread().build().expect("a thread of its own"))
}
