//! The context: what the model sees, rebuilt from state at every decision.
//!
//! [`wants`] names the values that are needed, [`assemble`] turns them into a request within the budget. Both
//! are pure: the same checkpoint and values give the same bytes. No history is resent; a request is as large after
//! ten thousand actions as after ten.
//!
//! - [`estimate`]: bytes to tokens.
//! - [`budget`]: shares, and how a text is shortened.
//! - `sections`: the state as text.
//! - `exchange`: recent decisions as calls and results.
//! - [`memo`]: decisions that are rendered once for many requests.

pub mod budget;
pub mod estimate;
mod exchange;
pub mod memo;
mod sections;

use lodestep_model::{Message, Request, ToolSpec};
use minicbor::{Decode, Encode};
use serde::Serialize;
use serde_json::{Value, json};

use crate::checkpoint::Checkpoint;
use crate::context::budget::Budget;
use crate::context::memo::{Memo, Piece};
use crate::definition::{Definition, ToolDefinition};
use crate::digest::{Digest, DigestMap};
use crate::reference::with_inputs;
use crate::rules::decide::REPEAT_REASON;
use crate::value::Stored;

/// The version of the assembler: the same state gives the same bytes within a version.
pub const ASSEMBLER_VERSION: u32 = 1;

/// A longer error text is named by its size.
const ERROR_BYTES: u64 = 64 * 1024;

/// Shorter values of recent actions are always loaded: those that are not shown in full have a line each.
const LINE_BYTES: u64 = 4 * 1024;

/// At most so many bytes of values that are too long for the budget are loaded in order to show their ends.
const SHORTENED_BYTES: u64 = 16 * 1024 * 1024;

/// Values by digest, as far as they were loaded.
pub type Blobs = DigestMap<Vec<u8>>;

/// What a request was made of; recorded with each call.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
pub struct Manifest {
    /// The assembler's version.
    #[n(0)]
    pub assembler: u32,
    /// Estimated tokens of the whole request.
    #[n(1)]
    pub tokens: u64,
    /// Estimated tokens that it could have had.
    #[n(2)]
    pub budget: u64,
    /// The sections with their estimated tokens, in order.
    #[n(3)]
    pub sections: Vec<SectionSize>,
    /// The actions that are shown in full, oldest first.
    #[n(4)]
    pub actions: Vec<u32>,
}

/// One section's size.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
pub struct SectionSize {
    /// Its name.
    #[n(0)]
    pub section: String,
    /// Its estimated tokens.
    #[n(1)]
    pub tokens: u64,
}

impl Manifest {
    /// The bytes that are stored.
    pub fn to_bytes(&self) -> Vec<u8> {
        // Encoding into a vector can't fail.
        minicbor::to_vec(self).unwrap_or_default()
    }

    /// Reads a manifest back.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        minicbor::decode(bytes).ok()
    }
}

/// The part that can't be shortened does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// Estimated tokens of what can't be shortened.
    pub needed: u64,
    /// Estimated tokens that there are.
    pub budget: u64,
}

/// The values that the next request may show, each once, in the order of their digests.
///
/// What would not fit anyway is not asked for, however much the run has stored.
pub fn wants(checkpoint: &Checkpoint, definition: &Definition) -> Vec<Stored> {
    let budget = Budget::of(checkpoint, definition);
    let mut wanted: Vec<Stored> = Vec::new();
    wanted.extend(checkpoint.notes.values());
    wanted.extend(checkpoint.plan.iter().filter_map(|milestone| milestone.title));
    wanted.extend(checkpoint.model.texts.iter().map(|text| text.text));
    let newest = checkpoint.recent.back().map(|settled| settled.decision);
    wanted.extend(checkpoint.model.blocks.filter(|blocks| Some(blocks.decision) == newest).map(|blocks| blocks.text));
    wanted.extend(checkpoint.guidance.iter().map(|guidance| guidance.text));
    // Of an error one line is shown; a failed action's whole result is not loaded for it.
    wanted.extend(checkpoint.errors.iter().map(|error| error.text).filter(|text| text.len <= ERROR_BYTES));
    wanted.extend(shown_artifacts(checkpoint, budget.bytes).into_iter().map(|(_, content)| content));
    wanted.extend(recent_values(checkpoint, budget.bytes));
    wanted.retain(|stored| stored.len <= SHORTENED_BYTES.max(budget.bytes));
    wanted.sort_unstable();
    wanted.dedup_by_key(|stored| stored.digest);
    wanted
}

/// The open artifacts whose bytes are shown: as many of them, the last opened first, as the whole budget could hold.
fn shown_artifacts(checkpoint: &Checkpoint, bytes: u64) -> Vec<(&String, Stored)> {
    let mut room = bytes;
    let newest_first = checkpoint.open_artifacts.iter().rev();
    let open = newest_first.filter_map(|name| Some((name, checkpoint.artifacts.get(name)?.content)));
    open.filter(|(_, content)| {
        let fits = content.len <= room;
        room = if fits { room - content.len } else { room };
        fits
    })
    .collect()
}

/// Arguments and results of the newest actions: all of the newest decision, whose long ones are shown shortened,
/// and of older ones what the budget could hold, and the short ones.
fn recent_values(checkpoint: &Checkpoint, bytes: u64) -> Vec<Stored> {
    let newest = checkpoint.recent.back().map(|settled| settled.decision);
    let (mut wanted, mut room, mut shortened) = (Vec::new(), bytes, bytes.max(SHORTENED_BYTES));
    for settled in checkpoint.recent.iter().rev() {
        for value in [settled.arguments, settled.result] {
            room = room.saturating_sub(value.len);
            if value.len <= shortened && (room > 0 || value.len <= LINE_BYTES || Some(settled.decision) == newest) {
                shortened -= value.len;
                wanted.push(value);
            }
        }
    }
    wanted
}

/// A request, and what is recorded of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Assembled {
    /// What the model is asked.
    pub request: Request,
    /// The digest of the request, as [`request_digest`] gives it.
    pub digest: Digest,
    /// What the request was made of.
    pub manifest: Manifest,
}

/// Builds the request from the values that [`wants`] names.
///
/// # Errors
///
/// [`TooLarge`] when instructions, tools, objective and the newest decision do not fit even when shortened.
pub fn assemble(
    checkpoint: &Checkpoint,
    definition: &Definition,
    inputs: &Value,
    blobs: &Blobs,
) -> Result<Assembled, TooLarge> {
    assemble_from(&mut Memo::default(), &wants(checkpoint, definition), checkpoint, definition, inputs, blobs)
}

/// The same for whoever has asked [`wants`] for this checkpoint and definition already, and has a memo of the run's
/// requests under this definition.
///
/// # Errors
///
/// As [`assemble`].
pub fn assemble_from(
    memo: &mut Memo,
    wanted: &[Stored],
    checkpoint: &Checkpoint,
    definition: &Definition,
    inputs: &Value,
    blobs: &Blobs,
) -> Result<Assembled, TooLarge> {
    let budget = Budget::of(checkpoint, definition);
    let system = system_text(definition, inputs);
    let offered = definition.offered();
    let mut request = Request {
        system,
        messages: Vec::new(),
        tools: offered.tools.clone(),
        max_output_tokens: definition.model.output_limit(checkpoint.model.cut_in_row),
        turn: checkpoint.model.answered,
    };
    let rest = estimate::size_of(&request, 0, offered.bytes);
    let fixed = rest + "[]".len() as u64;
    let shown = shown_artifacts(checkpoint, budget.bytes).into_iter().map(|(name, _)| name.as_str()).collect();
    let loaded = |stored: &Stored| Some((stored.digest, blobs.get(&stored.digest)?.as_slice()));
    let values = wanted.iter().filter_map(loaded).collect();
    let view = sections::View { checkpoint, definition, inputs, values, shown };
    let mut room = budget.bytes.saturating_sub(fixed);
    let mut needed = fixed;
    // Shares are of what is left; when the sum comes out too large (escapes, framing), everything gets less.
    for _ in 0..8 {
        let (pieces, mut manifest) = compose(&view, memo, room);
        needed = rest + list_bytes(&pieces);
        if needed <= budget.bytes {
            manifest.tokens = budget.tokens_of(needed);
            manifest.budget = budget.tokens;
            manifest.sections.insert(
                0,
                SectionSize { section: "instructions and tools".to_owned(), tokens: budget.tokens_of(fixed) },
            );
            let digest = digest_of(definition, &request, &pieces);
            request.messages = pieces.into_iter().map(|piece| piece.message).collect();
            return Ok(Assembled { request, digest, manifest });
        }
        room /= 2;
    }
    Err(TooLarge { needed: budget.tokens_of(needed), budget: budget.tokens })
}

/// The digest of a request to this definition's model: over its texts, the digests of its messages' JSON, and its tools.
pub fn request_digest(definition: &Definition, request: &Request) -> Digest {
    let pieces: Vec<Piece> = request.messages.iter().cloned().map(Piece::shared).collect();
    digest_of(definition, request, &pieces)
}

/// The bytes of the messages' JSON, with its commas and brackets.
fn list_bytes(pieces: &[Piece]) -> u64 {
    let commas = pieces.len().saturating_sub(1) as u64;
    pieces.iter().map(|piece| piece.bytes).sum::<u64>() + commas + "[]".len() as u64
}

fn digest_of(definition: &Definition, request: &Request, pieces: &[Piece]) -> Digest {
    let numbers = [request.max_output_tokens.to_le_bytes(), request.turn.to_le_bytes()].concat();
    let tools = definition.offered().digest;
    let messages: Vec<u8> = pieces.iter().flat_map(|piece| *piece.digest.as_bytes()).collect();
    Digest::over("lodestep model request 2", &[request.system.as_bytes(), &messages, tools.as_bytes(), &numbers])
}

fn compose(view: &sections::View<'_>, memo: &mut Memo, room: u64) -> (Vec<Piece>, Manifest) {
    let mut sizes = Vec::new();
    let after_texts = sections::before(view, room, &mut sizes);
    let exchange_room =
        room.saturating_sub(after_texts.len() as u64).saturating_sub(sections::closing_room(view, room));
    let exchange = exchange::recent(view, memo, exchange_room);
    let mut first = after_texts;
    sections::completed(view, room, &exchange.shown, &mut first, &mut sizes);
    let closing = sections::closing(view, room, &exchange.shown, &mut sizes);
    sizes.push(SectionSize { section: "recent actions".to_owned(), tokens: estimate::tokens(exchange.bytes) });
    let is_begin = exchange.pieces.is_empty();
    if is_begin {
        first.push_str(&closing);
    }
    if first.trim().is_empty() {
        first = "Begin.".to_owned();
    }
    let mut pieces = vec![Piece::of(Message::User { text: first })];
    pieces.extend(exchange.pieces);
    if !is_begin && !closing.is_empty() {
        pieces.push(Piece::of(Message::User { text: closing.trim_start().to_owned() }));
    }
    let manifest = Manifest {
        assembler: ASSEMBLER_VERSION,
        tokens: 0,
        budget: 0,
        sections: sizes,
        actions: exchange.shown.iter().map(|ordinal| ordinal.0).collect(),
    };
    (pieces, manifest)
}

fn system_text(definition: &Definition, inputs: &Value) -> String {
    let instructions = with_inputs(&definition.instructions, inputs);
    format!(
        "{}\n\nYou work in decisions. Each reply has to make at least one tool call; all calls of a reply are done before you \
are asked again. What is below is the whole state of the work: earlier messages are not kept. Put what you will need later into \
notes or artifacts. Completed actions are done for good: do not repeat them. Call `finish` when the objective is reached.",
        instructions.trim()
    )
}

/// A tool as it is offered: effects get one more argument, which the runtime takes out again.
pub(crate) fn spec(tool: &ToolDefinition) -> ToolSpec {
    let mut input = tool.input.clone();
    if !tool.class.is_repeatable()
        && let Some(properties) = input.get_mut("properties").and_then(Value::as_object_mut)
    {
        let description = "Only when the same effect as before is wanted once more: why.";
        properties.insert(REPEAT_REASON.to_owned(), json!({"type": "string", "description": description}));
    }
    ToolSpec { name: tool.name.clone(), description: tool.description.clone(), input }
}
