//! The pure heart of Lodestep: events, checkpoints, and every rule that turns one into the other.
//!
//! Nothing here knows a clock, a disk, a network, a thread or chance. Time and outcomes come in as data, decisions
//! come out as events. What a worker does with them is `lodestep`'s, where they are kept is `lodestep-store`'s.
//!
//! # Layout
//!
//! - [`event`]: what happened; the stored format.
//! - [`checkpoint`], [`fold`]: the state, and how events make it.
//! - [`draft`]: a transition being made.
//! - [`rules`]: what follows from a state: recover, owed, ask, decide, settle, inbox, completion, standing.
//! - [`context`]: what the model sees.
//! - [`definition`], [`policy`], [`quota`], [`effect`]: what an agent is and may do.
//! - [`ids`], [`digest`], [`json`], [`mod@reference`], [`time`], [`value`], [`error`]: the words that all of it uses.

pub mod checkpoint;
pub mod context;
pub mod definition;
pub mod digest;
pub mod draft;
pub mod effect;
pub mod error;
pub mod event;
pub mod fold;
pub mod hold;
pub mod ids;
pub mod json;
pub mod label;
pub mod policy;
pub mod quota;
pub mod reference;
pub mod rules;
pub mod time;
pub mod value;

pub use checkpoint::Checkpoint;
pub use definition::Definition;
pub use digest::Digest;
pub use draft::{Draft, Transition};
pub use error::{Error, Result};
pub use event::Event;
pub use ids::{Ordinal, RunId, RunKey};
pub use label::Labels;
pub use time::Timestamp;
pub use value::{INLINE_VALUE_BYTES, Stored, ValueRef};
