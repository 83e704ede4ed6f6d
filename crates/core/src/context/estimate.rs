//! How many tokens a text has, estimated upward. What a provider reports settles the quota afterwards.

use lodestep_model::Request;
use serde_json::Value;

use crate::json::canonical;

/// Bytes of a token, at least: common tokenizers take about four bytes of English and of code; three leaves
/// a margin of a third. Text in other scripts has more bytes a character and fewer characters a token.
pub const BYTES_PER_TOKEN: u64 = 3;

/// The tokens of so many bytes, rounded up.
pub fn tokens(bytes: u64) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN)
}

/// The bytes of a request's JSON, of which the messages' and the tools' are known.
pub fn size_of(request: &Request, messages_bytes: u64, tools_bytes: u64) -> u64 {
    let mut counted = Counter(0);
    // Counting can't fail.
    let _ = serde_json::to_writer(&mut counted, &(&request.system, request.max_output_tokens, request.turn));
    counted.0 + messages_bytes + tools_bytes + FIELD_NAMES
}

/// The names of a request's fields, with their quotes, colons and braces, over those of a list of the counted ones.
const FIELD_NAMES: u64 =
    r#"{"max_output_tokens":,"messages":,"system":,"tools":,"turn":}"#.len() as u64 - "[,,]".len() as u64;

struct Counter(u64);

impl std::io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The canonical JSON of a request.
pub fn bytes_of(request: &Request) -> Vec<u8> {
    canonical(&serde_json::to_value(request).unwrap_or(Value::Null))
}

#[cfg(test)]
mod tests {
    use lodestep_model::{Message, ToolSpec};

    use super::*;

    #[test]
    fn the_counted_size_is_the_size() {
        let tools = vec![ToolSpec {
            name: "a".into(),
            description: "é\n".into(),
            input: serde_json::json!({"b": 1, "a": [1.5]}),
        }];
        let tools_bytes = canonical(&serde_json::to_value(&tools).unwrap()).len() as u64;
        let messages = vec![Message::User { text: "\u{1}\"\\ 🦀".into() }.into()];
        let messages_bytes = serde_json::to_vec(&messages).unwrap().len() as u64;
        let request = Request { system: "s\t".into(), messages, tools: tools.into(), max_output_tokens: 12, turn: 3 };
        assert_eq!(size_of(&request, messages_bytes, tools_bytes), bytes_of(&request).len() as u64);
    }
}
