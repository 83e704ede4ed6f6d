//! A client that knows nothing of either shape: it sends bytes and says what came, and how it ended.
#![allow(dead_code, missing_docs, clippy::unwrap_used, reason = "support of tests, of which each file uses its part")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use lodestep_model::{Call, Reply, StopReason};
use lodestep_model_server::{Options, Server, Shape, mind};
use serde_json::{Value, json};

/// How an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// As its head said.
    Whole,
    /// The connection was closed before.
    Short,
    /// The connection was reset.
    Reset,
}

/// What came.
#[derive(Debug)]
pub struct Got {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub end: End,
}

impl Got {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// The events of a stream: name and data. A comment is none.
    pub fn events(&self) -> Vec<(String, String)> {
        let blocks = std::str::from_utf8(&self.body).unwrap().split("\n\n").filter(|block| !block.is_empty());
        blocks.filter(|block| !block.starts_with(':')).map(event).collect()
    }

    /// The events' data, those that are JSON.
    pub fn data(&self) -> Vec<Value> {
        self.events().iter().filter_map(|(_, data)| serde_json::from_str(data).ok()).collect()
    }
}

fn event(block: &str) -> (String, String) {
    let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().to_owned();
    (field("event: "), field("data: "))
}

/// The head of a good request.
pub fn head(shape: Shape) -> Vec<(&'static str, String)> {
    let json = ("content-type", "application/json".to_owned());
    match shape {
        Shape::Anthropic => {
            vec![("x-api-key", "test-key".into()), ("anthropic-version", "2023-06-01".into()), json]
        }
        Shape::OpenAi => vec![("authorization", "Bearer test-key".into()), json],
    }
}

pub fn path(shape: Shape) -> &'static str {
    match shape {
        Shape::Anthropic => "/v1/messages",
        Shape::OpenAi => "/v1/chat/completions",
    }
}

/// Sends a request and gives the connection.
pub fn send(server: &Server, line: &str, head: &[(&str, String)], body: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    let mut request = format!("{line} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n");
    for (name, value) in head {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    if !body.is_empty() {
        request.push_str(&format!("content-length: {}\r\n", body.len()));
    }
    request.push_str("\r\n");
    stream.write_all(&[request.as_bytes(), body].concat()).unwrap();
    stream
}

/// Reads an answer to its end.
pub fn receive(stream: TcpStream) -> Got {
    let mut reader = BufReader::new(stream);
    let mut got = Got { status: 0, headers: Vec::new(), body: Vec::new(), end: End::Short };
    let mut line = String::new();
    match reader.read_line(&mut line) {
        Ok(0) => return got,
        Ok(_) => got.status = line.split(' ').nth(1).unwrap().parse().unwrap(),
        Err(_) => return Got { end: End::Reset, ..got },
    }
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        got.headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let mut raw = Vec::new();
    let was_reset = reader.read_to_end(&mut raw).is_err();
    let (body, is_whole) = if got.header("transfer-encoding") == "chunked" {
        chunks(&raw)
    } else {
        let is_whole = got.header("content-length") == raw.len().to_string();
        (raw, is_whole)
    };
    got.body = body;
    got.end = if was_reset {
        End::Reset
    } else if is_whole {
        End::Whole
    } else {
        End::Short
    };
    got
}

fn chunks(mut raw: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    while let Some(line) = raw.windows(2).position(|two| two == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&raw[..line]).unwrap(), 16).unwrap();
        if size == 0 {
            return (body, true);
        }
        let from = line + 2;
        let to = (from + size).min(raw.len());
        body.extend(&raw[from..to]);
        raw = &raw[(to + 2).min(raw.len())..];
    }
    (body, false)
}

/// Asks with a good head.
pub fn ask(server: &Server, shape: Shape, body: &Value) -> Got {
    receive(send(server, &format!("POST {}", path(shape)), &head(shape), body.to_string().as_bytes()))
}

/// The least that is a good request.
pub fn question(shape: Shape, streamed: bool) -> Value {
    let mut body = json!({"model": "m", "max_tokens": 4096, "messages": [{"role": "user", "content": "Hi"}]});
    if streamed {
        body["stream"] = json!(true);
        if shape == Shape::OpenAi {
            body["stream_options"] = json!({"include_usage": true});
        }
    }
    body
}

/// Arguments that are hard to read piece by piece.
pub const ARGUMENTS: &str = r#"{"path":"a\\b\nc","mark":"\u00e9 \ud83e\udd80 ☃"}"#;

/// A text beyond ASCII.
pub const TEXT: &str = "I look: naïve ☃ and 🦀, then more words.";

/// A reply of a text and two calls.
pub fn reply() -> Reply {
    let call = |id: &str, arguments: &str| Call { id: id.into(), name: "look".into(), arguments: arguments.into() };
    Reply {
        text: TEXT.into(),
        calls: vec![call("call_1", ARGUMENTS), call("call_2", "{}")],
        stop: StopReason::ToolCalls,
        ..Reply::default()
    }
}

/// A server that always gives [`reply`].
pub fn server() -> Server {
    Server::on_thread(Options::new(mind::from_fn(|_| Ok(reply())))).unwrap()
}

/// What an answer says, put together: its text, its calls (id, name, arguments), why it stopped.
pub fn said(shape: Shape, streamed: bool, got: &Got) -> (String, Vec<(String, String, String)>, String) {
    match (shape, streamed) {
        (Shape::Anthropic, false) => anthropic_whole(&got.json()),
        (Shape::Anthropic, true) => anthropic_stream(&got.data()),
        (Shape::OpenAi, false) => openai_whole(&got.json()),
        (Shape::OpenAi, true) => openai_stream(&got.data()),
    }
}

type Said = (String, Vec<(String, String, String)>, String);

fn word(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn anthropic_whole(message: &Value) -> Said {
    let (mut text, mut calls) = (String::new(), Vec::new());
    for block in message["content"].as_array().unwrap() {
        match block["type"].as_str().unwrap() {
            "text" => text.push_str(block["text"].as_str().unwrap()),
            "tool_use" => calls.push((word(&block["id"]), word(&block["name"]), block["input"].to_string())),
            _ => {}
        }
    }
    (text, calls, word(&message["stop_reason"]))
}

fn anthropic_stream(events: &[Value]) -> Said {
    let (mut text, mut calls, mut stop) = (String::new(), Vec::<(String, String, String)>::new(), String::new());
    for event in events {
        match event["type"].as_str().unwrap_or_default() {
            "content_block_start" if event["content_block"]["type"] == "tool_use" => {
                let block = &event["content_block"];
                calls.push((word(&block["id"]), word(&block["name"]), String::new()));
            }
            "content_block_delta" => {
                text.push_str(event["delta"]["text"].as_str().unwrap_or_default());
                if let Some(piece) = event["delta"]["partial_json"].as_str() {
                    calls.last_mut().unwrap().2.push_str(piece);
                }
            }
            "message_delta" => stop = word(&event["delta"]["stop_reason"]),
            _ => {}
        }
    }
    (text, calls, stop)
}

fn openai_whole(completion: &Value) -> Said {
    let choice = &completion["choices"][0];
    let calls = choice["message"]["tool_calls"].as_array().cloned().unwrap_or_default();
    let call =
        |call: &Value| (word(&call["id"]), word(&call["function"]["name"]), word(&call["function"]["arguments"]));
    (word(&choice["message"]["content"]), calls.iter().map(call).collect(), word(&choice["finish_reason"]))
}

fn openai_stream(chunks: &[Value]) -> Said {
    let (mut text, mut calls, mut stop) = (String::new(), Vec::<(String, String, String)>::new(), String::new());
    for choice in chunks.iter().map(|chunk| &chunk["choices"][0]) {
        text.push_str(choice["delta"]["content"].as_str().unwrap_or_default());
        for call in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
            if call["id"].is_string() {
                calls.push((word(&call["id"]), word(&call["function"]["name"]), String::new()));
            }
            let at = call["index"].as_u64().map_or(calls.len() - 1, |index| index as usize);
            calls[at].2.push_str(call["function"]["arguments"].as_str().unwrap());
        }
        if let Some(reason) = choice["finish_reason"].as_str() {
            stop = reason.into();
        }
    }
    (text, calls, stop)
}
