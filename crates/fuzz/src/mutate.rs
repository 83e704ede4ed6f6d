//! Inputs changed by chance: bytes of anything, words of texts, items of CBOR. The same seed makes the same changes.

use fastrand::Rng;
use minicbor::data::Type;
use minicbor::{Decoder, Encoder};

/// How an input is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Bytes that have no structure here.
    Bytes,
    /// Words, signs and quoted texts.
    Text,
    /// CBOR items, one after the other.
    Cbor,
}

/// No input grows longer than this, in bytes.
pub const MOST_BYTES: usize = 1 << 20;

/// Most inputs stay below this, in bytes: short ones are quick.
const COMMON_BYTES: usize = 16 << 10;

/// Numbers at which lengths and counters go wrong.
const NUMBERS: [u64; 14] = [
    0,
    1,
    23,
    24,
    0x7f,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    1 << 53,
    i64::MAX as u64,
    (i64::MAX as u64) + 1,
    u64::MAX,
];

/// Words at which readers of texts go wrong.
const WORDS: [&str; 30] = [
    "0",
    "-0",
    "1e308",
    "1e400",
    "9007199254740993",
    "-9223372036854775808",
    "18446744073709551615",
    "null",
    "true",
    "\"\"",
    "\"\\ud83d\"",
    "\"\\u0000\"",
    "{}",
    "[]",
    "{",
    "}",
    "[",
    "]",
    "${",
    "}",
    "$${",
    "${arg:x}",
    "${env:A:-b}",
    "*",
    "\u{feff}",
    "\u{202e}",
    "é",
    "\n",
    "'''",
    "1979-05-27T07:32:00Z",
];

/// Changes `input` one to four times. `other` is another input of the corpus, to take parts of.
pub fn mutate(rng: &mut Rng, shape: Shape, input: &[u8], other: &[u8]) -> Vec<u8> {
    let mut changed = input.to_vec();
    for _ in 0..rng.usize(1..=4) {
        let structured = rng.u8(..10) < 7;
        changed = match shape {
            Shape::Text if structured => words(rng, &changed, other),
            Shape::Cbor if structured => items(rng, &changed, other).unwrap_or_else(|| bytes(rng, &changed, other)),
            _ => bytes(rng, &changed, other),
        };
    }
    let most = if rng.u8(..32) == 0 { MOST_BYTES } else { COMMON_BYTES.max(input.len()) };
    changed.truncate(most);
    changed
}

fn bytes(rng: &mut Rng, input: &[u8], other: &[u8]) -> Vec<u8> {
    let mut changed = input.to_vec();
    let at = rng.usize(..=changed.len());
    let to = (at + rng.usize(..=16)).min(changed.len());
    match rng.u8(..9) {
        0 if at < changed.len() => changed[at] ^= 1 << rng.u8(..8),
        1 if at < changed.len() => changed[at] = rng.u8(..),
        2 => changed.truncate(at),
        3 => drop(changed.drain(at..to)),
        4 => {
            let number = pick(rng, &NUMBERS).to_be_bytes();
            let number = &number[8 - (1 << rng.usize(..4))..];
            let written: Vec<u8> = if rng.bool() { number.to_vec() } else { number.iter().rev().copied().collect() };
            let over = if rng.bool() { (at + written.len()).min(changed.len()) } else { at };
            changed.splice(at..over, written);
        }
        5 => {
            let from = rng.usize(..=other.len());
            let until = (from + rng.usize(..=256)).min(other.len());
            changed.splice(at..to, other[from..until].iter().copied());
        }
        6 => changed = [&changed[..at], &other[rng.usize(..=other.len())..]].concat(),
        7 => {
            let part = changed[at..to].to_vec();
            changed.splice(at..at, part.repeat(times(rng)));
        }
        _ => {
            let noise: Vec<u8> = (0..rng.usize(1..=8)).map(|_| rng.u8(..)).collect();
            changed.splice(at..at, noise);
        }
    }
    changed
}

fn words(rng: &mut Rng, input: &[u8], other: &[u8]) -> Vec<u8> {
    let mut parts = parts(input);
    let others = self::parts(other);
    let at = rng.usize(..=parts.len());
    let to = (at + rng.usize(..=6)).min(parts.len());
    let known = |rng: &mut Rng| -> Vec<u8> {
        match rng.u8(..3) {
            0 => pick(rng, &WORDS).as_bytes().to_vec(),
            1 => pick(rng, &NUMBERS).to_string().into_bytes(),
            _ if others.is_empty() => Vec::new(),
            _ => others[rng.usize(..others.len())].to_vec(),
        }
    };
    let made: Vec<u8>;
    match rng.u8(..8) {
        0 if at < parts.len() => {
            made = known(rng);
            parts[at] = &made;
        }
        1 => {
            made = known(rng);
            parts.insert(at, &made);
        }
        2 => drop(parts.drain(at..to)),
        3 => {
            made = parts[at..to].concat().repeat(times(rng));
            parts.insert(at, &made);
        }
        4 => {
            let from = rng.usize(..=others.len());
            let until = (from + rng.usize(..=40)).min(others.len());
            parts.splice(at..to, others[from..until].iter().copied());
        }
        5 => {
            // What is nested, nested deeper.
            let (open, close) = pick(rng, &[("[", "]"), ("{\"a\":", "}"), ("{a=", "}"), ("(", ")"), ("${arg:", "}")]);
            let depth = times(rng);
            made = [open.repeat(depth).as_bytes(), &parts[at..to].concat(), close.repeat(depth).as_bytes()].concat();
            parts.splice(at..to, [made.as_slice()]);
        }
        6 if parts.len() > 1 => parts.swap(at.min(input.len()).min(to.saturating_sub(1)), 0),
        _ => {
            let line = [b"\n".as_slice(), &parts[at..to].concat()].concat();
            made = line.repeat(times(rng));
            parts.insert(at, &made);
        }
    }
    parts.concat()
}

/// A text as words, runs of blanks, and single signs.
fn parts(text: &[u8]) -> Vec<&[u8]> {
    let kind = |byte: &u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | 0x80.. => 1,
        b' ' => 2,
        _ => 0,
    };
    text.chunk_by(|a, b| kind(a) != 0 && kind(a) == kind(b)).collect()
}

/// `None` where the input is no CBOR at all.
fn items(rng: &mut Rng, input: &[u8], other: &[u8]) -> Option<Vec<u8>> {
    let spans = spans(input);
    let (from, until) = *spans.get(rng.usize(..spans.len().max(1)))?;
    let item = &input[from..until];
    let others = self::spans(other);
    let new: Vec<u8> = match rng.u8(..8) {
        0 => Vec::new(),
        1 => item.repeat(times(rng)),
        2 | 3 => others
            .get(rng.usize(..others.len().max(1)))
            .map_or(Vec::new(), |(from, until)| other[*from..*until].to_vec()),
        4 => number(rng, item),
        5 => longer(rng, item),
        6 => {
            let depth = times(rng);
            let opening = pick(rng, &[0x81_u8, 0x9f, 0xa1, 0xc1, 0x82]);
            [vec![opening; depth].as_slice(), item].concat()
        }
        _ => pick(
            rng,
            &[&[0xf6][..], &[0x80], &[0x40], &[0x60], &[0xa0], &[0xf5], &[0xfb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0]],
        )
        .to_vec(),
    };
    Some([&input[..from], &new, &input[until..]].concat())
}

/// Another number in the place of an item.
fn number(rng: &mut Rng, item: &[u8]) -> Vec<u8> {
    let mut encoder = Encoder::new(Vec::new());
    let number = match Decoder::new(item).u64() {
        Ok(before) if rng.bool() => before.wrapping_add(pick(rng, &[1, u64::MAX, 2, 10])),
        _ => pick(rng, &NUMBERS),
    };
    let _ = encoder.u64(number);
    encoder.into_writer()
}

/// The head of an item with another length.
fn longer(rng: &mut Rng, item: &[u8]) -> Vec<u8> {
    let Some((first, rest)) = item.split_first() else { return Vec::new() };
    let major = first & 0xe0;
    let number = pick(rng, &NUMBERS);
    let head = [&[major | 27][..], &number.to_be_bytes()].concat();
    [head.as_slice(), rest].concat()
}

/// Where items begin and end, those in others too.
fn spans(bytes: &[u8]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut decoder = Decoder::new(bytes);
    while decoder.position() < bytes.len() && found.len() < 4_096 {
        let from = decoder.position();
        let mut whole = decoder.clone();
        if whole.skip().is_ok() {
            found.push((from, whole.position()));
        }
        // Into what holds others, past what does not.
        let entered = match decoder.datatype() {
            Ok(Type::Array | Type::ArrayIndef) => decoder.array().is_ok(),
            Ok(Type::Map | Type::MapIndef) => decoder.map().is_ok(),
            Ok(_) => decoder.skip().is_ok(),
            Err(_) => false,
        };
        if !entered {
            break;
        }
    }
    found
}

/// Seldom many.
fn times(rng: &mut Rng) -> usize {
    match rng.u8(..16) {
        0 => rng.usize(1..=4_096),
        1..4 => rng.usize(1..=128),
        _ => rng.usize(1..=3),
    }
}

fn pick<T: Copy>(rng: &mut Rng, from: &[T]) -> T {
    from[rng.usize(..from.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_makes_the_same_changes_and_no_shape_panics() {
        let inputs: [&[u8]; 4] = [b"", b"a = \"b\" # c", &[0x82, 0x01, 0x82, 0x41, 0x07, 0xf6], &[0xff; 40]];
        for shape in [Shape::Bytes, Shape::Text, Shape::Cbor] {
            let play = |seed| {
                let mut rng = Rng::with_seed(seed);
                let two = |rng: &mut Rng| (inputs[rng.usize(..4)], inputs[rng.usize(..4)]);
                let change = |_| {
                    let (input, other) = two(&mut rng);
                    mutate(&mut rng, shape, input, other)
                };
                (0..2_000).map(change).collect::<Vec<_>>()
            };
            assert_eq!(play(7), play(7));
            assert_ne!(play(7), play(8));
        }
    }

    #[test]
    fn items_are_found_within_items() {
        assert_eq!(spans(&[0x82, 0x01, 0x81, 0x41, 0x07, 0xf6]), [(0, 5), (1, 2), (2, 5), (3, 5), (5, 6)]);
    }
}
