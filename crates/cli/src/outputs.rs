//! The JSON Schemas of what commands print with `--json`: draft 2020-12, each whole by itself.
//!
//! A field may be added in a later version, so that unknown ones are to be passed over; none is renamed or taken away.

use lodestep::core::rules::standing::Status;
use serde_json::{Map, Value, json};

/// What `ls` prints.
pub fn ls() -> Value {
    let mut listed = row();
    field(
        &mut listed,
        "retries",
        list(
            "What is tried again.",
            object(
                "One of them.",
                &[
                    ("action", or_null(number("The action; null for a call of the model."))),
                    ("tool", or_null(text("Its tool."))),
                    ("error", text("What was last seen; empty when that is not known any more.")),
                    ("at", time("Not before this time.")),
                ],
            ),
        ),
    );
    schema("lodestep ls --json", "Runs, those that need somebody first.", list("Runs.", listed))
}

/// What `todo` prints.
pub fn todo() -> Value {
    let item = object(
        "Something that a person has to say.",
        &[
            ("kind", one_of("What it is.", &["approval", "question", "in doubt", "stopped", "quarantined"])),
            ("run", text("The run.")),
            ("agent", text("Its agent.")),
            ("labels", labels()),
            ("action", or_null(number("The action, where it is about one."))),
            ("request", or_null(digest("The name of the request, where there is one."))),
            ("what", text("What it is about, in a line.")),
            ("command", text("The command that comes next.")),
            ("then", text("What else would do, or what comes after.")),
            ("key", or_null(text("Of a doubt: the idempotency key."))),
            ("sent_at", or_null(time("Of a doubt: when its attempt was sent."))),
            ("since", time("Since when it waits.")),
            ("until", or_null(time("When it ends by itself."))),
        ],
    );
    schema("lodestep todo --json", "What waits for people.", list("Doubts, stops, then requests.", item))
}

/// What `run` prints at its end, and `resume`, `cancel` and `pause`.
pub fn run() -> Value {
    schema("lodestep run --json", "Where a run stands when the command leaves it.", standing())
}

/// What `show` prints.
pub fn show() -> Value {
    let mut shown = standing();
    let why = "Why programs of the run would not be kept from the store on this machine; null where they are, or none is started.";
    field(&mut shown, "uncaged", or_null(text(why)));
    let model = object(
        "The model that it asks; null when its definition can't be read.",
        &[
            ("provider", text("Its provider.")),
            ("name", text("Its name there, as it is written; may be empty.")),
            ("base_url", or_null(text("Where the service is, as it is written; null for the provider's own place."))),
        ],
    );
    field(&mut shown, "model", or_null(model));
    schema("lodestep show --json", "A run.", shown)
}

/// What `effects` prints.
pub fn effects() -> Value {
    let attempt = object(
        "One try.",
        &[
            ("attempt", number("Which, from 1.")),
            ("epoch", number("The epoch that sent it.")),
            ("at", micros("When its intent was committed.")),
            ("outcome", one_of("What came of it.", &["open", "answered", "not sent", "unknown"])),
        ],
    );
    let states = [
        "proposed",
        "sent",
        "done",
        "failed",
        "failed: its deadline passed",
        "in doubt",
        "denied",
        "withdrawn",
        "given up",
    ];
    let by = [
        "person",
        "answer",
        "lookup",
        "late_report",
        "same_effect",
        "core",
        "signal",
        "timer",
        "other_run",
        "deadline",
    ];
    let effect = object(
        "One effect.",
        &[
            ("action", number("The action.")),
            ("tool", text("Its tool.")),
            ("class", class()),
            ("key", text("The idempotency key.")),
            ("attempts", list("Every attempt that had an intent.", attempt)),
            ("state", one_of("What is known.", &states)),
            ("by", or_null(one_of("How it is known, when it is settled.", &by))),
            ("said_by", or_null(text("The person who said it, when it is known by one."))),
            ("reason", or_null(text("The reason that they gave for a no."))),
        ],
    );
    schema("lodestep effects --json", "The effects of a run.", list("In the order of proposal.", effect))
}

/// A line of `watch` or `worker`.
pub fn lines() -> Value {
    let line = object(
        "A transition that was committed.",
        &[
            ("run", text("The run.")),
            ("agent", text("Its agent.")),
            ("step", number("The transition's number.")),
            ("at", time("When it was committed.")),
            ("status", status()),
            ("why", text("The reasons for it, in words; may be empty.")),
            ("events", list("The names of its events.", text("A name."))),
            ("what", text("What happened, in words, or the names again where there are none.")),
        ],
    );
    let note = object("Something else that a worker says.", &[("note", text("In words."))]);
    schema(
        "a line of lodestep watch --json, or of lodestep worker --json",
        "One line.",
        json!({ "anyOf": [line, note] }),
    )
}

fn standing() -> Value {
    let reason = json!({
        "description": "Why it is where it is: one of a closed list, with what belongs to it; times in microseconds since 1970.",
        "type": "object", "required": ["reason"], "additionalProperties": true,
        "properties": { "reason": one_of("Which.", &[
            "approval", "answer", "signal", "timer", "retry", "held", "provider", "doubt", "hold", "stopped", "cancelling",
        ]) },
    });
    let elsewhere = object(
        "The same effect in another run of its lineage.",
        &[
            ("run", text("That run.")),
            ("action", number("Its action.")),
            ("result", or_null(text("What came of it, when that is known."))),
        ],
    );
    let request = object(
        "An open request.",
        &[
            ("request", digest("Its name.")),
            ("short", text("The start of its name, as it is typed.")),
            ("kind", one_of("What it asks for.", &["approval", "question"])),
            ("action", number("The action.")),
            ("tool", text("Its tool.")),
            ("class", class()),
            ("arguments", json!({ "description": "The exact arguments; null when they can't be read." })),
            ("elsewhere", or_null(elsewhere)),
            ("since", time("Since when it is asked.")),
            ("expires_at", or_null(time("When it expires."))),
            ("on_expiry", one_of("What happens then.", &["deny", "pause"])),
            ("deadline", or_null(time("The deadline of its action."))),
            ("answered", or_null(text("Why it takes no answer any more, though no worker has closed it yet."))),
        ],
    );
    let checkpoint = json!({
        "description": "The state as it is folded; times in microseconds since 1970. More fields stand in it than are named here.",
        "type": "object", "additionalProperties": true,
        "required": ["namespace", "run", "agent", "seq", "head", "phase", "pending", "recent", "plan", "notes", "artifacts", "quota"],
    });
    object(
        "A run.",
        &[
            ("run", row()),
            ("status", status()),
            ("reasons", list("Why it is where it is.", reason)),
            ("text", or_null(text("What was said when it stopped or ended."))),
            ("objective", or_null(text("Its objective; null when its definition can't be read."))),
            (
                "inputs",
                json!({ "description": "Its inputs; null when they can't be read.", "type": ["object", "null"] }),
            ),
            ("damage", list("What of it can't be read.", text("One thing."))),
            ("requests", list("Its open requests.", request)),
            ("unread", number("How many words to it no worker has read.")),
            ("checkpoint", checkpoint),
            ("state_digest", digest("The digest of that state.")),
            (
                "self_declared",
                json!({
                    "description": "Is that it is complete the model's word? Null when its definition can't be read.",
                    "type": ["boolean", "null"],
                }),
            ),
        ],
    )
}

/// A run in a listing.
fn row() -> Value {
    object(
        "A run.",
        &[
            ("run", text("Its id.")),
            ("agent", text("Its agent.")),
            ("labels", labels()),
            ("status", status()),
            ("why", text("The reasons for it, in words; may be empty.")),
            ("step", number("Its last transition.")),
            ("running", json!({ "description": "Has a living worker it?", "type": "boolean" })),
            ("due", or_null(time("When a worker is due for it."))),
            ("crashes", number("Crashes of workers since its last committed outcome.")),
            ("started_at", time("When it began.")),
            ("updated_at", time("When its last transition was committed.")),
            ("head", digest("The head of its chain.")),
        ],
    )
}

fn schema(title: &str, description: &str, mut of: Value) -> Value {
    of["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    of["title"] = json!(title);
    of["description"] = json!(description);
    of
}

fn object(description: &str, fields: &[(&str, Value)]) -> Value {
    let properties: Map<String, Value> = fields.iter().map(|(name, of)| ((*name).to_owned(), of.clone())).collect();
    let required: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    json!({ "description": description, "type": "object", "required": required, "properties": properties })
}

/// One more field of an object.
fn field(object: &mut Value, name: &str, of: Value) {
    object["properties"][name] = of;
    if let Some(required) = object["required"].as_array_mut() {
        required.push(json!(name));
    }
}

fn list(description: &str, of: Value) -> Value {
    json!({ "description": description, "type": "array", "items": of })
}

fn or_null(of: Value) -> Value {
    json!({ "anyOf": [of, { "type": "null" }] })
}

fn one_of(description: &str, words: &[&str]) -> Value {
    json!({ "description": description, "enum": words })
}

fn text(description: &str) -> Value {
    json!({ "description": description, "type": "string" })
}

fn number(description: &str) -> Value {
    json!({ "description": description, "type": "integer", "minimum": 0 })
}

fn micros(description: &str) -> Value {
    json!({ "description": format!("{description} Microseconds since 1970."), "type": "integer" })
}

fn time(description: &str) -> Value {
    json!({ "description": description, "type": "string", "pattern": "^-?[0-9]{4,}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$" })
}

fn digest(description: &str) -> Value {
    json!({ "description": description, "type": "string", "pattern": "^[0-9a-f]{64}$" })
}

fn labels() -> Value {
    json!({ "description": "Its labels.", "type": "object", "additionalProperties": { "type": "string" } })
}

fn class() -> Value {
    one_of("The class of the tool.", &["read", "idempotent", "keyed", "checkable", "unsafe"])
}

fn status() -> Value {
    json!({ "description": "Its status.", "enum": Status::ALL })
}
