//! Sound files that together have every key, and those that are published.

use std::path::{Path, PathBuf};

use super::super::Folder;

/// Agent files beside the published ones.
pub const AGENTS: &[&str] = &[
    "format = 1\nagent = { name = \"a\", objective = \"o\" }\nmodel = { provider = \"offline\" }\n",
    EVERYTHING,
    SERVICE,
    "format = 1\nagent = { name = \"a\", objective = \"o\" }\nmodel = { provider = \"anthropic\", name = \"m\" }\n",
    DEFAULTS,
];

/// A model over the network.
const SERVICE: &str = r#"
format = 1
agent = { name = "service", objective = "o" }

[model]
provider = "openai"
name = "${env:MODEL:-small}"
base_url = "http://localhost:11434/v1"
api_key = "${env:GATEWAY_KEY}"
params = { temperature = 0.2, stop = ["x"] }
output_limit_field = "max_completion_tokens"
stream = false
timeout = "20m"
idle_timeout = "5m"
context_window = 16_000
"#;

/// What the published files leave out.
const EVERYTHING: &str = r#"
format = 1

[agent]
name = "everything"
objective = "Use every key of ${input:topic}."
instructions = "Do."

[inputs]
topic = { type = "string", default = "keys", description = "What about." }
folder = { type = "path", default = "documents" }
count = { type = "integer", default = 3 }
share = { type = "number", default = 0.5 }
loud = { type = "boolean", default = false }

[model]
provider = "script"
name = "script.json"
max_output_tokens = 2_048
max_output_tokens_retry = 8_192
context_window = 16_000
max_faulty_replies = 2
max_attempts = 7
price = { input = 3.25, output = 15, cache_read = 0.3, cache_write = 3.75 }

[tools.documents]
builtin = "documents"
root = "${input:folder}"

[tools.pay]
description = "Pay."
http = { method = "POST", url = "http://localhost:8080/pay/${arg:id}", headers = { Authorization = "Bearer ${env:PAY_TOKEN}" }, body = "${arg:body}", allow_hosts = ["localhost:8080"] }
input = { type = "object", required = ["id", "body"], properties = { id = { type = "string" }, body = { type = "string" } } }
output = { type = "object" }
class = "checkable"
lookup = { method = "POST", url = "http://localhost:8080/pay/${key}", headers = { Accept = "application/json" }, body = "${arg:id}", field = "state", done = [200, "paid"], absent = [404], running = ["pending"] }
timeout = "20s"
attempts = 3
settles_after = "5m"
same_by = ["id"]
dedupe = "pay-${arg:id}"

[tools.send]
description = "Send."
http = { method = "PUT", url = "https://api.example/items" }
input = { type = "object" }
class = "keyed"

[tools.mail]
description = "Mail."
command = ["sh", "mail.sh"]
input = { type = "object", required = ["id"], properties = { id = { type = "string" } } }
output = { type = "object" }
class = "keyed"
key_valid_for = "2h"
settles_after = "1m"
dedupe = "mail-${arg:id}"
env = { MAIL_TOKEN = "${env:MAIL_TOKEN}" }

[tools.plain]
description = "Plain."
command = ["true"]
input = { type = "object" }

[tools.keyed]
description = "Keyed."
command = ["true"]
input = { type = "object" }
class = "keyed"

[tools.order]
description = "Order."
sql = { database = "shop.db", statement = "INSERT INTO orders (id) VALUES (:id)" }
input = { type = "object", required = ["id"], properties = { id = { type = "string" } } }
output = { type = "object" }
class = "checkable"
timeout = "5s"
attempts = 2
same_by = ["id"]
dedupe = "order-${arg:id}"

[tools.orders]
description = "Orders."
sql = { database = "shop.db", statement = "SELECT 1" }
input = { type = "object" }

[[policy]]
tools = ["pay"]
class = "checkable"
decide = "ask"
expires = "7d"
remind = "1d"

[[policy]]
classes = ["keyed"]
decide = "deny"

[questions]
expires = "9d"
remind = "2d"

[quota]
total_tokens = 9
input_tokens = 8
output_tokens = 7
usd = 2.50
model_calls = 6
tool_calls = 5
active_time = "2h"
deadline = "14d"

[limits]
recent_actions = 10
recent_errors = 4
note_bytes = 100
notes_bytes = 1_000
artifacts = 20
open_artifacts = 3
milestones = 5
parallel = 2
refused_finishes = 4
loop_repeats = 5
snapshot_every = 32

[[milestone]]
id = "paid"
title = "Paid"
requires = { action = "pay" }

[done]
milestones = "all"
artifacts = ["report.md"]
check = ["sh", "check.sh"]

[notify]
command = ["sh", "tell.sh"]
timeout = "5s"

[test]
inputs = { topic = "${test:folder}" }
answers = "deny"
answer = "no"
ledger = ["sh", "ledger.sh"]
"#;

/// What `EVERYTHING` says otherwise is left out here.
const DEFAULTS: &str = r#"
format = 1
agent = { name = "defaults", objective = "o" }
model = { provider = "offline" }
limits = {}
notify = { command = ["sh", "tell.sh"] }
test = {}

[tools.send]
description = "Send."
http = { method = "PUT", url = "https://api.example/items" }
input = { type = "object" }
"#;

/// Files of a place.
pub const WIRINGS: &[&str] = &[
    "",
    r#"
[env]
TOKEN = { file = "token" }
OTHER = { command = ["pass", "show", "other"], timeout = "5s" }
THIRD = { command = ["pass"] }

[agents.wired]
inputs = { folder = "documents" }

[agents.wired.tools.mail]
env = { MAIL_TOKEN = "${env:TOKEN}" }

[agents.wired.model]
base_url = "https://gateway.example/v1"
output_limit_field = "max_completion_tokens"
api_key = "${env:TOKEN}"

[agents.another.inputs]
anything = "/srv"

[notify]
command = ["sh", "tell.sh"]
"#,
    "[notify]\ncommand = [\"sh\", \"tell.sh\"]\ntimeout = \"5s\"\n",
];

/// The agent that wirings are judged by.
const WIRED: &str = r#"
format = 1
agent = { name = "wired", objective = "o" }
model = { provider = "openai", name = "small" }
inputs = { folder = { type = "path" } }

[tools.mail]
description = "Mail."
command = ["true"]
input = { type = "object" }
"#;

/// A folder in which all of these files are sound.
pub fn world() -> Folder {
    let folder = Folder::new();
    folder.write("wired.toml", WIRED);
    folder.write("documents/one.md", "one");
    folder.write("script.json", "{}");
    folder.write("instructions.md", "Do.");
    folder
}

/// The example, the templates of `init`, and the full example of the documentation.
pub fn published() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut paths: Vec<PathBuf> = Vec::new();
    for folder in ["examples", "crates/cli/templates"] {
        let entries = std::fs::read_dir(root.join(folder)).unwrap();
        paths.extend(entries.map(|entry| entry.unwrap().path().join("agent.toml")));
    }
    assert!(paths.len() >= 4, "{paths:?}");
    let mut texts: Vec<String> = paths.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
    for page in std::fs::read_dir(root.join("docs")).unwrap() {
        let page = page.unwrap().path();
        let text = if page.is_file() { std::fs::read_to_string(page).unwrap() } else { String::new() };
        let blocks = text.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default());
        texts.extend(blocks.filter(|block| block.contains("format = 1")).map(str::to_owned));
    }
    assert!(texts.len() > paths.len(), "the documentation has a full example");
    texts
}
