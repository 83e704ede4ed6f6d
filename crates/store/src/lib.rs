//! Where runs live: the [`Store`] trait, its implementations, and the conformance suite that each of them passes.
//!
//! A store keeps journals, snapshots, values, inboxes and leases. It decides nothing about a run: what may follow on
//! what is the core's, and a store calls it where the answer has to be part of a transaction.
//!
//! # Layout
//!
//! - [`store`]: the trait; what is true after Ok, after Err and after a crash.
//! - [`rows`]: what a transition means for the tables beside the journal.
//! - [`replay`]: a journal folded again, with what a store would have written beside it.
//! - [`audit`]: a store as it is stored, to be compared or saved.
//! - `listed`: what a store lists.
//! - `held`: words to a run whose store was put back, or that can't be read.
//! - [`loaded`]: a run as it is read back: a snapshot and a bounded tail.
//! - [`clock`]: wall time and boot time, injected.
//! - [`changes`]: how waiting workers learn that something may have changed.
//! - [`retention`]: which snapshots are kept.
//! - [`garbage`]: what nothing needs any more, and what of it may go.
//! - [`memory`]: the reference implementation.
//! - [`sqlite`]: one file, several processes.
//! - [`conformance`]: the suite; public, so that another store can prove itself.
//! - `testing`, with the feature of that name: how columns are packed, for whoever gives it damaged ones.

pub mod audit;
pub mod changes;
pub mod clock;
pub mod conformance;
pub mod garbage;
mod held;
mod listed;
pub mod loaded;
pub mod memory;
mod refusals;
pub mod replay;
pub mod retention;
pub mod rows;
pub mod sqlite;
pub mod store;
#[cfg(feature = "testing")]
pub mod testing;

pub use audit::{Audit, Beside, Found, Letter};
pub use changes::Changes;
pub use clock::{Clock, SettableClock, SystemClock};
pub use loaded::Loaded;
pub use memory::MemoryStore;
pub use replay::Replay;
pub use sqlite::{APPLICATION_ID, STORE_FOLDER, SqliteStore};

pub use store::*;
