//! Inputs by chance, from a seed: each is a mutation of one that is kept, and is kept itself when its answer is new.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::corpus::seeds;
use crate::judge::{Fault, judge};
use crate::minimize::minimize;
use crate::mutate::mutate;
use crate::targets::Target;

/// So many inputs are kept at most.
const KEPT: usize = 4_096;

/// After so many faults that differ a hunt ends.
const FAULTS: usize = 8;

/// So many tries make an input smaller.
const TRIES: usize = 2_000;

/// How long to hunt.
#[derive(Clone, Copy, Debug)]
pub struct Hunt {
    /// What chance is drawn from.
    pub seed: u64,
    /// The most inputs.
    pub inputs: u64,
    /// The most time.
    pub time: Duration,
}

/// What a hunt came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Inputs that were tried.
    pub inputs: u64,
    /// Inputs that were kept for their answer.
    pub kept: usize,
    /// Faults that differ, each with its smallest input.
    pub faults: Vec<(Fault, Vec<u8>)>,
}

impl Hunt {
    /// Hunts. `before` is told each input before it is tried: a process that ends has left it there.
    pub fn run(self, target: &Target, mut before: impl FnMut(&[u8])) -> Found {
        let began = Instant::now();
        let mut rng = Rng::with_seed(self.seed);
        let mut kept = seeds(target.name);
        kept.extend(regressions(target).into_iter().map(|(_, input)| input));
        let (mut answers, mut names) = (HashSet::new(), HashSet::new());
        let mut found = Found::default();
        let mut waiting = kept.clone();
        while found.inputs < self.inputs && found.faults.len() < FAULTS && began.elapsed() < self.time {
            let input = waiting.pop().unwrap_or_else(|| {
                let (one, other) = (rng.usize(..kept.len()), rng.usize(..kept.len()));
                mutate(&mut rng, target.shape, &kept[one], &kept[other])
            });
            found.inputs += 1;
            before(&input);
            match judge(target, &input) {
                Ok(answer) => {
                    if answers.insert(answer) && kept.len() < KEPT {
                        kept.push(input);
                    }
                }
                Err(fault) => {
                    if names.insert(fault.name()) {
                        let tries = if matches!(fault, Fault::Slow(_)) { TRIES / 50 } else { TRIES };
                        let alike = |input: &[u8]| {
                            before(input);
                            judge(target, input).is_err_and(|other| other.name() == fault.name())
                        };
                        let smallest = minimize(&input, tries, alike);
                        found.faults.push((fault, smallest));
                    }
                }
            }
        }
        found.kept = kept.len();
        found
    }
}

/// The folder of a target's inputs that failed once.
pub fn folder(target: &Target) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions").join(target.name)
}

/// The inputs of a target that failed once, by the names of their files.
pub fn regressions(target: &Target) -> Vec<(PathBuf, Vec<u8>)> {
    let files = std::fs::read_dir(folder(target)).into_iter().flatten().filter_map(Result::ok);
    let mut found: Vec<_> = files.filter_map(|file| Some((file.path(), std::fs::read(file.path()).ok()?))).collect();
    found.sort();
    found
}
