//! The ways in which the model is asked, each with an agent file of its own.

use std::fs;

use anyhow::{Context, Result};

use super::server::WINDOW;
use crate::workspace;

/// What all agents have in common.
const AGENT: &str = include_str!("agent.toml");
/// Where a long topic is taken from: English of the project's own.
const TEXT: &str = "docs/cli.md";

/// Which tool the server makes the model call.
#[derive(Clone, Copy, Debug)]
enum Choice {
    /// None: it answers in words.
    Words,
    /// Whichever it likes, one or several.
    Its,
    /// This one. Only what is given to it is the model's.
    This(&'static str),
}

/// One way to ask, and what a run of it may spend.
pub struct Trial {
    /// It names the run.
    pub name: &'static str,
    choice: Choice,
    stream: bool,
    /// As the agent file states it; the server's own is [`WINDOW`].
    window: u64,
    max_output: u64,
    topic_bytes: usize,
    model_calls: u64,
    total_tokens: u64,
}

const USUAL: Trial = Trial {
    name: "",
    choice: Choice::Its,
    stream: false,
    window: WINDOW,
    max_output: 256,
    topic_bytes: 20,
    model_calls: 7,
    total_tokens: 60_000,
};

/// Every way.
pub const TRIALS: [Trial; 17] = [
    Trial { name: "its-choice", ..USUAL },
    // Requests that fill the window.
    Trial { name: "its-choice-full", topic_bytes: 12_000, ..USUAL },
    // The server can't: it breaks the stream off.
    Trial { name: "its-choice-streamed", stream: true, ..USUAL },
    Trial { name: "words", choice: Choice::Words, ..USUAL },
    Trial { name: "words-streamed", choice: Choice::Words, stream: true, max_output: 512, ..USUAL },
    Trial { name: "words-cut", choice: Choice::Words, max_output: 16, ..USUAL },
    Trial { name: "list", choice: Choice::This("documents_list"), stream: true, ..USUAL },
    Trial { name: "search", choice: Choice::This("documents_search"), ..USUAL },
    Trial { name: "read", choice: Choice::This("documents_read"), ..USUAL },
    Trial { name: "note-streamed", choice: Choice::This("note"), stream: true, ..USUAL },
    Trial { name: "save", choice: Choice::This("artifact_save"), ..USUAL },
    Trial { name: "plan", choice: Choice::This("plan"), ..USUAL },
    Trial { name: "publish", choice: Choice::This("publish"), ..USUAL },
    Trial { name: "notify-few-tokens", choice: Choice::This("notify"), total_tokens: 9_000, ..USUAL },
    Trial { name: "finish", choice: Choice::This("finish"), ..USUAL },
    // The server refuses a request as too long: a smaller one is tried.
    Trial { name: "window-overstated", choice: Choice::This("note"), window: 16_000, topic_bytes: 24_000, ..USUAL },
    // So much too long that a smaller one does not help.
    Trial { name: "window-invented", choice: Choice::This("note"), window: 40_000, topic_bytes: 40_000, ..USUAL },
];

impl Trial {
    /// The whole agent file.
    pub fn agent_file(&self) -> String {
        let Trial { stream, window, max_output, model_calls, total_tokens, .. } = self;
        let choice = match self.choice {
            Choice::Words => String::new(),
            Choice::Its => "tool_choice = \"auto\", ".to_owned(),
            Choice::This(tool) => {
                format!("tool_choice = {{ type = \"function\", function = {{ name = \"{tool}\" }} }}, ")
            }
        };
        format!(
            "{AGENT}
[model]
provider = \"openai\"
base_url = \"${{env:LODESTEP_TRY_URL}}\"
name = \"smollm2-135m-instruct\"
context_window = {window}
max_output_tokens = {max_output}
max_faulty_replies = 5
stream = {stream}
params = {{ {choice}temperature = 1.0 }}
timeout = \"3m\"

[quota]
model_calls = {model_calls}
total_tokens = {total_tokens}
"
        )
    }

    /// What the report is to be on.
    pub fn topic(&self) -> Result<String> {
        let path = workspace::root().join(TEXT);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let end = text.floor_char_boundary(self.topic_bytes);
        Ok(text[..end].to_owned())
    }
}
