//! A tool that is an HTTP request: what is sent, and how its lookup's answer is read.
//!
//! It is data with references; what fills them in and sends it is the runtime's.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How an HTTP tool is performed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpTool {
    /// The request of an attempt.
    pub request: HttpRequest,
    /// Tells whether the effect happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lookup: Option<HttpLookup>,
    /// Hosts that may have an address of a private network, each as `host` or `host:port`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow_hosts: Vec<String>,
}

/// One request. Every text may hold `${input:…}`, `${arg:…}`, `${env:…}` and `${key}`; secrets are filled in at dispatch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpRequest {
    /// `GET`, `POST`, `PUT`, `PATCH` or `DELETE`.
    pub method: String,
    /// Where to; arguments stand behind the host only.
    pub url: String,
    /// What the file adds to the runtime's own headers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The argument whose text or bytes are the whole body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}

/// A request whose answer says what became of an effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpLookup {
    /// The request.
    pub request: HttpRequest,
    /// The field of the answer's JSON object that the words are compared with; `a.b` is `b` within `a`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// Any of these: it happened.
    pub done: Vec<Sign>,
    /// Any of these: it did not happen.
    pub absent: Vec<Sign>,
    /// Any of these: it is under way.
    pub running: Vec<Sign>,
}

/// What an answer is recognised by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Sign {
    /// The status of the answer.
    Status(u16),
    /// The text of the field, in an answer of status 2xx.
    Word(String),
}

impl HttpTool {
    /// Every text that may hold a reference to the environment.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let requests = std::iter::once(&self.request).chain(self.lookup.as_ref().map(|lookup| &lookup.request));
        requests.flat_map(|request| std::iter::once(&request.url).chain(request.headers.values())).map(String::as_str)
    }
}
