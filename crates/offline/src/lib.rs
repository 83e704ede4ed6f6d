//! A model without a network: extractive research over the documents that its tools give.
//!
//! [`OfflineModel`] answers like any other [`Model`](lodestep_model::Model): a request goes in, calls come
//! out. It lists the documents, reads them range by range, keeps the sentences that match the topic best
//! in one bounded note, saves a report that holds nothing but cited sentences of the documents, marks the
//! milestones, calls the publishing tools once each, and finishes. Once one of these was denied or has failed it
//! calls no other, and says so, until a person's word has it ask once more for what was denied; and where there is nothing to read it gives up instead of writing an empty report.
//!
//! What it does not do: it knows nothing that the documents do not say, writes no sentence of its own into
//! the report, understands no question (it matches words), asks no person anything, and keeps nothing
//! between two calls. Everything that a decision needs is in the request: the objective and inputs, the
//! model's own note, and the newest results. The same request brings the same reply.
//!
//! # Example
//!
//! ```
//! use lodestep_model::{Message, Model, ModelError, Request};
//! use lodestep_offline::OfflineModel;
//! use std::task::{Context, Poll, Waker};
//!
//! let request = Request {
//!     system: "You do research.".into(),
//!     messages: vec![Message::User { text: "# Objective\nWhy do tides turn?\n".into() }.into()],
//!     tools: [].into(),
//!     max_output_tokens: 1_000,
//!     turn: 0,
//! };
//! // The answer is ready at once: nothing is waited for.
//! let answer = OfflineModel.ask(&request).as_mut().poll(&mut Context::from_waker(Waker::noop()));
//! assert!(matches!(answer, Poll::Ready(Err(ModelError::Rejected(_)))), "it needs tools to read with");
//! ```
//!
//! # Layout
//!
//! In the order in which a decision runs through them:
//!
//! - `model`: the trait, and what to do next.
//! - `view`: the request read back; `sections`: its text, line by line.
//! - `tools`: which offered tool is which.
//! - `memory`: what is known so far, as types; `note`: the same as text; `recall`: the text read back.
//! - `reading`: results into memory, and which ranges to ask for next; `page`: the two result formats.
//! - `blocks`: Markdown into paragraphs and list items, by what its `lines` are; `sentences`: those into sentences.
//! - `terms`: words, stop words, stems.
//! - `weights`: what a sentence is worth; `rank`: which ones are kept, and which are cited.
//! - `report`: the report's text.
//! - `closing`: milestones and finish; `publish`: the publishing tools.

mod blocks;
mod closing;
mod lines;
mod memory;
mod model;
mod note;
mod page;
mod publish;
mod rank;
mod reading;
mod recall;
mod report;
mod sections;
mod sentences;
mod terms;
mod tools;
mod view;
mod weights;

pub use model::OfflineModel;
