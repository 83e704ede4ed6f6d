//! A strict model server: what a provider does, on loopback and for tests.
//!
//! It speaks two shapes over plain HTTP/1.1, the Anthropic Messages API (`POST /v1/messages`) and OpenAI's chat
//! completions (`POST /v1/chat/completions`), whole and as a stream, and `GET /v1/models` for both. It refuses what the
//! real services refuse and in like words, bills every request, and misbehaves when it is told to. Behind it stands any
//! [`Model`](lodestep_model::Model): a script, a closure, or a model without a network.
//!
//! It shares no line with the code that asks a provider, so that a mistake about a protocol can't be made on both sides
//! at once. It is not shipped.
//!
//! ```
//! use lodestep_model::Reply;
//! use lodestep_model_server::{Fault, Options, Server, Shape, mind};
//!
//! # fn main() -> std::io::Result<()> {
//! let server = Server::on_thread(Options::new(mind::from_fn(|_| Ok(Reply { text: "Hello.".into(), ..Reply::default() }))))?;
//! server.plan([Fault::Overloaded]);
//! assert!(server.base_url(Shape::OpenAi).ends_with("/v1"));
//! assert!(server.bill().entries.is_empty());
//! # Ok(())
//! # }
//! ```
//!
//! # Layout
//!
//! - [`server`](Server): the listener; `options`, what it is started with; [`mind`]: models to stand behind it.
//! - `service`: the way of one request, from its first byte to the bill. `dialect`: what the two shapes differ in.
//! - [`plan`]: faults, one for each of the next requests. [`bill`]: what came and what became of it.
//! - [`refusal`]: why a request is refused. `schema`, `names`: rules that both shapes have.
//! - `tokens`, `cache`: the server's own count, and a prompt cache by it.
//! - `question`, `answer`: a request as it was read, and a reply as it is about to be written.
//! - `body`, `wire`: how the bytes of an answer go out, and how they stop.
//! - `anthropic`, `openai`: a shape each: what it refuses, reads and writes.

mod answer;
mod anthropic;
pub mod bill;
mod body;
mod cache;
mod dialect;
pub mod mind;
mod names;
mod openai;
mod options;
pub mod plan;
mod question;
pub mod refusal;
mod schema;
mod server;
mod service;
mod tokens;
mod wire;

pub use bill::{Bill, Entry, Outcome, Tokens};
pub use dialect::{Shape, WAYS};
pub use options::Options;
pub use plan::{At, Fault};
pub use refusal::Kind;
pub use server::Server;
pub use tokens::count as count_tokens;
