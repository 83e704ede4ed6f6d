//! What is said of a file's faults: place, what and mend, and all at once.

use super::super::AgentFile;
use super::{Folder, check_faults};
use lodestep_core::Error;

/// The faults of a whole file, as `line: what`.
fn faults_of_file(text: &str) -> Vec<String> {
    let errors = Folder::new().load(text).expect_err(text);
    errors.faults().iter().map(|fault| format!("{}: {}", fault.line, fault.what)).collect()
}

#[test]
fn what_has_to_be_there_is_named() {
    for (text, expected) in [
        ("", &["1: the file has no `format`", "1: the file has no `agent`", "1: the file has no `model`"][..]),
        (
            r#"format = "1"
[agent]
[model]
"#,
            &[
                "1: `format` is a text",
                "2: [agent] has no `name`",
                "2: [agent] has no `objective`",
                "3: [model] has no `provider`",
            ],
        ),
        (
            r#"format = 0
agent = 1
model = "offline"
"#,
            &["1: `format` can't be 0", "2: `agent` is a whole number", "3: `model` is a text"],
        ),
        (
            r#"format = 1
[agent]
name = "A b"
objective = " "
instructions = "x"
instructions_file = "y"
[model]
provider = "offline""#,
            &[
                "3: `A b` is no name for an agent",
                "4: `agent.objective` is empty",
                "6: [agent] has both `instructions` and `instructions_file`",
            ],
        ),
        (
            "format = 1\n[agent]\nname = \"a\"\nobjective = \"o\\u0000\"\nmax_tokens = 3\nsystem = \"x\"\nobjektive = 1\n[model]\nprovider = \"offline\"",
            &[
                "4: `agent.objective` holds a NUL character",
                "5: `max_tokens` is no key of [agent]",
                "6: `system` is not what it is called here",
                "7: `objektive` is no key of [agent]",
            ],
        ),
        (
            r#"format = 1
[agent]
name = "a"
objective = "o"
[model]
provider = "anthropic"
api_key = "k"
max_tokens = 1
price = { input = 1 }"#,
            &[
                "6: the provider `anthropic` is not in this version",
                "7: `api_key` is not supported by this version",
                "8: `max_tokens` is not what it is called here",
                "9: [model.price] has no `output`",
            ],
        ),
        (
            r#"format = 1
[agent]
name = "a"
objective = "o"
[model]
provider = "script""#,
            &["5: [model] has no `name`"],
        ),
        (
            r#"format = 1
[agent]
name = "a"
objective = "o"
[model]
provider = "script"
name = "no.json""#,
            &["7: there is no script `no.json`"],
        ),
        (
            r#"format = 1
[agent]
name = "a"
objective = "o"
[model]
provider = "ofline"
context_window = 2_000
price = { input = 0.0000001, output = -1 }"#,
            &[
                r#"6: `model.provider` can't be "ofline""#,
                "7: a reply of 4096 tokens leaves no room for a request in a window of 2000",
                "8: `model.price.input` can't be 0.0000001",
                "8: `model.price.output` can't be -1",
            ],
        ),
    ] {
        assert_eq!(faults_of_file(text), expected, "{text}");
    }
}

#[test]
fn what_is_not_toml_is_named_with_its_line() {
    for (text, expected) in [
        (r#"format = 1
[agent]
name = "a"
name = "b"
"#, &["4: not TOML: duplicate key"][..]),
        ("format = 1\n[tools.a]\n[tools.a]\n", &["3: not TOML: duplicate key"]),
        ("format = 1\nname = abc\n", &["2: not TOML: string values must be quoted, expected literal string"]),
        ("format = 1\nx = [1,\n", &["2: not TOML: unclosed array, expected `]`"]),
    ] {
        assert_eq!(faults_of_file(text), expected, "{text}");
    }
}

#[test]
fn tables_and_keys_of_elsewhere_are_explained() {
    check_faults(&[
        (r#"[mcp.github]
command = "npx""#, &["1:2: `mcp` is not supported by this version | take it out"]),
        (
            "[mcpServers.x]",
            &[
                "1:2: `mcpServers` is not what it is called here | tools over MCP are not in this version; a program is `[tools.NAME] command = […]`",
            ],
        ),
        ("[quotas]", &["1:2: `quotas` is no key of the file | did you mean `quota`?"]),
        ("[[milestones]]", &["1:3: `milestones` is no key of the file | did you mean `milestone`?"]),
        (
            "[nonsense]",
            &[
                "1:2: `nonsense` is no key of the file | the keys are format, inputs, agent, model, tools, policy, quota, limits, milestone, done, test",
            ],
        ),
        (
            r#"[policy]
decide = "ask""#,
            &["1:2: `policy` is a table | write [[policy]], with two brackets, once for each"],
        ),
        (r#"[[tools]]
name = "x""#, &["1:3: `tools` is a list | write each tool as a table of its own: [tools.NAME]"]),
        (r#"[done]
check = ["sh"]"#, &["2:1: `check` is not supported by this version | take it out"]),
        (
            r#"[test]
answers = "yes"
answer = 1
ledger = []
inputs = { x = 1 }"#,
            &[
                r#"2:1: `test.answers` can't be "yes" | write one of approve, deny"#,
                "3:1: `test.answer` is a whole number | write a text in quotes",
                r#"4:1: `test.ledger` names no program | write it and its arguments: ["sh", "tools/publish.sh"]"#,
                "5:12: the agent has no input `x` | there are no inputs",
            ],
        ),
    ]);
}

#[test]
fn inputs_and_references_are_checked() {
    check_faults(&[
        (
            r#"[inputs]
"a b" = { type = "string" }
b = 1
c = {}
d = { type = "str", default = 1 }
e = { type = "integer", default = "3" }
f = { type = "path", default = "" }
g = { type = "string", required = true }"#,
            &[
                "2:1: `a b` is no name for an input | use letters, digits and _, no digit first, 64 at most",
                r#"3:1: `inputs.b` is a whole number | write a table, such as { type = "string" }"#,
                r#"4:1: [inputs.c] has no `type` | add `type = "string"`"#,
                r#"5:7: `inputs.d.type` can't be "str" | write one of string, path, integer, number, boolean"#,
                "6:25: `inputs.e.default` is a text | write a whole number, such as 3",
                r#"7:22: `inputs.f.default`: "" is no path | write a path in quotes"#,
                "8:24: `required` is no key of [inputs.g] | the keys are type, description, default",
            ],
        ),
        (
            r#"[inputs]
topic = { type = "string" }
[tools.t]
description = "d ${input:topic}"
command = ["sh", "${input:topc}", "${env:HOME}", "${arg:x}", "${nothing}", "${input:topic"]
input = { type = "object" }
env = { A = "${input:topic}", B = "${env:1}", "C-D" = "", LODESTEP_RUN = "1" }"#,
            &[
                "4:18: `${input:topic}` is not filled in here | inputs may stand in objective, instructions, and a tool's root, command and lookup",
                "5:19: `${input:topc}`: there is no input `topc` | did you mean `topic`?",
                r#"5:36: `${env:HOME}` can't stand here: its value would be pinned into the run's definition | only a tool's environment takes it: env = { HOME = "${env:HOME}" }"#,
                "5:51: `${arg:x}`: no place of an agent file takes arguments of an action yet | a program gets its arguments as JSON on stdin",
                "5:63: `${nothing}` is no reference; there are ${input:x}, ${arg:x} and ${env:X} | here may stand ${input:x}; $${ is a literal ${",
                "5:77: `${input:topic` has no closing brace; write $${ for a literal ${ | here may stand ${input:x}; $${ is a literal ${",
                "7:14: `${input:topic}`: an environment is filled in without the inputs | give the input as an argument of `command`",
                "7:36: `${env:1}` names no variable | a name has letters, digits and _, and begins with no digit",
                "7:47: `C-D` is no name for a variable | use letters, digits and _, no digit first",
                "7:59: `LODESTEP_RUN`: variables that begin with LODESTEP_ are the runtime's | give it another name",
            ],
        ),
        (
            r#"[[milestone]]
id = "m"
title = "${env:X} ${HOME}""#,
            &[
                r#"3:10: `${env:X}` can't stand here: its value would be pinned into the run's definition | only a tool's environment takes it: env = { X = "${env:X}" }"#,
            ],
        ),
    ]);
}

#[test]
fn policy_quota_plan_and_limits_are_checked() {
    const TOOL: &str = r#"[tools.publish]
description = "d"
command = ["sh"]
input = { type = "object" }
"#;
    let with_tool = |text: &str| format!("{TOOL}{text}");
    let policy = with_tool(
        r#"[[policy]]
tools = ["publsh", "note", "artifacts"]
decide = "aks"
[[policy]]
class = "unsafe"
classes = ["read"]
decide = "deny"
expires = "7d"
[[policy]]
tools = []
decide = "ask"
on_expiry = "deny"
[[policy]]
tools = ["pub*"]
classes = ["read"]
if = 1"#,
    );
    let plan = with_tool(
        "[[milestone]]\nid = \"a\"\ntitle = \"t\"\nrequires = { action = \"publsh\" }\n[[milestone]]\nid = \"a\"\ntitle = \"two\\nlines\"\nrequires = { tool = \"publish\" }\n[[milestone]]\nid = \"B\"\nrequires = { action = \"finish\" }\n[[milestone]]\nid = \"c\"\ntitle = \"t\"\nrequires = { action = \"publish\" }\n[[policy]]\ndecide = \"deny\"",
    );
    check_faults(&[
        (
            &policy,
            &[
                "6:10: no tool is called `publsh` | did you mean `publish`?",
                "6:20: `note` works on the run's own state, which no rule decides on | take it out; rules are for the tools of the file",
                "6:28: `artifacts` works on the run's own state, which no rule decides on | take it out; rules are for the tools of the file",
                r#"7:1: `policy.decide` can't be "aks" | did you mean `ask`?"#,
                "9:1: the rule has both `class` and `classes` | keep `classes`",
                r#"12:1: `policy.expires`: only a question to a person expires | write decide = "ask", or take it out"#,
                "14:1: `policy.tools` names no tool | name one, or take the key out: the rule is for all then",
                r#"16:1: the rule doesn't say when the question expires | add `expires = "7d"`"#,
                "17:1: no tool is both of these names and of these classes | drop one of the two keys",
                r#"17:1: [[policy]] has no `decide` | add `decide = "ask"`"#,
                "20:1: `if` is no key of [[policy]] | the keys are tools, classes, class, decide, expires, on_expiry",
            ],
        ),
        (
            &plan,
            &[
                "8:14: there is no tool `publsh` | did you mean `publish`?",
                "10:1: there are two milestones `a` | give one another id",
                "11:1: `milestone.title` has more than one line | write it in one",
                r#"12:1: [milestone.requires] has no `action` | add `action = "publish"`"#,
                "12:14: `tool` is no key of [milestone.requires] | the keys are action",
                r#"13:1: [[milestone]] has no `title` | add `title = "The report is published"`"#,
                "14:1: `B` is no id for a milestone | use 1 to 64 of a-z 0-9 - _",
                "15:14: `finish` ends the run, and waits for the milestones itself | name the tool that does the work",
                "19:14: the policy denies `publish`: the milestone could never be reached | change the one or the other",
            ],
        ),
        (
            r#"[done]
milestones = "all"
artifacts = ["../a", "/b", "a//b", "", "ok.md", "ok.md"]"#,
            &[
                "2:1: there is no milestone that could be reached | add a [[milestone]]",
                "3:14: `../a` is no name for an artifact | it has a part that is . or ..; use a relative name such as notes/report.md",
                "3:22: `/b` is no name for an artifact | it starts with /; use a relative name such as notes/report.md",
                "3:28: `a//b` is no name for an artifact | it has an empty part; use a relative name such as notes/report.md",
                "3:36: `` is no name for an artifact | it has an empty part; use a relative name such as notes/report.md",
                "3:49: `ok.md` is named twice | name it once",
            ],
        ),
        (r#"[done]
milestones = "some""#, &[r#"2:1: `done.milestones` can't be "some" | write "all""#]),
        (
            r#"[quota]
usd = 1.5
total_tokens = -1
model_calls = 0
tool_calls = 1.5
active_time = "2 h"
deadline = 7
max_tokens = 5"#,
            &[
                "2:1: a quota of usd needs the model's price | add `price = { input = …, output = … }` to [model], in usd per million tokens",
                "3:1: `quota.total_tokens` can't be -1 | it has to be 1 to 9007199254740992",
                "4:1: `quota.model_calls` can't be 0 | it has to be 1 to 9007199254740992",
                "5:1: `quota.tool_calls` is a number with a point | write a whole number, such as 1",
                r#"6:1: `quota.active_time`: "2 h" is no length of time | write one whole number and one unit: a text such as "500ms", "30s", "5m", "2h" or "7d""#,
                r#"7:1: `quota.deadline` is a whole number | write a text such as "500ms", "30s", "5m", "2h" or "7d""#,
                "8:1: `max_tokens` is not what it is called here | write `total_tokens`",
            ],
        ),
        (
            "[limits]\nparallel = 0\nnote_bytes = 20_000\nopen_artifacts = 200\nrecent_action = 3",
            &[
                "2:1: `limits.parallel` can't be 0 | it has to be 1 to 64",
                "3:1: `note_bytes` is 20000, more than `notes_bytes`, which is 16384 | lower `note_bytes` or raise `notes_bytes`",
                "4:1: `open_artifacts` is 200, more than `artifacts`, which is 64 | lower `open_artifacts` or raise `artifacts`",
                "5:1: `recent_action` is no key of [limits] | did you mean `recent_actions`?",
            ],
        ),
    ]);
}

#[test]
fn files_that_can_not_be_read_say_why() {
    let folder = Folder::new();
    folder.write("sub/x", "");
    folder.write("latin.toml", b"format = 1\n# \xe9");
    folder.write("large.toml", vec![b'#'; (1 << 20) + 1]);
    folder.write("newer.toml", "format = 2\nthis = is from a later time");
    for (name, code, named) in [
        ("no.toml", "agent.not_found", "there is no agent file"),
        ("latin.toml/no.toml", "agent.not_found", "there is no agent file"),
        ("sub", "agent.unreadable", "is a folder"),
        ("latin.toml", "agent.unreadable", "is not UTF-8 in line 2"),
        ("large.toml", "agent.unreadable", "1048577 bytes"),
        ("newer.toml", "agent.newer_format", "has format 2; this version reads 1"),
    ] {
        let errors = AgentFile::load(&folder.path().join(name)).expect_err(name);
        assert_eq!(errors.code(), code, "{name}");
        assert!(errors.to_string().contains(named), "{errors}");
        assert!(errors.faults().is_empty());
    }
}

#[test]
fn an_error_shows_file_line_column_what_and_mend_of_each_fault() {
    let folder = Folder::new();
    let path = folder.write(
        "agent.toml",
        r#"format = 1
agent = { name = "ä", naem = 1, objective = "o" }
[model]
provider = "offline"
"#,
    );
    let error = Error::from(AgentFile::load(&path).expect_err("two faults"));
    assert_eq!(error.code(), "agent.invalid");
    let path = path.display();
    let expected = format!(
        "{path} has 2 faults; nothing was started\n  {path}:2:11: `ä` is no name for an agent\n    use 1 to 64 of a-z 0-9 - _\n  \
         {path}:2:23: `naem` is no key of [agent]\n    did you mean `name`?"
    );
    assert_eq!(error.what(), expected);
}

#[test]
fn a_fault_in_the_instructions_is_named_at_its_own_line() {
    let folder = Folder::new();
    let instructions = folder.write("how.md", "Work.\nUse ${env:KEY} on ${input:topic}.\n");
    let text = "format = 1\nagent = { name = \r#"a", objective = "o", instructions_file = "how.md" }
model = { provider = "offline" }
"#;
    let errors = folder.load(text).expect_err("faults");
    let shown: Vec<String> =
        errors.faults().iter().map(|f| format!("{}:{}:{}", f.file.display(), f.line, f.column)).collect();
    assert_eq!(shown, [format!("{}:2:5", instructions.display()), format!("{}:2:19", instructions.display())]);
    for (content, named) in [(&b"\xff"[..], "is not UTF-8 after byte 0"), (b"a\0", "holds a NUL character")] {
        folder.write("how.md", content);
        assert!(folder.load(text).expect_err("faults").to_string().contains(named));
    }
    std::fs::remove_file(instructions).unwrap();
    assert!(folder.load(text).expect_err("faults").to_string().contains("how.md is not there"));
}
