//! Secrets: references in a definition, values only where an attempt is sent.
//!
//! - [`environment`]: where the values come from.

pub mod environment;

pub use environment::Environment;
