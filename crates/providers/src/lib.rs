//! Models over HTTP: one [`Provider`] speaks one dialect with one service.
//!
//! Two dialects reach nearly every model there is: Anthropic Messages, and OpenAI chat completions with the servers
//! that follow them (Ollama, vLLM, llama.cpp, OpenRouter and many more). A dialect turns a
//! [`Request`](lodestep_model::Request) into a body that its service takes by construction, and what comes back into a
//! [`Reply`](lodestep_model::Reply) or into the [`ModelError`](lodestep_model::ModelError) that says whether asking again
//! is right. Nothing here retries, waits out a limit or keeps anything for the next call: all that is the runtime's, and recorded.
//!
//! # Layout
//!
//! - [`provider`]: one call, from the request to the reply.
//! - [`settings`]: which service, which model, which limits of time.
//! - `client`: connections. `body`: what is read of an answer, within time and size; events of a stream.
//! - `refusal`: what an answer other than 2xx means. `retry_after`: how long it asks to wait.
//! - `anthropic`, `openai`: the dialects, each with `request`, `reply` (whole) and `stream`.
//! - `pieces`: text that comes in pieces.
//! - `testing`: what is read of an answer, without a connection.

mod anthropic;
mod body;
mod client;
mod openai;
mod pieces;
pub mod provider;
mod refusal;
mod retry_after;
pub mod settings;
#[cfg(feature = "testing")]
pub mod testing;

pub use provider::{Key, Provider};
pub use settings::{Dialect, OutputLimitField, Patience, Settings};
