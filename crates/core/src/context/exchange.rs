//! Recent decisions as calls and results, rebuilt from action records: every call has its result, or neither is there.

use lodestep_model::{Blocks, Call, CallResult, Message};

use crate::checkpoint::{DecisionText, How, Settled};
use crate::context::budget::shorten;
use crate::context::memo::{Memo, Piece};
use crate::context::sections::View;
use crate::ids::Ordinal;
use crate::value::Stored;

/// What the frame of a call, its result and their messages take beside their texts.
const FRAME: u64 = 240;

/// Recent decisions as messages.
#[derive(Default)]
pub(super) struct Exchange {
    /// Pairs of calls and results, oldest first.
    pub pieces: Vec<Piece>,
    /// The actions that they show, oldest first.
    pub shown: Vec<Ordinal>,
    /// What they take, about.
    pub bytes: u64,
}

/// The newest decisions that fit into the room, whole. The newest is always there, shortened if it has to be.
pub(super) fn recent(view: &View<'_>, memo: &mut Memo, room: u64) -> Exchange {
    memo.forget_before(view.checkpoint.recent.iter().map(|settled| settled.decision).min().unwrap_or_default());
    let mut groups: Vec<Vec<&Settled>> = Vec::new();
    for settled in view.checkpoint.recent.iter().rev() {
        match groups.last_mut() {
            Some(group) if group[0].decision == settled.decision => group.push(settled),
            _ => groups.push(vec![settled]),
        }
    }
    let mut left = room;
    let mut chosen: Vec<[Piece; 2]> = Vec::new();
    let mut shown: Vec<Ordinal> = Vec::new();
    for (age, mut group) in groups.into_iter().enumerate() {
        group.sort_by_key(|settled| settled.ordinal);
        let text = text_of(view, group[0].decision);
        let is_whole = is_whole(view, text, &group);
        let loaded = is_whole || group.iter().all(|settled| view.bytes(&settled.result).is_some());
        let blocks = if is_whole { blocks_of(view, group[0].decision) } else { None };
        let known = memo.get(text.map(|text| text.text), &group).filter(|_| is_whole && blocks.is_none());
        let size = known.map_or_else(|| group.iter().map(|one| weight(view, one)).sum(), |known| known.weight);
        if age > 0 && (size > left || !loaded) {
            break;
        }
        let each = left / (group.len() as u64 * 2);
        let limit = if size > left { each.saturating_sub(FRAME) } else { u64::MAX };
        let pieces = match known.filter(|_| limit == u64::MAX) {
            Some(known) => known.pieces.clone(),
            None => {
                // Blocks go with the calls as they were, and not with shortened ones.
                let blocks = blocks.filter(|_| limit == u64::MAX);
                let is_plain = blocks.is_none();
                let pieces = pair(view, text, &group, limit, blocks).map(Piece::of);
                if limit == u64::MAX && is_whole && is_plain {
                    memo.keep(text.map(|text| text.text), &group, size, &pieces);
                }
                pieces
            }
        };
        chosen.push(pieces);
        shown.extend(group.iter().rev().map(|settled| settled.ordinal));
        left = left.saturating_sub(size);
    }
    shown.reverse();
    Exchange { pieces: chosen.into_iter().rev().flatten().collect(), shown, bytes: room - left }
}

fn weight(view: &View<'_>, settled: &Settled) -> u64 {
    // Arguments are JSON inside a JSON string.
    FRAME + escaped_len(&view.text(&settled.arguments)) + escaped_len(&view.flagged(&settled.result))
}

/// The bytes that a text takes inside a string of canonical JSON.
fn escaped_len(text: &str) -> u64 {
    let escaped = count(text, |byte| byte < 32 || matches!(byte, b'"' | b'\\'));
    if escaped == 0 {
        return text.len() as u64;
    }
    // A backslash and a letter for those with a name, `\u` and four digits for the other control characters.
    let nameless = count(text, |byte| byte < 32 && !matches!(byte, b'\n' | b'\r' | b'\t' | 8 | 12));
    text.len() as u64 + escaped + nameless * 4
}

/// How many bytes of a text are such. Sums of single bytes are what a processor adds many of at once.
fn count(text: &str, is: impl Fn(u8) -> bool) -> u64 {
    let of_chunk = |chunk: &[u8]| u64::from(chunk.iter().map(|byte| u8::from(is(*byte))).sum::<u8>());
    text.as_bytes().chunks(usize::from(u8::MAX)).map(of_chunk).sum()
}

/// What the model said beside a decision's calls, if that is still kept.
fn text_of<'a>(view: &View<'a>, decision: u32) -> Option<&'a DecisionText> {
    view.checkpoint.model.texts.iter().find(|text| text.decision == decision)
}

/// Are all the values of a decision there?
fn is_whole(view: &View<'_>, text: Option<&DecisionText>, group: &[&Settled]) -> bool {
    let is_there = |stored: &Stored| view.bytes(stored).is_some();
    text.is_none_or(|text| is_there(&text.text))
        && group.iter().all(|one| is_there(&one.arguments) && is_there(&one.result))
}

/// What the provider wants to have back with a decision: only the newest one's is kept.
fn blocks_of(view: &View<'_>, decision: u32) -> Option<Blocks> {
    let blocks = view.checkpoint.model.blocks.filter(|blocks| blocks.decision == decision)?;
    serde_json::from_slice(view.bytes(&blocks.text)?).ok()
}

fn pair(
    view: &View<'_>,
    text: Option<&DecisionText>,
    group: &[&Settled],
    limit: u64,
    blocks: Option<Blocks>,
) -> [Message; 2] {
    let text = text.map(|text| shorten(&view.text(&text.text), limit.min(4_000))).unwrap_or_default();
    let calls = group.iter().map(|settled| Call {
        id: format!("call_{}", settled.ordinal),
        name: tool_name(&settled.tool),
        arguments: arguments(view, settled, limit),
    });
    let results = group.iter().map(|settled| CallResult {
        id: format!("call_{}", settled.ordinal),
        name: tool_name(&settled.tool),
        text: never_empty(shorten(&view.flagged(&settled.result), limit), settled.result.len),
        is_error: settled.how != How::Done,
    });
    let calls = Message::Assistant { text, calls: calls.collect(), blocks };
    [calls, Message::Results { results: results.collect() }]
}

/// The arguments' JSON; when it does not fit, an object that says so: cut JSON would be refused by providers.
fn arguments(view: &View<'_>, settled: &Settled, limit: u64) -> String {
    let text = view.text(&settled.arguments);
    if text.is_empty() || text.len() as u64 > limit {
        return format!("{{\"left_out\":\"{} bytes\"}}", settled.arguments.len);
    }
    text.into_owned()
}

/// Providers refuse a whole request that repeats a name which no tool could have; a model makes such names up.
fn tool_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    let name: String = name.chars().take(64).map(plain).collect();
    if name.is_empty() { "unnamed".to_owned() } else { name }
}

fn never_empty(text: String, bytes: u64) -> String {
    if text.trim().is_empty() { format!("({bytes} bytes, not shown)") } else { text }
}
