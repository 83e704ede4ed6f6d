//! What the two shapes differ in.

use hyper::HeaderMap;
use serde_json::Value;

use crate::answer::Answer;
use crate::body::Piece;
use crate::cache::{Cache, Hit};
use crate::options::Options;
use crate::plan::Fault;
use crate::question::Question;
use crate::refusal::{Checked, Refusal};
use crate::tokens::Prompt;
use crate::{anthropic, openai};

/// A protocol that the server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// Anthropic's Messages API.
    Anthropic,
    /// OpenAI's chat completions, and what is compatible with them.
    OpenAi,
}

/// Both shapes, whole and streamed.
pub const WAYS: [(Shape, bool); 4] =
    [(Shape::Anthropic, false), (Shape::Anthropic, true), (Shape::OpenAi, false), (Shape::OpenAi, true)];

impl Shape {
    /// The shape that this path belongs to.
    pub(crate) fn of(path: &str) -> Option<Self> {
        match path {
            "/v1/messages" => Some(Self::Anthropic),
            "/v1/chat/completions" => Some(Self::OpenAi),
            _ => None,
        }
    }

    pub(crate) fn dialect(self) -> &'static dyn Dialect {
        match self {
            Self::Anthropic => &anthropic::Messages,
            Self::OpenAi => &openai::Completions,
        }
    }
}

/// An answer that is no reply: its status, its own headers, and a body.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub content_type: &'static str,
    pub body: String,
}

impl Failure {
    pub fn json(status: u16, body: &Value) -> Self {
        Self { status, headers: Vec::new(), content_type: "application/json", body: body.to_string() }
    }

    /// A stream that is sent in one go.
    pub fn events(text: &str) -> Self {
        Self { status: 200, headers: Vec::new(), content_type: "text/event-stream", body: text.into() }
    }

    /// What does not come from the service but from something before it, in no shape.
    pub fn of_proxy(fault: &Fault) -> Option<Self> {
        let (status, content_type, body) = match fault {
            Fault::BadGateway => (502, "text/html", "<html><head><title>502 Bad Gateway</title></head></html>"),
            Fault::Unavailable => (503, "text/plain", "upstream connect error or disconnect/reset before headers"),
            Fault::NotJson => (200, "application/json", "<html><body>Welcome to the network</body></html>"),
            _ => return None,
        };
        Some(Self { status, headers: Vec::new(), content_type, body: body.into() })
    }
}

/// One shape: what it refuses, what it reads and how it writes.
pub(crate) trait Dialect: Sync {
    /// The header that names the call.
    fn request_id_header(&self) -> &'static str;
    /// The name of this call.
    fn request_id(&self, number: usize) -> String;
    /// Judges the key and what else the headers must say.
    fn check_headers(&self, headers: &HeaderMap, options: &Options) -> Checked;
    /// The key that was sent.
    fn sent_key<'a>(&self, headers: &'a HeaderMap) -> &'a str;
    /// Judges a body that is not even JSON.
    fn not_json(&self, why: &str) -> Refusal;
    /// What the mind says of a request that it rejects.
    fn rejected(&self, why: &str) -> Refusal;
    /// Judges a body that is larger than a service reads.
    fn too_large(&self) -> Refusal;
    /// Judges a path, or a method, that there is not.
    fn no_path(&self, method: &str, path: &str) -> Refusal;
    /// Judges the body: all but its length.
    fn check(&self, body: &Value, options: &Options) -> Checked;
    /// Reads a body that was checked.
    fn read(&self, body: &Value) -> Question;
    /// Judges the prompt's length.
    fn too_long(&self, tokens: u64, window: u64) -> Refusal;
    /// Asks the cache.
    fn cached(&self, cache: &mut Cache, prompt: &Prompt) -> Hit;
    /// A refusal's body.
    fn refusal(&self, refusal: &Refusal, request_id: &str) -> Value;
    /// What a fault that is no reply answers; `None` for one that breaks a connection instead.
    fn failure(&self, fault: &Fault, sent_key: &str, question: &Question) -> Option<Failure>;
    /// The answer as a whole.
    fn whole(&self, answer: &Answer, options: &Options) -> Vec<Piece>;
    /// The answer as a stream.
    fn stream(&self, answer: &Answer, options: &Options) -> Vec<Piece>;
    /// The event that ends a stream in an error.
    fn error_event(&self) -> Piece;
    /// The list of models.
    fn models(&self, names: &[String]) -> Value;
}
