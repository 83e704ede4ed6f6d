//! A deterministic simulator of whole programs: workers over one store, the tools and models that they call, the people
//! who look after their runs, and what goes wrong with each of them.
//!
//! Everything happens on one thread and in simulated time, and every choice is drawn from one seed: the same seed
//! plays the same story, down to the order of polls. Processes die before any poll, stand still past their lease and
//! wake, their commits fail or take effect and lose their answer, the disk is full for a while, the wall clock jumps,
//! tools answer late, wrongly or never, and words come twice. Afterwards all is calm, and has to come right.
//!
//! What is checked stands outside of the runtime: a witness of every commit that took effect, and a ledger of what the
//! world really applied.
//!
//! - `simulation`: one story. `exhaustive`: a small agent, `crash`: a program of one's own, killed everywhere.
//! - `machine`: what outlives a process. `disk`: its store, in memory or in a file.
//! - `process`, `store`, `hints`: a process, its way to the store, and the store's word that something changed.
//! - `outside`, `agent`, `person`: tools and their ledger, models, people.
//! - `witness`, `check`: what has to hold, at each call and at the end.
//! - `through`: models asked through the strict model server.
//! - `faults`, `chance`, `clock`: what goes wrong and how often, the seed, the time.

mod agent;
mod chance;
mod check;
mod clock;
mod crash;
mod disk;
mod exhaustive;
mod faults;
mod hints;
mod machine;
mod outside;
mod person;
mod process;
mod simulation;
mod store;
mod through;
mod witness;

use std::collections::BTreeMap;

pub use agent::Script;
pub use crash::{App, Crashes, InDoubt, crash_everywhere, crash_everywhere_over, crash_twice_everywhere};
pub use disk::StoreKind;
pub use exhaustive::Exhaustive;
pub use faults::Faults;
pub use process::Kill;
pub(crate) use through::through;

/// What is played.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Every choice is drawn from it.
    pub seed: u64,
    /// What the store is; drawn from the seed too when `None`, without a change to all else.
    pub store: Option<StoreKind>,
    /// What goes wrong; drawn from the seed too when `None`.
    pub faults: Option<Faults>,
    /// What the runs' models say; drawn from the seed when `None`.
    pub scripts: Option<Vec<Script>>,
    /// When the first worker's process dies, then the one that takes its place, and so on.
    pub kills: Vec<Kill>,
    /// Is the story kept?
    pub tells: bool,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The seed: with the plan's other parts it plays the same again.
    pub seed: u64,
    /// What the store was.
    pub store: StoreKind,
    /// What should not have been, in words; empty when all is well.
    pub faults: Vec<String>,
    /// How each run ended, and how its actions were settled.
    pub results: BTreeMap<String, String>,
    /// How often the world really applied an effect; what may be repeated does not count.
    pub applied: u64,
    /// How often each worker's process was polled, in the order of their starts.
    pub polls: Vec<u64>,
    /// How often each of them wrote to the store.
    pub writes: Vec<u64>,
    /// Claims, commits, calls and deliveries in order, where the plan says so.
    pub story: Vec<String>,
}

/// Plays a plan, on this thread.
///
/// # Panics
///
/// When no thread-local runtime can be built, as inside another one.
pub fn simulate(plan: Plan) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    match runtime {
        Ok(runtime) => runtime.block_on(simulation::play(plan)),
        Err(error) => panic!("no runtime to simulate in: {error}"),
    }
}
