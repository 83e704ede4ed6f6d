//! Keys that people bring along: those of later versions, and those of other systems.

/// Keys that the format has but this version does not serve, by kind of table.
const LATER: [(&str, &str); 7] = [
    ("file", "mcp"),
    ("file", "flow"),
    ("tool", "detach"),
    ("tool", "trust_annotations"),
    ("policy", "when"),
    ("milestone", "after"),
    ("test", "check"),
];

/// Keys of other systems or of another table, and what is written instead.
const FOREIGN: [(&str, &str, &str); 48] = [
    ("file", "mcpServers", "tools over MCP are not in this version; a program is `[tools.NAME] command = […]`"),
    ("file", "mcp_servers", "tools over MCP are not in this version; a program is `[tools.NAME] command = […]`"),
    ("file", "version", "the format's number is `format = 1`"),
    ("file", "name", "it stands under [agent]"),
    ("file", "objective", "it stands under [agent]"),
    ("file", "instructions", "it stands under [agent]"),
    ("file", "system", "write `instructions` under [agent]"),
    ("file", "prompt", "write `instructions` under [agent]"),
    ("file", "system_prompt", "write `instructions` under [agent]"),
    ("file", "env", "write `env` in the tool that needs it"),
    ("file", "secrets", "write `env = { KEY = \"${env:KEY}\" }` in the tool that needs it"),
    ("file", "budget", "write [quota]"),
    ("file", "permissions", "write [[policy]]"),
    ("agent", "system", "write `instructions`"),
    ("agent", "prompt", "write `instructions`"),
    ("agent", "system_prompt", "write `instructions`"),
    ("agent", "goal", "write `objective`"),
    ("agent", "task", "write `objective`"),
    ("agent", "model", "write it as a table of its own: [model]"),
    ("agent", "tools", "write each as a table of its own: [tools.NAME]"),
    ("model", "model", "write `name`"),
    ("model", "max_tokens", "write `max_output_tokens`"),
    ("model", "maxTokens", "write `max_output_tokens`"),
    ("model", "max_completion_tokens", "write `max_output_tokens`"),
    ("model", "temperature", "write `params = { temperature = … }`"),
    ("model", "top_p", "write `params = { top_p = … }`"),
    ("tool", "input_schema", "write `input`"),
    ("tool", "inputSchema", "write `input`"),
    ("tool", "parameters", "write `input`"),
    ("tool", "args", "arguments stand in `command`, after the program"),
    ("tool", "cmd", "write `command`"),
    ("tool", "retries", "write `attempts`, which counts the first one too"),
    ("tool", "idempotent", "write `class = \"idempotent\"`"),
    ("tool", "url", "write `http = { method = \"POST\", url = \"https://…\" }`"),
    ("tool", "method", "it stands in `http`"),
    ("tool", "headers", "they stand in `http`"),
    ("tool", "allow_hosts", "it stands in `http`"),
    ("tool", "output_schema", "write `output`"),
    ("tool", "outputSchema", "write `output`"),
    ("http", "uri", "write `url`"),
    ("http", "endpoint", "write `url`"),
    ("http", "query", "arguments that the url does not name are the query of GET and DELETE"),
    ("http", "json", "arguments that the url does not name are the JSON body of POST, PUT and PATCH"),
    ("http", "timeout", "it stands beside `http`, in the tool"),
    ("policy", "action", "write `decide`"),
    ("policy", "tool", "write `tools = [\"NAME\"]`"),
    ("quota", "max_tokens", "write `total_tokens`"),
    ("quota", "max_steps", "write `model_calls`"),
];

/// What is wrong with a known key of elsewhere, and its mend; nothing for a key that nobody knows.
pub(super) fn explained(kind: &str, key: &str) -> Option<(String, String)> {
    if LATER.contains(&(kind, key)) {
        return Some((format!("`{key}` is not supported by this version"), "take it out".to_owned()));
    }
    let known = FOREIGN.iter().find(|(of, name, _)| *of == kind && *name == key);
    known.map(|(_, _, instead)| (format!("`{key}` is not what it is called here"), (*instead).to_owned()))
}
