//! What a store grows by: bytes on the disk after an orderly close, beside the bytes that tools gave.
//!
//! A store without a run has about 200 KB of pages with nothing in them. They are said apart, and counted in no other row.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use lodestep::core::effect::Class;
use lodestep::observe::Silent;
use lodestep::tools::{Functions, ToolError};
use lodestep::worker::Shutdown;

use crate::Row;
use crate::steps;

/// Steps whose room is measured.
const STEPS: u64 = 10_000;

/// Bytes of a step's result, and of its arguments.
const PAYLOAD: f64 = 200.0;

const EMPTY: &str = "W4 a store with a run that only finished";

/// Turns of the loop that adds a page of text each.
const TURNS: u64 = 200;

/// Bytes that each of them adds.
const PAGE: usize = 4_096;

/// Measures and reports each row.
pub async fn measure(folder: &Path, rounds: usize, report: &mut impl FnMut(Row)) {
    let small = [
        ("W4 a small step beyond its payload", Class::Read, "< 240"),
        ("W4 an effect beyond its payload", Class::Keyed, "< 450"),
    ];
    for (name, class, target) in small.into_iter().filter(|(name, ..)| crate::is_wanted(name)) {
        let mut values = Vec::new();
        for round in 0..rounds {
            let place = folder.join(format!("size-{}-{round}", class.as_str()));
            let empty = stored(&place.join("few"), class, 50, 1, steps::functions()).await;
            let full = stored(&place.join("many"), class, 50, STEPS / 50 + 1, steps::functions()).await;
            values.push((full - empty) / STEPS as f64 - PAYLOAD);
        }
        report(Row { name, values, unit: "bytes", target });
    }
    let pages = [
        ("W4 200 turns that add 4 KB of random bytes", noise as fn(usize) -> Vec<u8>, "≤ 1.3"),
        ("W4 200 turns that add 4 KB of English text", english, "≤ 0.6"),
    ];
    for (kind, (name, page, target)) in pages.into_iter().enumerate().filter(|(_, (name, ..))| crate::is_wanted(name)) {
        let mut values = Vec::new();
        for round in 0..rounds {
            let place = folder.join(format!("size-pages-{kind}-{round}"));
            let empty = stored(&place.join("few"), Class::Read, 1, 0, paging(page)).await;
            let full = stored(&place.join("many"), Class::Read, 1, TURNS, paging(page)).await;
            values.push((full - empty) / (TURNS as usize * PAGE) as f64);
        }
        report(Row { name, values, unit: "×", target });
    }
    if crate::is_wanted(EMPTY) {
        let bytes = stored(&folder.join("size-empty"), Class::Read, 1, 0, steps::functions()).await;
        report(Row { name: EMPTY, values: vec![bytes / 1024.0], unit: "KiB", target: "" });
    }
}

/// The tool, with another page at each call.
fn paging(page: fn(usize) -> Vec<u8>) -> Functions {
    let (mut functions, next) = (Functions::default(), AtomicUsize::new(0));
    let answer = move |_| std::future::ready(Ok::<_, ToolError>(page(next.fetch_add(1, Ordering::Relaxed))));
    functions.add("step", answer);
    functions
}

/// The bytes of a store, all of its files, after one run of so many turns.
async fn stored(folder: &Path, class: Class, calls: u64, turns: u64, functions: Functions) -> f64 {
    std::fs::create_dir_all(folder).expect("a folder");
    let (model, _gate, _arrivals) = steps::stepper(calls, turns, 0);
    let runtime = steps::open_with(&folder.join("store.db"), model, functions);
    steps::start(&runtime, class, 1).await;
    runtime.work_until_idle(Arc::new(Silent), &Shutdown::default()).await.expect("worked");
    drop(runtime);
    bytes_below(folder) as f64
}

/// The bytes of all files in a folder and below.
pub fn bytes_below(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("read").path());
    entries
        .map(|path| if path.is_dir() { bytes_below(&path) } else { path.metadata().map_or(0, |one| one.len()) })
        .sum()
}

/// A page of bytes that nothing makes smaller, each time another one.
fn noise(number: usize) -> Vec<u8> {
    noise_of(number, PAGE)
}

/// So many such bytes (xorshift64).
pub fn noise_of(number: usize, len: usize) -> Vec<u8> {
    let mut state = number as u64 * 0x9e37_79b9_7f4a_7c15 + 1;
    let mut word = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..len / 8).flat_map(|_| word()).collect()
}

/// A page of this project's own documents, each time another one.
fn english(number: usize) -> Vec<u8> {
    static TEXT: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
    let text = TEXT.get_or_init(|| {
        let mut files: Vec<_> = std::fs::read_dir("docs").expect("the project's folder").flatten().collect();
        files.sort_by_key(std::fs::DirEntry::path);
        files.iter().filter_map(|file| std::fs::read(file.path()).ok()).flatten().collect()
    });
    // A stride that is no multiple of the page: a second time round the pages begin elsewhere.
    let at = number * (PAGE - 61) % (text.len() - PAGE);
    text[at..at + PAGE].to_vec()
}
