//! Whole programs in simulated time: killed everywhere, and by chance.

use std::panic::catch_unwind;

use lodestep::testing::{Faults, Kill, Outcome, Plan, Script, simulate};

/// Random stories in the tests; `cargo xtask simulate` plays more.
const SEEDS: u64 = 300;

/// Seeds that failed once, one a line, with what was wrong.
const FAILED_ONCE: &str = include_str!("simulate_seeds.txt");

fn killed(script: &Script, kills: &[Kill]) -> Outcome {
    let scripts = Some(vec![script.clone()]);
    simulate(Plan { seed: 7, faults: Some(Faults::NONE), scripts, kills: kills.to_vec(), ..Plan::default() })
}

/// The story without a crash, and that nothing is wrong with it.
fn undisturbed(script: &Script) -> Outcome {
    let outcome = killed(script, &[]);
    assert_eq!(outcome.faults, [""; 0], "without a crash");
    assert!(outcome.results.values().all(|result| result.starts_with("completed")), "{:?}", outcome.results);
    outcome
}

fn same(outcome: &Outcome, wanted: &Outcome, what: &str) {
    assert_eq!(outcome.faults, [""; 0], "{what}");
    assert_eq!((&outcome.results, outcome.applied), (&wanted.results, wanted.applied), "{what}");
}

#[test]
fn a_seed_plays_the_same_story_each_time() {
    for seed in 0..20 {
        let plan = || Plan { seed, ..Plan::default() };
        assert_eq!(simulate(plan()), simulate(plan()), "seed {seed}");
    }
}

#[test]
fn seeds_tell_different_stories() {
    let stories: Vec<Outcome> = (0..10).map(|seed| simulate(Plan { seed, ..Plan::default() })).collect();
    assert!(stories.iter().any(|story| story.polls.len() > 2), "some processes die");
    assert!(stories.windows(2).all(|pair| pair[0].polls != pair[1].polls));
}

#[test]
fn stories_come_right_whatever_goes_wrong() {
    let failed = (0..SEEDS).filter_map(|seed| {
        let played = catch_unwind(|| simulate(Plan { seed, ..Plan::default() }));
        match played {
            Ok(outcome) if outcome.faults.is_empty() => None,
            Ok(outcome) => Some(format!("seed {seed}: {}", outcome.faults.join("; "))),
            Err(_) => Some(format!("seed {seed}: a panic")),
        }
    });
    assert_eq!(failed.collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn seeds_that_failed_once_come_right() {
    for line in FAILED_ONCE.lines().filter(|line| !line.starts_with('#')) {
        let seed = line.split_whitespace().next().and_then(|seed| seed.parse().ok()).expect("a seed");
        assert_eq!(simulate(Plan { seed, ..Plan::default() }).faults, [""; 0], "{line}");
    }
}

#[test]
fn a_process_may_die_before_every_poll() {
    for script in [Script::of_each_class(), Script::all_at_once()] {
        let wanted = undisturbed(&script);
        for poll in 1..=wanted.polls[0] {
            same(&killed(&script, &[Kill::Poll(poll)]), &wanted, &format!("killed before poll {poll}"));
        }
    }
}

#[test]
fn two_processes_may_die_after_every_pair_of_writes() {
    let script = Script::all_at_once();
    let wanted = undisturbed(&script);
    for first in 1..=wanted.writes[0] {
        let once = killed(&script, &[Kill::Write(first)]);
        same(&once, &wanted, &format!("killed after write {first}"));
        let second = once.writes.get(1).copied().unwrap_or(0);
        for second in 1..=second {
            let kills = [Kill::Write(first), Kill::Write(second)];
            same(&killed(&script, &kills), &wanted, &format!("killed after writes {first} and {second}"));
        }
    }
}
