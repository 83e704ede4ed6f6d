//! The scenes in which the documents' commands are typed: a folder with an agent file, and a store with the runs that a
//! page speaks of, under the names that it gives them.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::{Said, World, root};

/// A folder in which commands are typed as they stand.
pub struct Scene {
    /// The folder.
    pub world: World,
    /// What is written in the documents, and what it stands for here: the names of requests are digests, and differ.
    stands_for: Vec<(String, String)>,
}

impl Scene {
    /// A scene by its name.
    ///
    /// # Panics
    ///
    /// When there is none of that name.
    pub fn new(name: &str) -> Self {
        let mut scene = Self { world: World::new(), stands_for: Vec::new() };
        scene.stands_for(&["SHELL"], "bash");
        scene.stands_for(&["ACTION"], "1");
        scene.world.write(".bin/.gitignore", "*\n");
        let program = env!("CARGO_BIN_EXE_lodestep");
        std::os::unix::fs::symlink(program, scene.world.path().join(".bin/lodestep")).expect("linked");
        scene.agent("agent", "importer", &format!("{PUBLISH}{}", allow("publish")), &publishing());
        match name {
            "agent" => {}
            "asking" => scene.agent("agent", "importer", PUBLISH, &publishing()),
            "waiting" => scene.waiting(),
            "crashed" => _ = scene.sh("lodestep run agent.toml --id 7k2m --crash-at run:checkpoint"),
            "done" => _ = scene.sh("lodestep run agent.toml --id 7k2m").exits(0),
            "doubt" => scene.doubt(),
            "spent" => scene.spent(),
            "todo" => scene.todo(),
            "faulty" => _ = scene.world.write("agent.toml", FAULTY),
            "checkout" => scene.checkout(),
            other => panic!("there is no scene `{other}`"),
        }
        scene
    }

    /// Types a line in a shell, in the scene's folder, where `lodestep` is the program.
    pub fn sh(&self, line: &str) -> Said {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut shell = Command::new("sh");
        shell.current_dir(self.world.path()).arg("-c").arg(line).stdin(Stdio::null());
        shell
            .env("PATH", format!("{}:{path}", self.world.path().join(".bin").display()))
            .env("HOME", self.world.path());
        shell.env("LODESTEP_USER", "ada").env_remove("LODESTEP_STORE").env_remove("LODESTEP_CAGE");
        Said::of(shell.output().expect("a shell"))
    }

    /// What is written in a document, as it is here.
    pub fn here(&self, text: &str) -> String {
        let ends = |c: char| !c.is_ascii_alphanumeric();
        let piece = |piece: &str| {
            let word = piece.trim_end_matches(ends);
            let found = self.stands_for.iter().find(|(written, _)| written == word);
            found.map_or_else(|| piece.to_owned(), |(_, real)| format!("{real}{}", &piece[word.len()..]))
        };
        text.split_inclusive(ends).map(piece).collect()
    }

    fn stands_for(&mut self, written: &[&str], real: &str) {
        self.stands_for.extend(written.iter().map(|written| ((*written).to_owned(), real.to_owned())));
    }

    /// Writes an agent file NAME.toml of which NAME.json says the replies.
    fn agent(&self, file: &str, name: &str, tables: &str, replies: &[Value]) {
        self.world.write(&format!("{file}.json"), &json!({ "replies": replies }).to_string());
        let text = format!(
            "format = 1\n[agent]\nname = \"{name}\"\nobjective = \"Follow the script.\"\ninstructions = \"Follow it.\"\n\
             [model]\nprovider = \"script\"\nname = \"{file}.json\"\n{tables}"
        );
        self.world.write(&format!("{file}.toml"), &text);
    }

    /// The short name of a run's open request.
    fn request(&self, run: &str) -> String {
        let shown: Value = serde_json::from_str(&self.sh(&format!("lodestep --json show {run}")).out).expect("JSON");
        shown["requests"][0]["short"].as_str().expect("a request").to_owned()
    }

    /// Two runs wait for approval.
    fn waiting(&mut self) {
        self.agent("agent", "importer", PUBLISH, &publishing());
        self.sh("lodestep run agent.toml --id 7k2m --label team=news").exits(3);
        self.sh("lodestep run agent.toml --id 9x4t --label team=news").exits(3);
        let (first, second) = (self.request("7k2m"), self.request("9x4t"));
        self.stands_for(&["ID"], "7k2m");
        self.stands_for(&["a7f3", "NAME"], &first);
        self.stands_for(&["09bc"], &second);
    }

    /// Nobody knows whether it was paid.
    fn doubt(&mut self) {
        self.agent("agent", "billing", &format!("{PAY}{}", allow("pay")), &[pay(), finish()]);
        self.sh("lodestep run agent.toml --id 7k2m --crash-at pay:applied");
        self.sh("lodestep resume 7k2m").exits(5);
        self.stands_for(&["14"], "1");
    }

    /// The quota of tool calls is used up.
    fn spent(&mut self) {
        let tables = format!("{PAY}{}[quota]\ntool_calls = 1\n", allow("pay"));
        let two = json!({ "calls": [pay()["calls"][0], { "name": "pay", "arguments": { "cents": 20 } }] });
        self.agent("agent", "billing", &tables, &[two, finish()]);
        self.sh("lodestep run agent.toml --id 7k2m").exits(6);
    }

    /// One run is in doubt, one waits for approval, one has stopped.
    fn todo(&mut self) {
        self.agent("doubt", "billing", &format!("{PAY}{}", allow("pay")), &[pay(), finish()]);
        self.agent("asks", "billing", PAY, &[pay(), finish()]);
        self.agent("stops", "news", "[quota]\nmodel_calls = 1\n", &publishing());
        self.sh("lodestep run doubt.toml --id d1 --crash-at pay:applied");
        self.sh("lodestep resume d1").exits(5);
        self.sh("lodestep run asks.toml --id p1").exits(3);
        self.sh("lodestep run stops.toml --id q7").exits(6);
        let request = self.request("p1");
        self.stands_for(&["928f"], &request);
    }

    /// The repository's examples, and documents of one's own.
    fn checkout(&self) {
        for name in ["agent.toml", "instructions.md", "tools/publish.sh", "tools/notify.sh", "tools/ledger.sh"] {
            let path = format!("examples/research/{name}");
            self.world.write(&path, &std::fs::read_to_string(root().join(&path)).expect("the example"));
        }
        self.world.write("path/to/documents/pins.md", "# Pins\n\nA pinned value is never moved again.\n");
    }
}

/// Notes, a report, and its publishing.
fn publishing() -> Vec<Value> {
    let notes = (1..=4).map(|number| call("note", json!({ "key": "read", "text": format!("{number} of 4") })));
    let save = call("artifact_save", json!({ "name": "report.md", "text": "Pins stay." }));
    let publish = call("publish", json!({ "title": "Pins", "body": "report.md" }));
    notes.chain([save, publish, finish()]).collect()
}

fn call(name: &str, arguments: Value) -> Value {
    json!({ "calls": [{ "name": name, "arguments": arguments }] })
}

fn pay() -> Value {
    call("pay", json!({ "cents": 10 }))
}

fn finish() -> Value {
    call("finish", json!({ "summary": "done" }))
}

fn allow(tool: &str) -> String {
    format!("[[policy]]\ntools = [\"{tool}\"]\ndecide = \"allow\"\n")
}

const PAY: &str = r#"
[tools.pay]
description = "Pay."
command = ["sh", "-c", "cat >> paid"]
input = { type = "object", required = ["cents"], properties = { cents = { type = "integer" } } }
"#;

const PUBLISH: &str = r#"
[inputs]
topic = { type = "string", default = "pins" }
[tools.publish]
description = "Publish."
command = ["sh", "-c", "cat >> published"]
input = { type = "object", required = ["title", "body"], properties = { title = { type = "string" }, body = { type = "artifact" } } }
class = "keyed"
[quota]
model_calls = 100
"#;

/// Its faults stand where docs/agent-file.md says.
const FAULTY: &str = r#"format = 1

[agent]
name = "dunning"
objective = "Remind."
instructions = "Remind them."

[model]
provider = "offline"
context_window = 32_000
# in a row
max_tokens = 4_096
max_faulty_replies = 3

[tools.mail]
description = "Mail one customer."
command = ["python3", "tools/mail.py"]
input = { type = "object" }
class = "keyed"
attempts = 4

# of one attempt
timout = "20s"

[tools.charge]
description = "Charge the customer."
command = ["python3", "tools/charge.py"]
input = { type = "object" }

[[policy]]
tools = ["chrage"]
decide = "ask"
"#;
