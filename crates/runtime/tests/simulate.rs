//! Whole programs in simulated time: killed everywhere, and by chance.

use std::panic::catch_unwind;

use lodestep::testing::{Exhaustive, Outcome, Plan, Script, StoreKind, simulate};

/// Random stories in the tests; `cargo xtask simulate` plays more.
const SEEDS: u64 = 300;

/// Random stories over SQLite, besides those that a seed draws.
const SEEDS_IN_FILES: u64 = 60;

/// Seeds that failed once, one a line, with what was wrong.
const FAILED_ONCE: &str = include_str!("simulate_seeds.txt");

#[test]
fn a_seed_plays_the_same_story_each_time() {
    for (store, seeds) in [(None, 20), (Some(StoreKind::Sqlite), 10)] {
        for seed in 0..seeds {
            let plan = || Plan { seed, store, tells: true, ..Plan::default() };
            let (once, again) = (simulate(plan()), simulate(plan()));
            assert!(store.is_none_or(|store| store == once.store), "{:?}", once.store);
            assert_eq!(once, again, "seed {seed}");
        }
    }
}

#[test]
fn seeds_tell_different_stories() {
    let stories: Vec<Outcome> = (0..10).map(|seed| simulate(Plan { seed, ..Plan::default() })).collect();
    assert!(stories.iter().any(|story| story.polls.len() > 2), "some processes die");
    assert!(stories.windows(2).all(|pair| pair[0].polls != pair[1].polls));
}

/// Seeds whose stories do not come right, with what is wrong.
fn failed(seeds: impl Iterator<Item = u64>, store: Option<StoreKind>) -> Vec<String> {
    let failed = seeds.filter_map(|seed| {
        let played = catch_unwind(|| simulate(Plan { seed, store, ..Plan::default() }));
        match played {
            Ok(outcome) if outcome.faults.is_empty() => None,
            Ok(outcome) => Some(format!("seed {seed}: {}", outcome.faults.join("; "))),
            Err(_) => Some(format!("seed {seed}: a panic")),
        }
    });
    failed.collect()
}

#[test]
fn stories_come_right_whatever_goes_wrong() {
    assert_eq!(failed(0..SEEDS, None), [""; 0]);
}

#[test]
fn stories_over_sqlite_come_right_whatever_goes_wrong() {
    assert_eq!(failed(SEEDS..SEEDS + SEEDS_IN_FILES, Some(StoreKind::Sqlite)), [""; 0]);
}

#[test]
fn seeds_that_failed_once_come_right() {
    for line in FAILED_ONCE.lines().filter(|line| !line.starts_with('#')) {
        let seed = line.split_whitespace().next().and_then(|seed| seed.parse().ok()).expect("a seed");
        assert_eq!(simulate(Plan { seed, ..Plan::default() }).faults, [""; 0], "{line}");
    }
}

/// Each small agent over this store.
fn small(store: StoreKind) -> impl Iterator<Item = Exhaustive> {
    Script::small().into_iter().map(move |(name, script)| Exhaustive::of(script, store).expect(name))
}

#[test]
fn a_process_may_die_before_every_poll() {
    for agent in small(StoreKind::Memory) {
        assert!(agent.polls() > 50 && agent.writes() > 10, "{} polls, {} writes", agent.polls(), agent.writes());
        let wrong = (1..=agent.polls()).flat_map(|poll| agent.killed_before(poll));
        assert_eq!(wrong.collect::<Vec<_>>(), [""; 0]);
    }
}

#[test]
fn two_processes_may_die_after_every_pair_of_writes() {
    for agent in small(StoreKind::Memory) {
        for first in 1..=agent.writes() {
            assert_eq!(agent.killed_after(first).1, [""; 0]);
        }
    }
}

#[test]
fn two_processes_may_die_after_a_pair_of_writes_to_sqlite() {
    let agent = Exhaustive::of(Script::all_at_once(), StoreKind::Sqlite).expect("sound");
    let mut pairs = 0;
    for first in (1..=agent.writes()).step_by(2) {
        let (count, wrong) = agent.killed_after(first);
        assert_eq!(wrong, [""; 0]);
        pairs += count;
    }
    assert!(pairs > 50, "{pairs} pairs");
}
