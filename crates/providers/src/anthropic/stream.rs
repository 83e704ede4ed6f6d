//! A reply of the Messages API that comes as a stream (<https://docs.anthropic.com/en/api/messages-streaming>).

use std::collections::BTreeMap;

use lodestep_model::{Call, ModelError, Progress, Reply, Usage};
use serde::Deserialize;
use serde_json::Value;

use super::reply::{Tokens, blocks, stop, with_texts};
use crate::pieces::{Piece, Pieces, Text, or_nothing};
use crate::provider::{Assembly, Part};
use crate::refusal;
use crate::settings::Settings;

/// An event, with the fields of every kind that is read. Other kinds are passed over, as the API asks for.
#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    index: Option<u64>,
    message: Option<Begun>,
    content_block: Option<Value>,
    delta: Option<Delta>,
    #[serde(default, deserialize_with = "or_nothing")]
    usage: Option<Tokens>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Begun {
    model: Option<String>,
    #[serde(default, deserialize_with = "or_nothing")]
    usage: Option<Tokens>,
}

#[derive(Deserialize)]
struct Delta {
    text: Option<Piece>,
    thinking: Option<Piece>,
    signature: Option<Piece>,
    partial_json: Option<Piece>,
    stop_reason: Option<String>,
}

/// A block that is being put together.
struct Block {
    begun: Value,
    text: Text,
    thinking: Pieces,
    signature: Pieces,
    arguments: Pieces,
}

/// What has come until now.
pub struct Assembled {
    settings: Settings,
    blocks: BTreeMap<u64, Block>,
    model: Option<String>,
    stop_reason: Option<String>,
    tokens: Tokens,
}

impl Assembled {
    /// Nothing has come yet.
    pub fn new(settings: &Settings) -> Self {
        let (settings, tokens) = (settings.clone(), Tokens::default());
        Self { settings, blocks: BTreeMap::new(), model: None, stop_reason: None, tokens }
    }

    fn begin(&mut self, index: u64, begun: Value, watch: &dyn Fn(Progress<'_>)) {
        if let (Some("tool_use"), Some(name)) = (field(&begun, "type"), field(&begun, "name")) {
            watch(Progress::Call(name));
        }
        let (text, thinking) = (Text::default(), Pieces::default());
        let (signature, arguments) = (Pieces::default(), Pieces::default());
        self.blocks.insert(index, Block { begun, text, thinking, signature, arguments });
    }

    fn add(&mut self, index: u64, delta: &Delta, watch: &dyn Fn(Progress<'_>)) -> Result<(), ModelError> {
        let Some(block) = self.blocks.get_mut(&index) else {
            return Err(ModelError::lost(format!("the stream adds to block {index}, which has not begun")));
        };
        if let Some(text) = &delta.text {
            block.text.push(text);
            watch(Progress::Text(&text.shown()));
        }
        if let Some(thinking) = &delta.thinking {
            block.thinking.push(thinking);
            watch(Progress::Reasoning(&thinking.shown()));
        }
        if let Some(signature) = &delta.signature {
            block.signature.push(signature);
        }
        if let Some(arguments) = &delta.partial_json {
            block.arguments.push(arguments);
            watch(Progress::Arguments(&arguments.shown()));
        }
        Ok(())
    }
}

impl Assembly for Assembled {
    fn take(&mut self, data: &str, watch: &(dyn Fn(Progress<'_>) + Send + Sync)) -> Result<Part, ModelError> {
        let event: Event = serde_json::from_str(data)
            .map_err(|error| ModelError::lost(format!("an event of the stream can't be read: {error}")))?;
        match event.kind.as_str() {
            "message_start" => {
                let begun = event.message.unwrap_or(Begun { model: None, usage: None });
                self.model = begun.model;
                self.tokens.update(begun.usage.unwrap_or_default());
            }
            "content_block_start" => self.begin(index(event.index), event.content_block.unwrap_or_default(), watch),
            "content_block_delta" => {
                if let Some(delta) = &event.delta {
                    self.add(index(event.index), delta, watch)?;
                }
            }
            "message_delta" => {
                self.tokens.update(event.usage.unwrap_or_default());
                self.stop_reason = event.delta.and_then(|delta| delta.stop_reason).or(self.stop_reason.take());
            }
            "message_stop" => return Ok(Part::Last),
            "error" => return Err(refusal::in_stream(&event.error.unwrap_or_default(), !self.blocks.is_empty())),
            _ => {}
        }
        Ok(Part::One)
    }

    fn reply(&mut self) -> Result<Reply, ModelError> {
        let Some(stop_reason) = &self.stop_reason else {
            return Err(ModelError::lost("the reply does not say why it stopped"));
        };
        let mut reply = Reply { stop: stop(stop_reason), model: self.model.take(), ..Reply::default() };
        reply.usage = self.tokens.usage();
        let (mut signed, mut text) = (Vec::new(), Text::default());
        for block in std::mem::take(&mut self.blocks).into_values() {
            let own = |name: &str| field(&block.begun, name).unwrap_or_default().to_owned();
            match field(&block.begun, "type") {
                Some("text") => {
                    text.push(&Piece::of(&own("text")));
                    text.join(&block.text);
                }
                Some("tool_use") => {
                    reply.calls.push(Call { id: own("id"), name: own("name"), arguments: arguments(&block) })
                }
                Some("thinking") if reply.calls.is_empty() => {
                    let thinking = own("thinking") + &block.thinking.text();
                    let signature = own("signature") + &block.signature.text();
                    signed.push(with_texts(block.begun, &[("thinking", thinking), ("signature", signature)]));
                }
                Some("redacted_thinking") if reply.calls.is_empty() => signed.push(block.begun.to_string()),
                _ => {}
            }
        }
        text.put_into(&mut reply);
        reply.blocks = blocks(&signed, &self.settings);
        Ok(reply)
    }

    fn used(&self) -> Usage {
        self.tokens.so_far()
    }
}

/// A call without arguments has an empty text for them; some servers give all of them at its beginning.
fn arguments(block: &Block) -> String {
    let text = block.arguments.json();
    if !text.is_empty() {
        return text;
    }
    block.begun.get("input").filter(|input| input.is_object()).map_or_else(|| "{}".to_owned(), Value::to_string)
}

fn index(index: Option<u64>) -> u64 {
    index.unwrap_or_default()
}

fn field<'a>(block: &'a Value, name: &str) -> Option<&'a str> {
    block.get(name).and_then(Value::as_str)
}
