//! One call of a model, from the request to the reply.

use std::sync::{Arc, OnceLock};

use futures_util::{Stream, StreamExt};
use lodestep_model::{Model, ModelError, ModelFuture, Progress, Reply, Request, Usage};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, Response};
use sse_stream::Sse;
use tokio::time::timeout;

use crate::body::{self, Clock};
use crate::refusal::Sent;
use crate::settings::{Dialect, Settings};
use crate::{anthropic, client, openai, refusal};

/// Gives the key where a call is sent, so that a changed one is used at once. `None` is a service that needs none.
///
/// It says in words why there is no key.
pub type Key = Arc<dyn Fn() -> Result<Option<String>, String> + Send + Sync>;

/// A model of a service.
pub struct Provider {
    settings: Settings,
    key: Key,
    client: OnceLock<Result<Client, String>>,
}

/// Who sees what comes of a stream.
type Watch<'a> = &'a (dyn Fn(Progress<'_>) + Send + Sync);

impl Provider {
    /// Nothing is connected to before the first call.
    pub fn new(settings: Settings, key: Key) -> Self {
        Self { settings, key, client: OnceLock::new() }
    }

    /// Where and how it is asked.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    async fn call(&self, request: &Request, watch: Watch<'_>) -> Result<Reply, ModelError> {
        let headers = self.headers()?;
        let has_key = headers.contains_key("x-api-key") || headers.contains_key("authorization");
        let clock = Clock::start(self.settings.patience);
        let response = self.send(headers, self.body(request), clock).await?;
        let (status, headers) = (response.status(), response.headers().clone());
        if !status.is_success() {
            let body = body::beginning(response, clock).await;
            let sent = Sent { has_key, output_limit_field: self.settings.output_limit_field() };
            return Err(refusal::of(status, &headers, &body, sent));
        }
        if kind_of(&headers).starts_with("text/html") {
            let said =
                format!("{} answers with a page of HTML: is `base_url` where the service is?", self.settings.base_url);
            return Err(ModelError::Rejected(said));
        }
        let mut reply = if is_stream(&headers) {
            assemble(&self.settings, body::events(response, clock), watch).await?
        } else {
            let body = body::whole(response, clock).await?;
            whole(&self.settings, &body)?
        };
        reply.request_id = refusal::request_id(&headers).or(reply.request_id);
        Ok(reply)
    }

    fn body(&self, request: &Request) -> Vec<u8> {
        let body = match self.settings.dialect {
            Dialect::Anthropic => anthropic::body(request, &self.settings),
            Dialect::OpenAi => openai::body(request, &self.settings),
        };
        // Encoding JSON that was built here can't fail.
        serde_json::to_vec(&body).unwrap_or_default()
    }

    fn headers(&self) -> Result<HeaderMap, ModelError> {
        let key = (self.key)().map_err(|why| ModelError::Rejected(format!("there is no key: {why}")))?;
        let secret = |text: String| {
            let mut value = HeaderValue::try_from(text)
                .map_err(|_| ModelError::Rejected("the key has characters that no header can hold".to_owned()))?;
            value.set_sensitive(true);
            Ok(value)
        };
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        match self.settings.dialect {
            Dialect::Anthropic => {
                headers.insert("anthropic-version", HeaderValue::from_static(anthropic::VERSION));
                if let Some(key) = key {
                    headers.insert("x-api-key", secret(key)?);
                }
            }
            Dialect::OpenAi => {
                if let Some(key) = key {
                    headers.insert("authorization", secret(format!("Bearer {key}"))?);
                }
            }
        }
        Ok(headers)
    }

    /// Sends a request and waits for the head of its answer.
    async fn send(&self, headers: HeaderMap, body: Vec<u8>, clock: Clock) -> Result<Response, ModelError> {
        let connect = self.settings.patience.connect;
        let client = self.client.get_or_init(|| client::client(connect));
        let client = client.as_ref().map_err(|why| ModelError::NotSent(why.clone()))?;
        let sent = client.post(self.settings.url()).headers(headers).body(body).send();
        // A whole reply has its head when it is done.
        let wait = if self.settings.stream { clock.next() } else { clock.left() };
        match timeout(wait, sent).await {
            Err(_) => Err(clock.over("answer")),
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) if error.is_connect() || error.is_builder() => Err(ModelError::NotSent(format!(
                "no connection to {}: {}. Is `base_url` where the service is, and does it run?",
                self.settings.base_url,
                told(error)
            ))),
            Ok(Err(error)) => {
                Err(ModelError::lost(format!("no answer of {}: {}", self.settings.base_url, told(error))))
            }
        }
    }
}

/// More calls than this are not read of a reply. The runtime takes a reply with far fewer for a fault as a whole.
pub(crate) const MOST_CALLS: usize = 1_000;

/// A reply that came in one piece.
pub(crate) fn whole(settings: &Settings, body: &[u8]) -> Result<Reply, ModelError> {
    match settings.dialect {
        Dialect::Anthropic => anthropic::whole(body, settings),
        Dialect::OpenAi => openai::whole(body),
    }
}

/// A reply that comes as events.
pub(crate) async fn assemble(
    settings: &Settings,
    events: impl Stream<Item = Result<Sse, ModelError>>,
    watch: Watch<'_>,
) -> Result<Reply, ModelError> {
    let mut assembly: Box<dyn Assembly> = match settings.dialect {
        Dialect::Anthropic => Box::new(anthropic::Assembled::new(settings)),
        Dialect::OpenAi => Box::<openai::Assembled>::default(),
    };
    let whole = put_together(&mut *assembly, settings.dialect, events, watch).await;
    whole.map_err(|error| error.reporting(assembly.used()))
}

async fn put_together(
    assembly: &mut dyn Assembly,
    dialect: Dialect,
    events: impl Stream<Item = Result<Sse, ModelError>>,
    watch: Watch<'_>,
) -> Result<Reply, ModelError> {
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        let Some(data) = event?.data else { continue };
        if assembly.take(&data, watch)? == Part::Last {
            return assembly.reply();
        }
    }
    let hint = match dialect {
        Dialect::Anthropic => "",
        Dialect::OpenAi => "; a server that sends none needs `stream = false`",
    };
    Err(ModelError::lost(format!("the stream ended without its end mark{hint}")))
}

/// A reply that is being put together.
pub(crate) trait Assembly: Send {
    /// Takes the data of the next event.
    fn take(&mut self, data: &str, watch: Watch<'_>) -> Result<Part, ModelError>;

    /// The reply, after [`Part::Last`].
    fn reply(&mut self) -> Result<Reply, ModelError>;

    /// What the provider has said until now that it used; zero of what it has not said.
    fn used(&self) -> Usage;
}

/// Is there more to come?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    One,
    Last,
}

impl Model for Provider {
    fn ask<'a>(&'a self, request: &'a Request) -> ModelFuture<'a> {
        self.ask_watched(request, &|_| {})
    }

    fn ask_watched<'a>(&'a self, request: &'a Request, watch: Watch<'a>) -> ModelFuture<'a> {
        Box::pin(self.call(request, watch))
    }
}

/// A server that was asked for a stream may give the whole, and the other way round.
fn is_stream(headers: &HeaderMap) -> bool {
    kind_of(headers).starts_with("text/event-stream")
}

fn kind_of(headers: &HeaderMap) -> String {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.trim_start().to_ascii_lowercase()
}

fn told(error: reqwest::Error) -> String {
    body::cause(&error.without_url())
}
