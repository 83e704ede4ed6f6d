//! What holds in every state that the real rules can reach, under whatever order of things.
//!
//! A failure names its seed; `LODESTEP_SEED=7` tries that one alone.

#[path = "support/ledger.rs"]
mod ledger;
#[path = "support/random.rs"]
mod random;
mod support;

use ledger::Ledger;
use lodestep_core::checkpoint::{
    Action, ActionState, CLOSED_REQUESTS, Checkpoint, GUIDANCE, NOTES, Phase, RECENT_TEXTS, SIGNALS,
};
use lodestep_core::event::Event;
use lodestep_core::fold::{fold, fold_first};
use lodestep_core::quota::Amounts;
use lodestep_core::rules::inbox::{Message, Verdict, Word, judge, read};
use lodestep_core::rules::owed::{Hands, dispatchable, owed, wants_model};
use lodestep_core::rules::recover::recover;
use lodestep_core::rules::standing::{Status, standing};
use lodestep_core::{Draft, Timestamp};
use random::{Chance, agent, happen, written_since};
use support::Bench;

const SEEDS: u64 = 150;
const STEPS: usize = 160;

/// Runs every seed, and looks at each state that it comes to.
fn each_state(mut look: impl FnMut(&Bench, &mut Chance)) {
    let only = std::env::var("LODESTEP_SEED").ok().and_then(|seed| seed.parse().ok());
    for seed in only.map_or(1..SEEDS + 1, |seed| seed..seed + 1) {
        let mut chance = Chance::new(seed);
        let mut bench = Bench::new(agent(&mut chance));
        for _ in 0..STEPS {
            happen(&mut bench, &mut chance);
            let _note = Failing(seed);
            look(&bench, &mut chance);
        }
    }
}

/// Says which seed it was when a test fails.
struct Failing(u64);

impl Drop for Failing {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("LODESTEP_SEED={}", self.0);
        }
    }
}

fn refold(journal: &[Vec<u8>]) -> Checkpoint {
    let (mut checkpoint, _) = fold_first(&journal[0]).expect("it begins");
    for envelope in &journal[1..] {
        fold(&mut checkpoint, envelope).expect("it goes on");
    }
    checkpoint
}

#[test]
fn a_fold_from_any_snapshot_gives_the_same() {
    each_state(|bench, chance| {
        let bytes = bench.checkpoint.to_bytes();
        let read = Checkpoint::from_bytes(&bytes).expect("a snapshot reads");
        assert_eq!(read, bench.checkpoint);
        assert_eq!(read.to_bytes(), bytes);
        if !chance.one_in(40) {
            return;
        }
        let whole = refold(&bench.journal);
        assert_eq!((whole.state_digest(), whole.head), (bench.checkpoint.state_digest(), bench.checkpoint.head));
        let cut = 1 + chance.below(bench.journal.len() as u64) as usize;
        let mut resumed = Checkpoint::from_bytes(&refold(&bench.journal[..cut]).to_bytes()).expect("it reads");
        for envelope in &bench.journal[cut..] {
            fold(&mut resumed, envelope).expect("it goes on from a snapshot");
        }
        assert_eq!(resumed, bench.checkpoint);
    });
}

#[test]
fn every_collection_stays_within_its_limit() {
    each_state(|bench, _| {
        let (checkpoint, limits) = (&bench.checkpoint, bench.checkpoint.limits);
        // The newest decision is kept whole: here at most four calls and their edits.
        assert!(checkpoint.recent.len() <= limits.recent_actions as usize + 8);
        assert!(checkpoint.pending.len() <= 8, "one decision is open");
        assert!(checkpoint.older.len() <= bench.definition.tools.len() + 1);
        assert!(checkpoint.errors.len() <= limits.recent_errors as usize);
        assert!(checkpoint.artifacts.len() <= limits.artifacts.max(limits.open_artifacts) as usize + 1);
        assert!(checkpoint.open_artifacts.len() <= limits.open_artifacts as usize);
        assert!(checkpoint.plan.len() <= limits.milestones as usize);
        assert!(checkpoint.notes.len() <= NOTES);
        let notes: u64 = checkpoint.notes.values().map(|note| note.len).sum();
        assert!(notes <= u64::from(limits.notes_bytes));
        assert!(checkpoint.model.texts.len() <= RECENT_TEXTS);
        assert!(checkpoint.closed_requests.len() <= CLOSED_REQUESTS);
        assert!(checkpoint.guidance.len() <= GUIDANCE && checkpoint.signals.len() <= SIGNALS);
        assert!(checkpoint.to_bytes().len() < 40_000, "{}", checkpoint.to_bytes().len());
    });
}

#[test]
fn g09_reserved_is_what_is_open() {
    each_state(|bench, _| {
        let checkpoint = &bench.checkpoint;
        let mut open = checkpoint.model.open.map(|open| open.amounts).unwrap_or_default();
        open.tool_calls += checkpoint.pending.values().filter(|action| action.counted).count() as u64;
        assert_eq!(checkpoint.quota.reserved, open);
        for row in checkpoint.remaining() {
            assert!(row.left <= row.limit && row.left == row.limit.saturating_sub(row.used + row.reserved), "{row:?}");
        }
        let doubt = |action: &Action| matches!(action.state, ActionState::Doubt { .. });
        if checkpoint.is_over() {
            assert!(checkpoint.pending.values().all(doubt), "only doubts outlive a run");
        }
        if checkpoint.pending.is_empty() && checkpoint.model.open.is_none() {
            assert_eq!(checkpoint.quota.reserved, Amounts::default());
        }
        if let Some(limit) = checkpoint.quota.limits.tool_calls {
            assert!(checkpoint.quota.used.tool_calls + checkpoint.quota.reserved.tool_calls <= limit);
        }
    });
}

/// Could a worker with free hands do something for the run at the journal's own time?
fn can_move(bench: &Bench) -> bool {
    let checkpoint = &bench.checkpoint;
    let (now, epoch) = (checkpoint.at, bench.epoch + 1);
    let mut draft = Draft::next(checkpoint.clone(), now, epoch, 0);
    recover(&mut draft).expect("it recovers");
    owed(
        &mut draft,
        &bench.definition,
        Hands { free: 8, send_by: now, busy: &Default::default(), held: &Default::default(), dedupe: &bench.dedupe },
    )
    .expect("it is owed");
    !draft.is_empty() || !dispatchable(checkpoint, epoch, now).is_empty() || wants_model(checkpoint, now)
}

#[test]
fn g11_no_run_is_silently_stuck_and_none_spins() {
    each_state(|bench, _| {
        let checkpoint = &bench.checkpoint;
        let stands = standing(checkpoint);
        if stands.status.is_terminal() {
            assert!(checkpoint.is_over() && stands.due.is_none());
            return;
        }
        let shown = format!("{stands:?} {:?} {:?}", checkpoint.phase, checkpoint.pending);
        assert!(stands.due.is_some() || !stands.reasons.is_empty(), "silent: {shown}");
        assert!(stands.status != Status::Waiting || !stands.reasons.is_empty(), "waits for nothing: {shown}");
        if matches!(checkpoint.phase, Phase::Stopped { .. }) {
            // What a stop left open is closed once, whoever has the run then.
            let mut bench = bench.clone();
            bench.crash();
            assert_eq!(bench.standing().due, None, "{shown}");
            return;
        }
        let due_now = stands.due.is_some_and(|due| due <= checkpoint.at);
        assert_eq!(due_now, can_move(bench), "due now and able to move are the same: {shown}");
        assert!(stands.status != Status::Ready || due_now, "{shown}");
    });
}

#[test]
fn owed_leaves_nothing_owed() {
    each_state(|bench, _| {
        let mut bench = bench.clone();
        bench.owed_with(u32::MAX);
        let again = bench.owed_with(u32::MAX);
        assert!(again.is_empty(), "owed once more: {again:?}");
    });
}

#[test]
fn g05_g04_an_independent_ledger_agrees_with_every_send() {
    let only = std::env::var("LODESTEP_SEED").ok().and_then(|seed| seed.parse().ok());
    let (mut sent, mut met) = (0, std::collections::BTreeSet::new());
    for seed in only.map_or(1..4 * SEEDS, |seed| seed..seed + 1) {
        let _note = Failing(seed);
        let mut chance = Chance::new(seed);
        let mut bench = Bench::new(agent(&mut chance));
        let mut ledger = Ledger::default();
        for _ in 0..2 * STEPS {
            let before = bench.journal.len();
            met.extend(happen(&mut bench, &mut chance).iter().map(Event::name));
            ledger.take(&bench.checkpoint, &written_since(&bench, before));
            ledger.compare(&bench.checkpoint, bench.epoch, Timestamp::from_micros(i64::MAX));
        }
        sent += ledger.sends();
    }
    let rare = [
        "ActionRebound",
        "ApprovalLapsed",
        "DeadlinePassed",
        "GuidanceGiven",
        "QuotaGranted",
        "QuotaRaised",
        "RunUpgraded",
        "SignalTaken",
        "TimerFired",
    ];
    assert!(only.is_some() || rare.iter().all(|name| met.contains(name)), "not met: {met:?}");
    assert!(only.is_some() || sent > 2_500, "too little was sent to show anything: {sent}");
}

#[test]
fn a_cancelled_run_ends_and_sends_nothing() {
    each_state(|bench, chance| {
        if bench.checkpoint.is_over() || !chance.one_in(10) {
            return;
        }
        let mut bench = bench.clone();
        let from = bench.journal.len();
        bench.say("ann", Word::Cancel { reason: String::new() });
        for _ in 0..6 {
            bench.crash();
            bench.owed();
            bench.wait_ms(120_000);
            let due = dispatchable(&bench.checkpoint, bench.epoch, bench.now);
            for ordinal in due {
                bench.looked_up(ordinal.0, lodestep_core::rules::settle::LookedUp::Running);
            }
        }
        assert!(bench.checkpoint.is_over(), "{:?} {:?}", bench.checkpoint.phase, bench.checkpoint.pending);
        let events = written_since(&bench, from);
        assert!(!events.iter().any(|event| matches!(event, Event::AttemptStarted(_) | Event::CallReserved(_))));
    });
}

#[test]
fn g02_a_word_that_was_accepted_is_accepted_when_it_is_read() {
    each_state(|bench, chance| {
        let mut unread: Vec<(u64, Message)> = Vec::new();
        for _ in 0..chance.below(4) {
            let message = Message { by: "ann".to_owned(), word: random::word(bench, chance) };
            if judge(bench.draft(), &unread, &message) == Ok(Verdict::Accepted) {
                unread.push((bench.position + 1 + unread.len() as u64, message));
            }
        }
        let later = bench.now.plus_ms(*chance.pick(&[0, 10, 10_000_000]));
        let mut draft = Draft::next(bench.checkpoint.clone(), later, bench.epoch, 0);
        for (position, message) in &unread {
            assert_eq!(read(&mut draft, *position, message), Ok(Verdict::Accepted), "{message:?}");
        }
        let bytes = unread.iter().map(|(_, message)| Message::from_bytes(&message.to_bytes()));
        assert!(bytes.zip(&unread).all(|(read, (_, message))| read.as_ref() == Ok(message)));
    });
}
