//! The stored format: golden bytes that decode for ever, and bytes that are damaged, foreign or from the future.

#[path = "support/every_event.rs"]
mod every_event;
#[path = "support/every_word.rs"]
mod every_word;
mod support;

use std::path::PathBuf;

use lodestep_core::checkpoint::Checkpoint;
use lodestep_core::event::{Envelope, Event};
use lodestep_core::fold::{fold, fold_first};
use lodestep_core::rules::inbox::Message;
use lodestep_core::{Ordinal, Timestamp};
use minicbor::Encoder;
use serde_json::json;
use support::{Bench, call, free};

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/journals/v1").join(name)
}

fn to_hex(bytes: &[u8]) -> String {
    let lines = bytes.chunks(48).map(|line| line.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits: Vec<char> = text.chars().filter(char::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(&pair.iter().collect::<String>(), 16).expect("hex")).collect()
}

fn every() -> Envelope {
    let at = Timestamp::from_micros(1_700_000_000_000_000);
    Envelope { format: 1, seq: 1, at, epoch: 3, active_us: 250, events: every_event::all() }
}

/// Once written, a golden file is never changed: `LODESTEP_WRITE_GOLDEN=1` writes those that are not there.
#[test]
fn every_event_of_format_1_reads_for_ever() {
    let bytes = every().to_bytes();
    let path = golden("every_event.hex");
    if std::env::var_os("LODESTEP_WRITE_GOLDEN").is_some() && !path.exists() {
        std::fs::write(&path, to_hex(&bytes)).expect("the fixture is written");
    }
    let stored = from_hex(&std::fs::read_to_string(&path).expect("the fixture is there"));
    let read = Envelope::from_bytes(&stored).expect("format 1 reads for ever");
    assert_eq!(read, every());
    assert_eq!(to_hex(&read.to_bytes()), to_hex(&stored), "and is written the same");
    let names: std::collections::BTreeSet<_> = read.events.iter().map(Event::name).collect();
    assert_eq!(names.len(), 46);
}

/// Every gate of a proposal, and every word that an inbox holds.
#[test]
fn every_gate_and_word_of_format_1_reads_for_ever() {
    let gates = Envelope { events: every_event::gates(), ..every() };
    let words = every_word::all();
    let lines: Vec<Vec<u8>> =
        std::iter::once(gates.to_bytes()).chain(words.iter().map(|(_, message)| message.to_bytes())).collect();
    let path = golden("gates_and_words.hex");
    if std::env::var_os("LODESTEP_WRITE_GOLDEN").is_some() && !path.exists() {
        let lines: Vec<String> = lines.iter().map(|line| to_hex(line)).collect();
        std::fs::write(&path, lines.join("\n")).expect("the fixture is written");
    }
    let text = std::fs::read_to_string(&path).expect("the fixture is there");
    let stored: Vec<Vec<u8>> = text.split("\n\n").map(from_hex).collect();
    assert_eq!(Envelope::from_bytes(&stored[0]).expect("format 1 reads for ever"), gates);
    assert_eq!(stored.len(), words.len() + 1);
    for (stored, (name, message)) in stored[1..].iter().zip(&words) {
        assert_eq!(Message::from_bytes(stored).as_ref(), Ok(message), "{name}");
    }
    assert_eq!(stored, lines, "and is written the same");
}

/// A whole small run: its journal, as this build writes it, folds to the same state digest.
#[test]
fn a_journal_of_format_1_folds_for_ever() {
    let path = golden("small_run.hex");
    if std::env::var_os("LODESTEP_WRITE_GOLDEN").is_some() && !path.exists() {
        let journal: Vec<String> = small_run().journal.iter().map(|line| to_hex(line)).collect();
        std::fs::write(&path, journal.join("\n")).expect("the fixture is written");
    }
    let text = std::fs::read_to_string(&path).expect("the fixture is there");
    let journal: Vec<Vec<u8>> = text.split("\n\n").map(from_hex).collect();
    let (mut checkpoint, _) = fold_first(&journal[0]).expect("it begins");
    for envelope in &journal[1..] {
        fold(&mut checkpoint, envelope).expect("it goes on");
    }
    assert!(checkpoint.is_over());
    assert_eq!((checkpoint.seq as usize, checkpoint.last_ordinal), (journal.len(), 4));
    assert_eq!(checkpoint.settled(Ordinal(2)).map(|settled| settled.attempts), Some(2));
}

fn small_run() -> Bench {
    use lodestep_core::effect::Seen;
    let mut bench = Bench::new(free());
    bench.calls(vec![call("read", &json!({"x": 1})), call("keyed", &json!({"x": 1}))]);
    bench.owed();
    bench.seen(1, Seen::Done);
    bench.crash();
    bench.owed();
    bench.seen(2, Seen::Done);
    bench.calls(vec![call("note", &json!({"key": "a", "text": "b"})), call("finish", &json!({}))]);
    bench.owed();
    bench
}

#[test]
fn a_future_writers_fields_are_passed_over() {
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes);
    encoder.array(8).unwrap().u32(1).unwrap().u64(1).unwrap().i64(5).unwrap().u64(0).unwrap().u64(0).unwrap();
    // One event, InboxRead, with a field that this build does not know; then two fields of the envelope.
    encoder.array(1).unwrap().array(2).unwrap().u32(18).unwrap().array(1).unwrap();
    encoder.array(3).unwrap().u64(4).unwrap().str("new").unwrap().map(1).unwrap().u8(1).unwrap().u8(2).unwrap();
    encoder.str("later").unwrap().array(2).unwrap().u8(1).unwrap().null().unwrap();
    let read = Envelope::from_bytes(&bytes).expect("what is not known is passed over");
    assert_eq!(read.events.len(), 1);
    assert_eq!(read.events[0].name(), "InboxRead");
}

#[test]
fn g15_a_newer_format_is_refused_by_name() {
    for format in [2, 3, u32::MAX] {
        let bytes = Envelope { format, ..every() }.to_bytes();
        let error = Envelope::from_bytes(&bytes).expect_err("it is newer");
        assert_eq!(error.code(), "store.newer_format");
        assert!(error.what().contains(&format.to_string()), "{error}");
        let mut checkpoint = Bench::new(free()).checkpoint;
        assert_eq!(fold(&mut checkpoint, &bytes).map_err(|error| error.code()), Err("store.newer_format"));
    }
}

/// A small generator of its own: the same bytes in every run.
fn draws(mut state: u64) -> impl FnMut() -> u64 {
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

/// Reads and folds whatever the bytes are; only a panic would be a fault.
fn read_all(bytes: &[u8], checkpoint: &Checkpoint) {
    let _ = Envelope::from_bytes(bytes);
    let _ = fold_first(bytes);
    let _ = fold(&mut checkpoint.clone(), bytes);
    if let Ok(damaged) = Checkpoint::from_bytes(bytes) {
        let _ = lodestep_core::rules::standing::standing(&damaged);
        let _ = damaged.to_bytes();
    }
}

#[test]
fn cut_and_damaged_bytes_never_panic() {
    let bench = small_run();
    let mut sources = vec![every().to_bytes(), bench.checkpoint.to_bytes()];
    sources.extend(bench.journal.iter().cloned());
    let mut draw = draws(0x9e37_79b9_7f4a_7c15);
    for source in &sources {
        for length in 0..source.len() {
            assert!(Envelope::from_bytes(&source[..length]).is_err(), "a cut transition is none");
            assert!(Checkpoint::from_bytes(&source[..length]).is_err(), "a cut snapshot is none");
        }
        for _ in 0..3_000 {
            let mut damaged = source.clone();
            for _ in 0..=draw() % 3 {
                let at = draw() as usize % damaged.len();
                damaged[at] = draw() as u8;
            }
            read_all(&damaged, &bench.checkpoint);
        }
    }
    for _ in 0..3_000 {
        let noise: Vec<u8> = (0..draw() % 200).map(|_| draw() as u8).collect();
        read_all(&noise, &bench.checkpoint);
    }
}

#[test]
fn the_ends_of_all_counters_are_errors_not_panics() {
    let mut bench = small_run();
    bench = {
        bench.now = bench.now.plus_ms(1);
        bench
    };
    let mut worn = Bench::new(free());
    worn.calls(vec![call("read", &json!({})), call("keyed", &json!({"x": 1}))]);
    worn.owed();
    let mut checkpoint = worn.checkpoint.clone();
    checkpoint.last_ordinal = u32::MAX;
    (checkpoint.model.calls, checkpoint.model.decisions) = (u64::MAX, u32::MAX);
    (checkpoint.model.failed_in_row, checkpoint.model.faulty_in_row) = (u32::MAX, u32::MAX);
    checkpoint.model.estimate_permille = u32::MAX;
    (checkpoint.refused_finishes, checkpoint.repeats.count) = (u32::MAX, u32::MAX);
    (checkpoint.effect_log.count, checkpoint.artifact_log.count) = (u64::MAX, u64::MAX);
    (checkpoint.quota.active_us, checkpoint.at) = (u64::MAX, Timestamp::from_micros(i64::MAX));
    for action in checkpoint.pending.values_mut() {
        action.attempts = u32::MAX;
        action.max_attempts = u32::MAX;
    }
    for base in [checkpoint, bench.checkpoint, worn.checkpoint] {
        for event in every_event::all().into_iter().chain(every_event::at_the_end_of_counting()) {
            for seq in [base.seq, base.seq + 1, u64::MAX] {
                let at = Timestamp::from_micros(i64::MIN);
                let envelope =
                    Envelope { format: 1, seq, at, epoch: u64::MAX, active_us: u64::MAX, events: vec![event.clone()] };
                let _ = fold(&mut base.clone(), &envelope.to_bytes());
                let _ = fold(&mut Checkpoint { seq: u64::MAX, ..base.clone() }, &envelope.to_bytes());
                let first = Envelope { events: vec![every_event::all().remove(0), event.clone()], ..envelope };
                let folded = fold_first(&first.to_bytes());
                assert!(folded.is_err() || seq == 1, "a journal begins with transition 1");
            }
        }
    }
}

#[test]
fn lengths_beyond_all_memory_are_only_numbers() {
    let mut bench = Bench::new(free());
    bench.calls(vec![call("read", &json!({}))]);
    let huge = lodestep_core::ValueRef { digest: lodestep_core::Digest::of(b"?"), len: u64::MAX };
    for event in every_event::with_value(huge) {
        let _ = bench.push(event);
        let wanted = lodestep_core::context::wants(&bench.checkpoint, &bench.definition);
        assert!(wanted.iter().all(|stored| stored.len < u64::MAX), "what can't fit is not loaded: {wanted:?}");
        let made =
            lodestep_core::context::assemble(&bench.checkpoint, &bench.definition, &bench.inputs(), &bench.blobs);
        assert!(made.is_ok());
    }
}
