//! What a language model is to Lodestep: a [`Request`], a [`Reply`], and the [`Model`] trait between them.
//!
//! This crate knows nothing of runs, checkpoints or stores, and depends on nothing that does. A model
//! that is written against it can therefore see only what any provider would see: messages and tools.
//!
//! # Layout
//!
//! - [`request`]: system text, messages and tools, as they go out.
//! - [`reply`]: text, calls, why the model stopped, and what it used.
//! - [`model`]: the trait and its errors.
//! - [`text`]: what a provider says, made well-formed where it enters.

pub mod model;
pub mod reply;
pub mod request;
pub mod text;

pub use model::{Model, ModelError, ModelFuture, Progress};
pub use reply::{Reply, StopReason, Usage};
pub use request::{Blocks, Call, CallResult, Message, Request, ToolSpec};
