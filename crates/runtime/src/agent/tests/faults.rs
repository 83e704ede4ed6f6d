//! What is said of the faults of tables other than tools: place, what and mend.

use super::check_faults;

#[test]
fn tables_and_keys_of_elsewhere_are_explained() {
    check_faults(&[
        (
            r#"[mcp.github]
command = "npx""#,
            &["1:2: `mcp` is not supported by this version | take it out"],
        ),
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
                "1:2: `nonsense` is no key of the file | the keys are format, inputs, agent, model, tools, policy, quota, questions, limits, notify, milestone, done, test",
            ],
        ),
        (
            r#"[policy]
decide = "ask""#,
            &["1:2: `policy` is a table | write [[policy]], with two brackets, once for each"],
        ),
        (
            r#"[[tools]]
name = "x""#,
            &["1:3: `tools` is a list | write each tool as a table of its own: [tools.NAME]"],
        ),
        (
            r#"[test]
check = ["sh"]"#,
            &["2:1: `check` is not supported by this version | take it out"],
        ),
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
                "8:24: `required` is no key of [inputs.g] | the keys are type, description, min_length, default",
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
                "4:18: `${input:topic}` is not filled in here | inputs may stand in objective, instructions, and a tool's root, command, http and lookup",
                "5:19: `${input:topc}`: there is no input `topc` | did you mean `topic`?",
                r#"5:36: `${env:HOME}` can't stand here: its value would be pinned into the run's definition | a tool's environment takes it: env = { HOME = "${env:HOME}" }; so do url and headers of `http`"#,
                "5:51: `${arg:x}`: arguments stand only in `dedupe`, and in url, headers and body of `http` | a program gets its arguments as JSON on stdin",
                "5:63: `${nothing}` is no reference; there are ${input:x}, ${arg:x}, ${env:X} and ${key} | here may stand ${input:x}; $${ is a literal ${",
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
                r#"3:10: `${env:X}` can't stand here: its value would be pinned into the run's definition | a tool's environment takes it: env = { X = "${env:X}" }; so do url and headers of `http`"#,
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
if = 1
[[policy]]
decide = "allow"
remind = "1d"
[questions]
on_expiry = "deny"
remnd = "1d"
[[policy]]
decide = "ask"
expires = "1d"
remind = "1d""#,
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
                "20:1: `if` is no key of [[policy]] | the keys are tools, classes, class, decide, expires, on_expiry, remind",
                r#"23:1: `policy.remind`: only a question to a person is reminded of | write decide = "ask", or take it out"#,
                r#"25:1: the table doesn't say when the question expires | add `expires = "7d"`"#,
                "26:1: `remnd` is no key of [questions] | did you mean `remind`?",
                "30:1: the question expires before anybody is reminded of it | remind earlier, or take it out",
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
        (
            r#"[done]
milestones = "some""#,
            &[r#"2:1: `done.milestones` can't be "some" | write "all""#],
        ),
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
