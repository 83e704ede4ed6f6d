//! What is made of bytes that a receiver answers with, whatever they are: a way in for tests, without a network.
//!
//! All but the connection is the product's own: the request, the answer read, redirects, the outcome.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use lodestep_core::definition::HttpTool;
use lodestep_core::effect::Class;
use lodestep_core::rules::settle::LookedUp;
use lodestep_core::time::Timestamp;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{Call, HttpClient};
use crate::secrets::{Environment, Removed, Scrubber};
use crate::tools::Sight;

/// A tool whose receiver answers every request, a redirect's too, with the same bytes and hangs up.
pub struct Heard<'a> {
    client: HttpClient,
    tool: &'a HttpTool,
    environment: Environment,
    scrubber: Scrubber,
    arguments: Value,
    artifacts: BTreeMap<String, Vec<u8>>,
}

impl<'a> Heard<'a> {
    /// A call without arguments, in an environment without variables.
    pub fn new(tool: &'a HttpTool, answer: &[u8]) -> Self {
        Self {
            client: HttpClient::answered_by(answer.into()),
            tool,
            environment: Environment::new(|_| None),
            scrubber: Scrubber::default(),
            arguments: json!({}),
            artifacts: BTreeMap::new(),
        }
    }

    /// What an attempt sees. `maybe_sent`: may one before it have been sent?
    pub async fn attempt(&self, class: Class, maybe_sent: bool) -> Sight {
        self.call(class, maybe_sent).attempt(std::future::pending(), &mut Removed::default()).await
    }

    /// What the tool's lookup says of an effect.
    pub async fn look_up(&self) -> LookedUp {
        self.call(Class::Checkable, true).look_up(std::future::pending(), &mut Removed::default()).await
    }

    fn call(&self, class: Class, maybe_sent: bool) -> Call<'_> {
        Call {
            client: &self.client,
            environment: &self.environment,
            scrubber: &self.scrubber,
            tool: self.tool,
            class,
            maybe_sent,
            inputs: &self.arguments,
            arguments: &self.arguments,
            artifacts: &self.artifacts,
            key: "key",
            identity: &[],
            timeout: Duration::from_secs(60),
            now: Timestamp::from_micros(1_800_000_000_000_000),
            too_late: Box::new(|| false),
        }
    }
}

/// A connection whose other end says the same whatever it is asked, once it is asked, and hangs up.
pub(super) struct Answering {
    answer: Arc<[u8]>,
    said: usize,
    is_asked: bool,
    waiting: Option<Waker>,
}

impl Answering {
    pub(super) fn new(answer: Arc<[u8]>) -> Self {
        Self { answer, said: 0, is_asked: false, waiting: None }
    }
}

impl AsyncRead for Answering {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if !self.is_asked {
            self.waiting = Some(context.waker().clone());
            return Poll::Pending;
        }
        let left = self.answer.get(self.said..).unwrap_or_default();
        let now = left.len().min(into.remaining());
        into.put_slice(&left[..now]);
        self.said += now;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Answering {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.is_asked = true;
        self.waiting.take().into_iter().for_each(Waker::wake);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
