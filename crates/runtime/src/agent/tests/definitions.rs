//! What sound files compile to.

use std::collections::BTreeMap;

use lodestep_core::definition::{
    Decide, Done, Limits, MilestoneDefinition, ModelSpec, OnExpiry, Price, Questions, QuotaLimits, Rule, ToolKind,
};
use lodestep_core::effect::Class;
use serde_json::json;

use super::super::{InputKind, InputSpec, TestSection, state_tools};
use super::{Folder, LEAST, sound};

const FULL: &str = r#"#:schema .lodestep/agent.schema.json
format = 1

[agent]
name = "research-report"
objective = "Write a report on ${input:topic}. $${literal}"
instructions_file = "how/instructions.md"

[inputs]
topic = { type = "string", description = "What it is on." }
folder = { type = "path", default = "." }

[model]
provider = "script"
name = "how/script.json"
max_output_tokens = 1_000
context_window = 10_000
price = { input = 3.00, output = 0.000001 }
max_faulty_replies = 2
max_attempts = 7

[tools.publish]
description = "Publish the report."
command = ["sh", "publish.sh", "${input:folder}"]
input = { type = "object", required = ["title"], properties = { title = { type = "string" } } }
class = "keyed"
key_valid_for = "2h"
timeout = "20s"
deadline = "3h"
attempts = 9
env = { TOKEN = "Bearer ${env:REPORTS_TOKEN}", MODE = "${env:MODE:-draft}", AGAIN = "${env:REPORTS_TOKEN}" }
same_by = ["title"]

[tools.documents]
builtin = "documents"
root = "${input:folder}"

[tools.charge]
description = "Charge."
command = ["sh"]
lookup = ["sh", "--lookup", "${input:topic}"]
input = { type = "object" }
class = "checkable"
settles_after = "30s"

[tools.archive]
builtin = "file"
root = "out/${input:topic}"

[[policy]]
tools = ["publish", "doc*"]
decide = "ask"
expires = "7d"
on_expiry = "pause"
remind = "1d"

[questions]
expires = "9d"
on_expiry = "pause"
remind = "2d"

[[policy]]
class = "checkable"
decide = "allow"

[quota]
total_tokens = 200_000
input_tokens = 1
output_tokens = 2
usd = 2.50
model_calls = 100
tool_calls = 50
active_time = "2h"
deadline = "14d"

[[milestone]]
id = "read"
title = "Every document was read"

[[milestone]]
id = "published"
title = "Published"
requires = { action = "publish" }

[done]
milestones = "all"
artifacts = ["report.md", "data/a.csv"]
check = ["sh", "check.sh", "${input:topic}"]

[limits]
parallel = 2
recent_actions = 10

[test]
inputs = { topic = "Pin", folder = "${test:folder}/x" }
answers = "deny"
answer = "no"
ledger = ["sh", "ledger.sh", "${test:folder}"]
"#;

fn full_folder() -> Folder {
    let folder = Folder::new();
    folder.write("how/instructions.md", "Work on ${input:topic}.\n");
    folder.write("how/script.json", "[]");
    folder
}

#[test]
fn a_full_file_is_read_field_by_field() {
    let folder = full_folder();
    let file = folder.load(FULL).unwrap_or_else(|errors| panic!("{errors}"));
    let home = folder.path().display().to_string();
    assert_eq!((file.path, file.folder), (folder.path().join("agent.toml"), folder.path()));
    let input = |name: &str, kind, default, description: Option<&str>| InputSpec {
        name: name.to_owned(),
        kind,
        default,
        description: description.map(str::to_owned),
        min_length: 0,
    };
    let topic = input("topic", InputKind::String, None, Some("What it is on."));
    assert_eq!(file.inputs, [topic, input("folder", InputKind::Path, Some(json!(".")), None)]);
    assert_eq!(file.secrets, ["REPORTS_TOKEN"]);
    let definition = file.definition;
    assert_eq!(definition.name, "research-report");
    assert_eq!(definition.objective, "Write a report on ${input:topic}. $${literal}");
    assert_eq!(definition.instructions, "Work on ${input:topic}.\n");
    let model = ModelSpec {
        provider: "script".to_owned(),
        name: format!("{home}/how/script.json"),
        max_output_tokens: 1_000,
        context_window: 10_000,
        price: Some(Price { input_micro_usd: 3_000_000, output_micro_usd: 1, ..Price::default() }),
        max_faulty_replies: 2,
        max_attempts: 7,
        ..ModelSpec::default()
    };
    assert_eq!(definition.model, model);
    let rule = |tools: &[&str], classes: &[Class], decide| Rule {
        tools: tools.iter().map(|tool| (*tool).to_owned()).collect(),
        classes: classes.to_vec(),
        decide,
        expires_ms: None,
        on_expiry: OnExpiry::Deny,
        remind_ms: None,
    };
    let week = Some(7 * 86_400_000);
    let (on_expiry, remind_ms) = (OnExpiry::Pause, Some(86_400_000));
    let asks = Rule { expires_ms: week, on_expiry, remind_ms, ..rule(&["publish", "doc*"], &[], Decide::Ask) };
    let (expires_ms, remind_ms) = (Some(9 * 86_400_000), Some(2 * 86_400_000));
    assert_eq!(definition.questions, Questions { expires_ms, on_expiry, remind_ms });
    assert_eq!(definition.tool("publish").and_then(|tool| tool.deadline_ms), Some(3 * 3_600_000));
    assert_eq!(definition.policy, [asks, rule(&[], &[Class::Checkable], Decide::Allow)]);
    let quota = QuotaLimits {
        total_tokens: Some(200_000),
        input_tokens: Some(1),
        output_tokens: Some(2),
        usd_micro: Some(2_500_000),
        model_calls: Some(100),
        tool_calls: Some(50),
        active_time_ms: Some(7_200_000),
        deadline_ms: Some(14 * 86_400_000),
    };
    assert_eq!(definition.quota, quota);
    let milestone = |id: &str, title: &str, action: Option<&str>| MilestoneDefinition {
        id: id.to_owned(),
        title: title.to_owned(),
        requires_action: action.map(str::to_owned),
    };
    let published = milestone("published", "Published", Some("publish"));
    assert_eq!(definition.milestones, [milestone("read", "Every document was read", None), published]);
    let artifacts = vec!["report.md".to_owned(), "data/a.csv".to_owned()];
    let check = definition.done.check.as_ref().expect("a check");
    assert_eq!(check.argv, ["sh", "check.sh", "${input:topic}"]);
    assert_eq!(std::path::Path::new(&check.folder), folder.path(), "where the file is");
    assert_eq!(definition.done, Done { all_milestones: true, artifacts, check: Some(check.clone()) });
    assert_eq!(definition.limits, Limits { parallel: 2, recent_actions: 10, ..Limits::default() });
    let test = file.test.unwrap();
    let expected = TestSection {
        inputs: vec![("topic".to_owned(), "Pin".to_owned()), ("folder".to_owned(), "${test:folder}/x".to_owned())],
        approve: false,
        answer: "no".to_owned(),
        ledger: Some(["sh", "ledger.sh", "${test:folder}"].map(str::to_owned).to_vec()),
    };
    assert_eq!(test, expected);
    let filled = test.in_folder(std::path::Path::new("/t"));
    assert_eq!((&*filled.inputs[1].1, &*filled.ledger.unwrap()[2]), ("/t/x", "/t"));
}

#[test]
fn tools_keep_the_order_of_the_file_and_those_of_every_run_follow() {
    let folder = full_folder();
    let tools = folder.load(FULL).unwrap().definition.tools;
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let expected = [
        "publish",
        "documents_list",
        "documents_read",
        "documents_search",
        "charge",
        "archive_write",
        "note",
        "plan",
        "ask",
        "finish",
        "artifact_open",
        "artifact_close",
        "artifact_save",
        "artifact_search",
        "wait",
        "wait_for_signal",
    ];
    assert_eq!(names, expected);
    assert_eq!(tools[6..], state_tools());
}

#[test]
fn tools_are_read_field_by_field() {
    let folder = full_folder();
    let home = folder.path().display().to_string();
    let definition = folder.load(FULL).unwrap().definition;
    let publish = definition.tool("publish").unwrap();
    assert_eq!(
        (&*publish.group, &*publish.description, publish.class),
        ("publish", "Publish the report.", Class::Keyed)
    );
    let times = |name: &str| {
        let tool = definition.tool(name).unwrap();
        (tool.timeout_ms, tool.max_attempts, tool.key_valid_for_ms, tool.settles_after_ms)
    };
    assert_eq!(times("publish"), (20_000, 9, 7_200_000, 20_000));
    assert_eq!(times("charge"), (60_000, 4, 86_400_000, 30_000));
    assert_eq!(times("documents_read"), (60_000, 4, 86_400_000, 60_000));
    assert_eq!(publish.same_by, Some(vec!["title".to_owned()]));
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let env =
        [("AGAIN", "${env:REPORTS_TOKEN}"), ("MODE", "${env:MODE:-draft}"), ("TOKEN", "Bearer ${env:REPORTS_TOKEN}")];
    let kind = ToolKind::Command {
        argv: texts(&["sh", "publish.sh", "${input:folder}"]),
        lookup: None,
        env: env.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        folder: home.clone(),
    };
    assert_eq!(publish.kind, kind);
    let charge = definition.tool("charge").unwrap();
    let lookup = Some(texts(&["sh", "--lookup", "${input:topic}"]));
    let kind = ToolKind::Command { argv: texts(&["sh"]), lookup, env: BTreeMap::new(), folder: home.clone() };
    assert_eq!((&charge.kind, charge.class), (&kind, Class::Checkable));
    let builtin = |builtin: &str, function: &str, root: String| ToolKind::Builtin {
        builtin: builtin.to_owned(),
        function: function.to_owned(),
        root: Some(root),
    };
    for function in ["list", "read", "search"] {
        let tool = definition.tool(&format!("documents_{function}")).unwrap();
        assert_eq!(tool.kind, builtin("documents", function, "${input:folder}".to_owned()));
        assert_eq!((&*tool.group, tool.class), ("documents", Class::Read));
    }
    let write = definition.tool("archive_write").unwrap();
    assert_eq!(write.kind, builtin("file", "write", format!("{home}/out/${{input:topic}}")));
    assert_eq!(
        (&*write.group, write.class, &write.input["required"]),
        ("archive", Class::Idempotent, &json!(["name", "text"]))
    );
}

#[test]
fn what_is_left_out_has_its_default() {
    let text =
        format!("{LEAST}[tools.x]\ndescription = \"d\"\ncommand = [\"sh\"]\ninput = {{ type = \"object\" }}\n[test]\n");
    let file = sound(&text);
    let model = &file.definition.model;
    assert_eq!((model.max_output_tokens, model.context_window), (4_096, 32_000));
    assert_eq!((model.max_faulty_replies, model.max_attempts, model.price), (3, 5, None));
    assert_eq!(file.definition.tool("x").unwrap().class, Class::Unsafe);
    assert_eq!(file.definition.limits, Limits::default());
    assert_eq!(file.definition.quota, QuotaLimits::default());
    assert_eq!(file.definition.done, Done::default());
    let test = file.test.unwrap();
    assert_eq!((test.approve, &*test.answer, test.ledger), (true, "yes", None));
}

#[test]
fn the_same_file_gives_the_same_digest_and_instructions_are_pinned() {
    let folder = full_folder();
    let digest = || folder.load(FULL).unwrap().definition.digest();
    let before = digest();
    assert_eq!(before, digest());
    folder.write("how/instructions.md", "Work otherwise.\n");
    assert_ne!(before, digest());
    let back = lodestep_core::Definition::from_bytes(&folder.load(FULL).unwrap().definition.to_bytes()).unwrap();
    assert_eq!(back.digest(), digest());
}

#[test]
fn a_literal_root_is_absolute_and_a_folder_like_a_reference_stays_one() {
    let folder = Folder::new();
    let text = format!("{LEAST}[tools.d]\nbuiltin = \"documents\"\nroot = \"docs/../docs\"\n");
    folder.write("${input:x}/docs/a.md", "");
    let path = folder.write("${input:x}/agent.toml", &text);
    let definition = super::super::AgentFile::load(&path).unwrap().definition;
    let ToolKind::Builtin { root: Some(root), .. } = &definition.tool("d_read").unwrap().kind else { panic!("a root") };
    assert_eq!(*root, folder.path().join("$${input:x}/docs").display().to_string());
    let filled = lodestep_core::reference::with_inputs(root, &json!({"x": "elsewhere"}));
    assert_eq!(filled, folder.path().join("${input:x}/docs").display().to_string());
}

#[test]
fn every_tool_of_a_run_has_a_closed_schema_that_compiles() {
    let tools = full_folder().load(FULL).unwrap().definition.tools;
    for tool in tools {
        assert_eq!(tool.input["additionalProperties"], json!(false), "{}", tool.name);
        assert!(jsonschema::validator_for(&tool.input).is_ok(), "{}", tool.name);
        assert!(!tool.description.is_empty());
    }
}

#[test]
fn line_ends_and_a_byte_order_mark_make_no_difference() {
    let plain = sound(LEAST).definition.digest();
    assert_eq!(sound(&LEAST.replace('\n', "\r\n")).definition.digest(), plain);
    assert_eq!(sound(&format!("\u{feff}{LEAST}")).definition.digest(), plain);
}

#[test]
fn the_example_is_sound() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/research/agent.toml");
    let file = super::super::AgentFile::load(&path).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(file.definition.name, "research-report");
}
