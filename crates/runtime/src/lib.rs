//! A durable execution runtime for AI agents: the truth about a run lives in a store, one atomic commit a transition.
//!
//! A [`Runtime`] opens a store, starts runs and works on them. What a run is and what may follow on what is
//! `lodestep-core`'s; this crate does what the core decides: it claims, loads, asks the model, performs actions and commits.
//!
//! # Layout
//!
//! - [`runtime`]: the entry point: start, work, send.
//! - [`worker`]: claims, and the one loop that advances a run.
//! - [`agent`]: agent files.
//! - [`tools`]: how actions are performed.
//! - [`model`]: the models known by name.
//! - [`process`]: tool processes under a holder.
//! - [`fork`], [`upgrade`]: a run that begins with another's state, a run that goes on with another definition.
//! - [`inspect`]: what people ask about a run: its state, its effects, whether its journal verifies.
//! - [`gc`]: which runs that ended may be removed.
//! - [`secrets`]: references filled in when an attempt is sent, and nowhere else.
//! - [`observe`]: progress, for whoever watches.
//! - `testing`, with the feature of that name: a deterministic simulator.
//! - [`fitness`]: which runs this program can't go on with.
//! - [`rehearsal`]: what would be sent, said in its place.
//! - [`fault`]: places at which a process can be told to abort.

// A print that panics on a closed pipe would end a run in the middle.
#![warn(clippy::print_stderr, clippy::print_stdout)]

pub mod agent;
pub mod bundle;
pub mod fault;
pub mod fitness;
pub mod fork;
pub mod gc;
pub mod inspect;
pub mod model;
pub mod observe;
pub mod process;
pub mod rehearsal;
pub mod runtime;
pub mod secrets;
#[cfg(feature = "testing")]
pub mod testing;
pub mod tools;
pub mod upgrade;
pub mod worker;

pub use lodestep_core as core;
pub use lodestep_store as store;
pub use runtime::{Runtime, RuntimeBuilder, Start, nearest};

/// The Rust of the documents compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/tools.md")]
struct ToolsPage;
