//! The way of one request: its headers, its body, the plan, the mind, the answer. Every step writes into the bill.

use std::sync::Arc;
use std::time::Instant;

use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderMap};
use hyper::{Method, Request, Response};
use lodestep_model::{ModelError, Reply};
use serde_json::Value;

use crate::answer::{Answer, spelled};
use crate::bill::{Entry, Outcome, Tokens};
use crate::body::{Broken, Delivered, Ending, Piece, Written, until};
use crate::dialect::{Dialect, Failure, Shape};
use crate::plan::Fault;
use crate::question::{Question, Thinking};
use crate::refusal::Refusal;
use crate::server::Shared;
use crate::wire::Fate;

/// The Messages API's limit, as its errors page says of `request_too_large`. OpenAI's is no smaller.
const LARGEST_BODY_BYTES: usize = 32 << 20;
/// What is thought where a client insists on it and the server was told nothing.
const THOUGHT: &str = "This needs an answer.";

/// Answers a request. An error breaks the connection off before any byte of an answer.
pub(crate) async fn serve(
    request: Request<Incoming>,
    shared: Arc<Shared>,
    fate: Arc<Fate>,
) -> Result<Response<Written>, Broken> {
    let (head, body) = request.into_parts();
    let shape = Shape::of(head.uri.path());
    let dialect = shape.unwrap_or_else(|| guessed(&head.headers)).dialect();
    let number = shared.begin(Entry {
        shape,
        method: head.method.to_string(),
        path: head.uri.path().into(),
        streamed: false,
        outcome: Outcome::Underway,
        delivered: false,
        tokens: Tokens::default(),
        body: None,
        headers: listed(&head.headers),
        request_id: String::new(),
        came: Instant::now(),
    });
    let request_id = dialect.request_id(number);
    shared.note(number, |entry| entry.request_id.clone_from(&request_id));
    let turn = Turn { shared, fate, dialect, number, request_id, headers: head.headers };
    if head.method == Method::GET && head.uri.path() == "/v1/models" {
        return Ok(turn.models());
    }
    if shape.is_none() || head.method != Method::POST {
        return Ok(turn.refuse(&dialect.no_path(head.method.as_str(), head.uri.path())));
    }
    match turn.read(body).await {
        Ok(question) => turn.answer(question).await,
        Err(refusal) => Ok(turn.refuse(&refusal)),
    }
}

/// The shape of whoever asks for what both have, or for nothing that there is.
fn guessed(headers: &HeaderMap) -> Shape {
    if headers.contains_key("anthropic-version") || headers.contains_key("x-api-key") {
        Shape::Anthropic
    } else {
        Shape::OpenAi
    }
}

fn listed(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &hyper::header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect()
}

fn spell_half(piece: Piece) -> Piece {
    Piece { text: spelled(&piece.text), ..piece }
}

/// One request and whom it concerns.
struct Turn {
    shared: Arc<Shared>,
    fate: Arc<Fate>,
    dialect: &'static dyn Dialect,
    number: usize,
    request_id: String,
    headers: HeaderMap,
}

impl Turn {
    fn models(&self) -> Response<Written> {
        if let Err(refusal) = self.dialect.check_headers(&self.headers, &self.shared.options) {
            return self.refuse(&refusal);
        }
        self.shared.note(self.number, |entry| entry.outcome = Outcome::Answered);
        self.whole(Failure::json(200, &self.dialect.models(&self.shared.options.models)))
    }

    /// Everything that can be refused.
    async fn read(&self, body: Incoming) -> Result<Question, Refusal> {
        let options = &self.shared.options;
        self.dialect.check_headers(&self.headers, options)?;
        if body.size_hint().lower() > LARGEST_BODY_BYTES as u64 {
            return Err(self.dialect.too_large());
        }
        let bytes = Limited::new(body, LARGEST_BODY_BYTES).collect().await.map_err(|_| self.dialect.too_large())?;
        let body = serde_json::from_slice::<Value>(&bytes.to_bytes())
            .map_err(|error| self.dialect.not_json(&error.to_string()))?;
        self.shared.note(self.number, |entry| {
            entry.streamed = body["stream"] == Value::Bool(true);
            entry.body = Some(body.clone());
        });
        self.dialect.check(&body, options)?;
        let question = self.dialect.read(&body);
        if question.prompt.tokens() > options.window_tokens {
            return Err(self.dialect.too_long(question.prompt.tokens(), options.window_tokens));
        }
        Ok(question)
    }

    fn refuse(&self, refusal: &Refusal) -> Response<Written> {
        let (kind, message) = (refusal.kind, refusal.message.clone());
        self.shared.note(self.number, |entry| entry.outcome = Outcome::Refused { kind, message });
        self.refused(refusal)
    }

    fn refused(&self, refusal: &Refusal) -> Response<Written> {
        self.whole(Failure::json(refusal.status, &self.dialect.refusal(refusal, &self.request_id)))
    }

    async fn answer(&self, question: Question) -> Result<Response<Written>, Broken> {
        let fault = self.shared.book().plan.pop_front().unwrap_or(Fault::Nothing);
        if fault.is_instead_of_an_answer() {
            return self.fail(fault, &question).await;
        }
        match self.shared.options.mind.ask(&question.request).await {
            Ok(reply) => Ok(self.reply(&question, reply, fault)),
            Err(error) => Ok(self.mind_failed(&question, &error)),
        }
    }

    /// A fault instead of an answer.
    async fn fail(&self, fault: Fault, question: &Question) -> Result<Response<Written>, Broken> {
        let sent_key = self.dialect.sent_key(&self.headers);
        let failure = self.dialect.failure(&fault, sent_key, question);
        let ending = Ending::of(&fault);
        self.shared.note(self.number, |entry| entry.outcome = Outcome::Fault(fault));
        match (failure, ending) {
            (Some(failure), _) => Ok(self.whole(failure)),
            (None, Ending::Stalled) => std::future::pending().await,
            (None, Ending::Reset) => {
                self.fate.reset();
                Err(Broken)
            }
            (None, _) => Err(Broken),
        }
    }

    /// The mind's error in the shape's words. It is not the client's fault, and no refusal is counted.
    fn mind_failed(&self, question: &Question, error: &ModelError) -> Response<Written> {
        self.shared.note(self.number, |entry| entry.outcome = Outcome::Failed(error.to_string()));
        let fault = match error {
            ModelError::TooLong(_) => {
                let window = self.shared.options.window_tokens;
                return self.refused(&self.dialect.too_long(question.prompt.tokens(), window));
            }
            ModelError::Rejected(why) => return self.refused(&self.dialect.rejected(why)),
            ModelError::Busy { retry_after_ms, .. } => {
                let wait = retry_after_ms.map(|ms| ("retry-after-ms".to_owned(), ms.to_string()));
                Fault::RateLimited(wait.into_iter().collect())
            }
            ModelError::NotSent(_) => Fault::Unavailable,
            ModelError::Lost { .. } => Fault::InternalError,
        };
        let failure = self.dialect.failure(&fault, self.dialect.sent_key(&self.headers), question);
        self.whole(failure.unwrap_or_else(|| Failure::json(500, &Value::Null)))
    }

    /// A reply, spoiled by the fault, billed, and written until where the fault ends it.
    fn reply(&self, question: &Question, reply: Reply, fault: Fault) -> Response<Written> {
        let options = &self.shared.options;
        let reasoning = match question.thinking {
            Thinking::Off => None,
            Thinking::May => options.reasoning.clone(),
            Thinking::Must => Some(options.reasoning.clone().unwrap_or_else(|| THOUGHT.into())),
        };
        let mut answer = Answer::new(self.number, question, reply, reasoning);
        answer.spoil(&fault, &self.shared.book().last_ids);
        answer.usage = self.bill(question, &answer, &fault);
        let pieces = if question.streamed {
            self.dialect.stream(&answer, options)
        } else {
            self.dialect.whole(&answer, options)
        };
        let (pieces, ending) = self.break_off(pieces, &fault);
        self.shared.note(self.number, |entry| {
            entry.outcome = if fault == Fault::Nothing { Outcome::Answered } else { Outcome::Fault(fault) };
        });
        self.respond(question.streamed, pieces, ending)
    }

    /// Bills an answer, and gives what the answer says of it.
    fn bill(&self, question: &Question, answer: &Answer, fault: &Fault) -> Option<Tokens> {
        let output = match fault {
            Fault::OutputAtLimit => question.request.max_output_tokens,
            _ => answer.output_tokens(),
        };
        let hit = {
            let mut book = self.shared.book();
            if !answer.calls.is_empty() {
                book.last_ids = answer.call_ids();
            }
            self.dialect.cached(&mut book.cache, &question.prompt)
        };
        let input = question.prompt.tokens() + self.shared.options.hidden_tokens;
        let tokens = Tokens { input, output, cache_read: hit.read, cache_write: hit.write };
        self.shared.note(self.number, |entry| entry.tokens = tokens);
        (*fault != Fault::UsageOmitted).then_some(tokens)
    }

    fn break_off(&self, pieces: Vec<Piece>, fault: &Fault) -> (Vec<Piece>, Ending) {
        let is_stream = pieces.len() > 1;
        match fault {
            Fault::ErrorEvent(at) if is_stream => {
                let mut pieces = until(pieces, *at);
                pieces.push(self.dialect.error_event());
                (pieces, Ending::Whole)
            }
            Fault::Stall(at) | Fault::Cut(at) | Fault::Close(at) | Fault::Reset(at) | Fault::ErrorEvent(at) => {
                (until(pieces, *at), Ending::of(fault))
            }
            Fault::LoneSurrogate => (pieces.into_iter().map(spell_half).collect(), Ending::Whole),
            _ => (pieces, Ending::Whole),
        }
    }

    fn respond(&self, streamed: bool, pieces: Vec<Piece>, ending: Ending) -> Response<Written> {
        let kind = if streamed { "text/event-stream; charset=utf-8" } else { "application/json" };
        let body = Written::pieces(pieces, ending, Arc::clone(&self.fate), self.delivered());
        self.with_head(200, kind, &[], body)
    }

    fn whole(&self, failure: Failure) -> Response<Written> {
        let Failure { status, headers, content_type, body } = failure;
        let body = Written::whole(body, Arc::clone(&self.fate), self.delivered());
        self.with_head(status, content_type, &headers, body)
    }

    fn delivered(&self) -> Delivered {
        let (shared, number) = (Arc::clone(&self.shared), self.number);
        Box::new(move || shared.note(number, |entry| entry.delivered = true))
    }

    fn with_head(
        &self,
        status: u16,
        content_type: &'static str,
        headers: &[(String, String)],
        body: Written,
    ) -> Response<Written> {
        let mut response = Response::new(body);
        *response.status_mut() = status.try_into().unwrap_or_default();
        let head = response.headers_mut();
        head.insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(content_type));
        let id = (self.dialect.request_id_header().to_owned(), self.request_id.clone());
        for (name, value) in headers.iter().chain([&id]) {
            // A name or value that HTTP can't have is left out: the test that planned it sees that it is missing.
            if let (Ok(name), Ok(value)) = (hyper::header::HeaderName::try_from(name), value.try_into()) {
                head.insert(name, value);
            }
        }
        response
    }
}
