//! Effects: what a tool's class promises, who an action is, and what an attempt came to.
//!
//! - [`class`]: the five classes and what each allows.
//! - [`identity`]: keys (never derived again) and sameness (asked before an effect is committed).
//! - [`outcome`]: the table from what a worker saw to what is known.
//! - [`after`]: what to do with an attempt that may have been sent.

pub mod after;
pub mod class;
pub mod identity;
pub mod outcome;

pub use after::{AfterUnknown, after_unknown};
pub use class::Class;
pub use identity::{dedupe_key, effect_key, request_name, sameness};
pub use outcome::{Known, Seen, known};
