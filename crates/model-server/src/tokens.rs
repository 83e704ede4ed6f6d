//! The server's own count of tokens: a number that a test can foretell.
//!
//! A token is four bytes of text, and each block has a frame besides. No service counts like this; what matters is that
//! more text is more tokens and that the same text is as many again.

use serde_json::Value;

/// Tokens around each block of a prompt.
const FRAME: u64 = 4;

/// Tokens of a text.
pub fn count(text: &str) -> u64 {
    (text.len() as u64).div_ceil(4)
}

/// Tokens of a reply's call.
pub(crate) fn count_call(call: &lodestep_model::Call) -> u64 {
    FRAME + count(&call.name) + count(&call.arguments)
}

/// A prompt as a cache sees it: its blocks in the order in which they are read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prompt {
    pub segments: Vec<Segment>,
}

/// One block of a prompt.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    /// Of everything up to its end.
    pub prefix: blake3::Hash,
    /// Of everything up to its end.
    pub tokens: u64,
    /// Whether the request asks to keep the prompt up to here.
    pub marked: bool,
}

impl Prompt {
    /// Adds a block: what it is (a role, `tools`, `system`) and what it says. Its mark is not part of what it says.
    pub fn push(&mut self, of: &str, block: &Value, marked: bool) {
        let mut hasher = blake3::Hasher::new();
        if let Some(before) = self.segments.last() {
            hasher.update(before.prefix.as_bytes());
        }
        hasher.update(of.as_bytes()).update(b"\0").update(unmarked(block).to_string().as_bytes());
        let tokens = self.tokens() + FRAME + bytes(&unmarked(block)).div_ceil(4);
        self.segments.push(Segment { prefix: hasher.finalize(), tokens, marked });
    }

    /// Marks the last block.
    pub fn mark_last(&mut self) {
        if let Some(last) = self.segments.last_mut() {
            last.marked = true;
        }
    }

    /// Tokens of all of it.
    pub fn tokens(&self) -> u64 {
        self.segments.last().map_or(0, |segment| segment.tokens)
    }
}

fn unmarked(block: &Value) -> Value {
    let mut block = block.clone();
    if let Value::Object(fields) = &mut block {
        fields.remove("cache_control");
    }
    block
}

/// Bytes of a value's texts: its strings, its names, and how its other values are written.
fn bytes(value: &Value) -> u64 {
    match value {
        Value::String(text) => text.len() as u64,
        Value::Array(items) => items.iter().map(bytes).sum(),
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len() as u64 + bytes(value)).sum(),
        other => other.to_string().len() as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_mark_changes_neither_the_count_nor_the_prefix() {
        let of = |block: Value| {
            let mut prompt = Prompt::default();
            prompt.push("user", &block, false);
            (prompt.segments[0].prefix, prompt.tokens())
        };
        let plain = of(json!({"type": "text", "text": "abcd"}));
        assert_eq!(plain, of(json!({"type": "text", "text": "abcd", "cache_control": {"type": "ephemeral"}})));
        assert_ne!(plain.0, of(json!({"type": "text", "text": "abce"})).0);
        assert_eq!(plain.1, FRAME + 4);
    }
}
