//! Every question to a model, asked through the strict model server as well: the suite of tests as a test of the providers.
//!
//! Where `LODESTEP_MODELS_THROUGH` names a file, each model that is known by name is put behind a server of its own, and is
//! asked by a provider: in both dialects, streamed and whole, in turn. The answer is the model's own, so that tests see
//! no difference. The file gets a line for each question: what became of it, and whether what came back is what was said.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lodestep_core::definition::ModelSpec;
use lodestep_model::{Model, ModelError, ModelFuture, Reply, Request};
use lodestep_model_server::{Options, Server, Shape};
use lodestep_providers::{Dialect, Patience, Provider, Settings};
use serde_json::{Map, Value};

/// The variable that names the file.
const VARIABLE: &str = "LODESTEP_MODELS_THROUGH";

/// Puts a model behind a server, where that was asked for.
pub(crate) fn through(spec: &ModelSpec, model: Arc<dyn Model>) -> Arc<dyn Model> {
    let Some(told) = std::env::var_os(VARIABLE) else { return model };
    let asked = Arc::new(Asked::default());
    let mind = Mind { model, asked: asked.clone() };
    let options = Options { window_tokens: spec.context_window, ..Options::new(mind) };
    let server = Server::on_thread(options).expect("a port of loopback and a thread");
    Arc::new(Through { server, asked, turns: tokio::sync::Mutex::new(()), told: told.into() })
}

/// What is being asked, and what the model said to it. One question goes through at a time.
#[derive(Default)]
struct Asked {
    request: Mutex<Option<Request>>,
    said: Mutex<Option<Result<Reply, ModelError>>>,
}

/// The model behind the server. It is asked what was asked for: a wire carries no turn, and other ids.
struct Mind {
    model: Arc<dyn Model>,
    asked: Arc<Asked>,
}

impl Model for Mind {
    fn ask<'a>(&'a self, _: &'a Request) -> ModelFuture<'a> {
        Box::pin(async move {
            let Some(request) = lock(&self.asked.request).clone() else {
                return Err(ModelError::Rejected("nobody asks".to_owned()));
            };
            let said = self.model.ask(&request).await;
            *lock(&self.asked.said) = Some(said.clone());
            said
        })
    }
}

struct Through {
    server: Server,
    asked: Arc<Asked>,
    turns: tokio::sync::Mutex<()>,
    told: PathBuf,
}

impl Model for Through {
    fn ask<'a>(&'a self, request: &'a Request) -> ModelFuture<'a> {
        Box::pin(async move {
            let _turn = self.turns.lock().await;
            *lock(&self.asked.request) = Some(request.clone());
            *lock(&self.asked.said) = None;
            let provider = self.provider();
            let before = self.server.bill().entries.len();
            let got = provider.ask(request).await;
            let said = lock(&self.asked.said).take();
            self.tell(before, &got, said.as_ref());
            // A refused one never reached the model: it is seen by the test, too.
            said.unwrap_or(got)
        })
    }
}

impl Through {
    fn provider(&self) -> Provider {
        static ASKED: AtomicUsize = AtomicUsize::new(0);
        // Programs that ask once or twice would all begin with the same way.
        let nth = ASKED.fetch_add(1, Ordering::Relaxed) + std::process::id() as usize;
        let (dialect, shape) = match nth % 2 {
            0 => (Dialect::Anthropic, Shape::Anthropic),
            _ => (Dialect::OpenAi, Shape::OpenAi),
        };
        let settings = Settings {
            dialect,
            base_url: self.server.base_url(shape),
            model: "m".to_owned(),
            params: Map::new(),
            output_limit_field: None,
            stream: (nth / 2).is_multiple_of(2),
            patience: Patience::default(),
        };
        Provider::new(settings, Arc::new(|| Ok(Some("test-key".to_owned()))))
    }

    fn tell(&self, before: usize, got: &Result<Reply, ModelError>, said: Option<&Result<Reply, ModelError>>) {
        let bill = self.server.bill();
        let entries = &bill.entries[before..];
        let way = entries.first().map_or_else(String::new, |entry| {
            format!("{} {}", entry.path, if entry.streamed { "streamed" } else { "whole" })
        });
        let refused: Vec<String> = entries
            .iter()
            .filter(|entry| entry.refused().is_some())
            .map(|entry| format!("{:?}", entry.outcome))
            .collect();
        let differs = match (got, said) {
            (Ok(got), Some(Ok(said))) => {
                let is_whole_message = entries.iter().all(|entry| !entry.streamed && entry.path == "/v1/messages");
                difference(got, said, is_whole_message)
            }
            (_, Some(Err(_))) => None,
            (Err(error), _) => Some(format!("no reply: {error}")),
            (Ok(_), None) => Some("a reply that nobody gave".to_owned()),
        };
        let line = match (entries.len(), refused.as_slice(), differs) {
            (1, [], None) => format!("fine {way}\n"),
            (1, [], Some(how)) => format!("differs {way}: {}\n", how.replace('\n', " ")),
            (_, [], _) => format!("requests {way}: {}\n", entries.len()),
            (_, refused, _) => format!("refused {way}: {}\n", refused.join("; ").replace('\n', " ")),
        };
        let file = OpenOptions::new().create(true).append(true).open(&self.told);
        file.and_then(|mut file| file.write_all(line.as_bytes())).expect("the file that was named can be written");
    }
}

/// How what came back is not what was said. Ids are the server's own where the model gave none, and JSON may be spelled anew.
/// A whole message has a call's arguments as an object, so that what is no JSON can't be said in it and comes as an empty one.
fn difference(got: &Reply, said: &Reply, is_whole_message: bool) -> Option<String> {
    if got.text != said.text {
        return Some(format!("the text is {:?} and not {:?}", got.text, said.text));
    }
    let calls = |reply: &Reply| -> Vec<(String, Result<Value, String>)> {
        let read = |text: &str| match serde_json::from_str::<Value>(text) {
            Err(_) if is_whole_message => Ok(Value::Object(Map::new())),
            read => read.map_err(|_| text.to_owned()),
        };
        reply.calls.iter().map(|call| (call.name.clone(), read(&call.arguments))).collect()
    };
    let (calls_got, calls_said) = (calls(got), calls(said));
    (calls_got != calls_said).then(|| format!("the calls are {calls_got:?} and not {calls_said:?}"))
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
