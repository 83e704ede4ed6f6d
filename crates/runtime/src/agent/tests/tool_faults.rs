//! What is said of the faults of tools.

use super::check_faults;

#[test]
fn tools_are_checked() {
    check_faults(&[
        (
            "[tools.x]",
            &[
                r#"1:8: [tools.x] doesn't say how it is performed | add `builtin = "documents"`, `builtin = "file"`, `command = ["sh", "tool.sh"]`, `http = { method = "POST", url = "https://…" }` or `sql = { database = "shop.db", statement = "…" }`"#,
            ],
        ),
        (
            r#"[tools.x]
builtin = "documents"
command = ["sh"]"#,
            &["2:1: [tools.x] has both `builtin` and `command` | keep one of them"],
        ),
        (
            r#"[tools.x]
builtin = "document"
root = ".""#,
            &[r#"2:1: `tools.x.builtin` can't be "document" | did you mean `documents`?"#],
        ),
        (
            r#"[tools.x]
builtin = "documents"
timeout = "3s""#,
            &[
                r#"1:8: [tools.x] has no `root` | add `root = "docs"`"#,
                "3:1: `timeout` is no key of [tools.x] | the keys are builtin, root",
            ],
        ),
        (
            r#"[tools.x]
builtin = "documents"
root = "nowhere""#,
            &["3:1: `tools.x.root`: there is no folder `nowhere` | it is looked for at ~/nowhere"],
        ),
        (
            r#"[tools.x]
builtin = "file"
root = "${input:topic}"
[inputs]
topic = { type = "string" }"#,
            &[
                r#"3:1: `tools.x.root` begins with the input `topic`, which is no path | declare it: topic = { type = "path" }"#,
            ],
        ),
        (
            r#"[tools."1 x"]
builtin = "file"
root = ".""#,
            &["1:8: `1 x` is no name for a tool | use a letter, then letters, digits, _ and -, 64 at most"],
        ),
        (
            r#"[tools.artifacts]
builtin = "file"
root = ".""#,
            &["1:8: `artifacts` is the group of the run's own artifact tools | give it another name"],
        ),
        (
            r#"[tools.d]
builtin = "documents"
root = "."
[tools.d_read]
description = "d"
command = ["sh"]
input = { type = "object" }"#,
            &["4:8: [tools.d] and [tools.d_read] both make a tool `d_read` | give one of them another name"],
        ),
        (
            r#"[tools.note]
description = "d"
command = ["sh"]
input = { type = "object" }"#,
            &["1:8: every run has a tool `note` of its own | give one of them another name"],
        ),
        (
            r#"[tools.a1234567890123456789012345678901234567890123456789012345678901]
builtin = "file"
root = ".""#,
            &[
                "2:1: its tool `a12345678901234567890123456789012345678901234567890123456789…` has a name of over 64 characters | shorten the table's name",
            ],
        ),
        (
            r#"[tools]
x = "sh""#,
            &["2:1: `tools.x` is a text | write a table: [tools.NAME] with `builtin`, `command`, `http` or `sql`"],
        ),
    ]);
}

#[test]
fn programs_are_checked() {
    check_faults(&[
        (
            r#"[tools.x]
command = "sh x.sh""#,
            &[
                r#"1:8: [tools.x] has no `description` | add `description = "Publish the finished report."`"#,
                r#"1:8: [tools.x] has no `input` | add `input = { type = "object", properties = { … } }`"#,
                r#"2:1: `tools.x.command` is a text | write a list, such as ["sh", "tools/publish.sh"]"#,
            ],
        ),
        (
            r#"[tools.x]
command = []
description = ""
input = 1
class = "save""#,
            &[
                r#"2:1: `tools.x.command` names no program | write it and its arguments: ["sh", "tools/publish.sh"]"#,
                "3:1: `tools.x.description` is empty | say what it is",
                r#"4:1: `tools.x.input` is a whole number | write a table: { type = "object", properties = { … } }"#,
                r#"5:1: `tools.x.class` can't be "save" | write one of read, idempotent, keyed, checkable, unsafe"#,
            ],
        ),
        (
            r#"[tools.x]
description = "d"
command = ["", 1]
input = { type = "object" }
timout = "1s"
inputSchema = 1
detach = true"#,
            &[
                "3:16: `tools.x.command[1]` is a whole number | write a text in quotes",
                "5:1: `timout` is no key of [tools.x] | did you mean `timeout`?",
                "6:1: `inputSchema` is not what it is called here | write `input`",
                "7:1: `detach` is not supported by this version | take it out",
            ],
        ),
        (
            r#"[tools.x]
description = "d"
command = ["sh"]
sql = { database = "d.db", statement = "SELECT 1" }
input = { type = "object" }"#,
            &["3:1: [tools.x] has both `command` and `sql` | keep one of them"],
        ),
        (
            r#"[tools.x]
description = "d"
sql = { statment = "SELECT 1" }
class = "keyed"
lookup = ["sh"]
input = { type = "object" }"#,
            &[
                r#"3:1: [tools.x.sql] has no `database` | add `database = "shop.db"`"#,
                r#"3:1: [tools.x.sql] has no `statement` | add `statement = "SELECT …"`"#,
                "3:9: `statment` is no key of [tools.x.sql] | did you mean `statement`?",
                r#"4:1: `tools.x.class` can't be "keyed" | write one of checkable, read"#,
                "5:1: `lookup` is no key of [tools.x] | the keys are sql, description, class, input, same_by, dedupe, output, timeout, attempts, deadline",
            ],
        ),
        (
            r#"[tools.x]
description = "d"
sql = { database = "d.db", statement = "UPDATE t SET a = :amuont WHERE id = ?" }
input = { type = "object", properties = { amount = { type = "integer" } } }
[tools.y]
description = "d"
sql = { database = "d.db", statement = "UPDATE t SET a = :amuont" }
input = { type = "object", properties = { amount = { type = "integer" } } }
[tools.z]
description = "d"
sql = "SELECT 1"
input = { type = "object" }"#,
            &[
                "3:28: `tools.x.sql.statement`: `?` is no parameter here; write `:name`, an argument's name | see the section on sql in docs/effects.md",
                "7:58: `:amuont`: `input` has no property `amuont` | did you mean `amount`?",
                "11:1: `tools.z.sql` is a text | write a table: { database = \"shop.db\", statement = \"INSERT INTO charge (invoice) VALUES (:invoice)\" }",
            ],
        ),
        (
            r#"[tools.x]
description = "d"
command = ["sh"]
input = { type = "object", required = ["id"], properties = { id = { type = "string" }, n = { type = "integer" } } }
dedupe = "a-${arg:idd}-${arg:n}-${arg:id}"
[tools.y]
description = "d"
command = ["sh"]
input = { type = "object" }
class = "read"
dedupe = "${input:a}${env:B}${x}""#,
            &[
                "5:13: `${arg:idd}`: `input` has no property `idd` | did you mean `id`?",
                r#"5:24: `${arg:n}` is not in `required`: without it there is no key | add it: required = ["n"]"#,
                "11:1: a tool of class read may repeat freely, so nothing makes it happen once | take it out",
                "11:11: `${input:a}`: a dedupe key is the same whatever the run was given | make it of ${arg:x}",
                "11:21: `${env:B}` can't stand here: its value would be pinned into the run's definition | a tool's environment takes it: env = { B = \"${env:B}\" }; so do url and headers of `http`",
                "11:29: `${x}` is no reference; there are ${input:x}, ${arg:x}, ${env:X} and ${key} | here may stand ${arg:x}; $${ is a literal ${",
            ],
        ),
        (
            r#"[tools.x]
description = "d"
command = ["sh"]
input = { type = "object" }
class = "checkable""#,
            &[r#"1:8: [tools.x] has no `lookup` | add `lookup = ["sh", "tool.sh", "--lookup"]`"#],
        ),
        (
            r#"[tools.x]
description = "d"
command = ["sh"]
input = { type = "object" }
class = "read"
lookup = ["sh"]
key_valid_for = "1h"
same_by = ["a"]"#,
            &[
                r#"6:1: a tool of class read is never looked up | add `class = "checkable"`, or take it out"#,
                r#"7:1: a tool of class read is never sent again under its key | add `class = "keyed"`, or take it out"#,
                "8:1: a tool of class read may repeat freely, so nothing makes two of its effects the same | take it out",
                "8:12: `input` has no property `a` | there are no properties",
            ],
        ),
        (
            r#"[tools.x]
description = "d"
command = ["sh"]
input = { type = "object", properties = { invoice = {} } }
same_by = ["invoise", "invoice", "invoice"]
timeout = "0s"
attempts = 0
settles_after = "soon""#,
            &[
                "5:12: `input` has no property `invoise` | did you mean `invoice`?",
                "5:34: `invoice` is named twice | name it once",
                r#"6:1: `tools.x.timeout` can't be "0s" | it has to be 1ms to 1d"#,
                "7:1: `tools.x.attempts` can't be 0 | it has to be 1 to 100",
                r#"8:1: `tools.x.settles_after`: "soon" is no length of time | write one whole number and one unit: a text such as "500ms", "30s", "5m", "2h" or "7d""#,
            ],
        ),
        (
            r#"[tools.x]
description = "d"
command = ["sh"]
input = { type = "object" }
same_by = []"#,
            &[
                "5:1: `tools.x.same_by` names nothing: every two effects would be the same | name a property of `input`, or take it out",
            ],
        ),
    ]);
}

#[test]
fn schemas_are_checked() {
    let input = |input: &str| {
        format!(
            r#"[tools.x]
description = "d"
command = ["sh"]
[tools.x.input]
{input}"#
        )
    };
    let table: Vec<(String, &[&str])> = vec![
        (
            input(r#"type = "string""#),
            &[r#"5:1: `tools.x.input` has to be the schema of an object | write type = "object""#],
        ),
        (
            input(r#"properties = { a = { type = "string" } }"#),
            &[r#"4:10: `tools.x.input` has to be the schema of an object | write type = "object""#],
        ),
        (
            input(
                r#"type = "object"
properties = []"#,
            ),
            &[r#"6:1: `tools.x.input.properties` is no table | write properties = { name = { type = "string" } }"#],
        ),
        (
            input(
                r#"type = "object"
required = ["titel"]
properties = { title = { type = "string" } }"#,
            ),
            &["6:13: `required` names `titel`, which is not in `properties` | did you mean `title`?"],
        ),
        (
            input(
                r#"type = "object"
properties = { a = { type = "text" } }"#,
            ),
            &[
                r#"6:22: `tools.x.input.properties.a.type` can't be "text" | the types are string, number, integer, boolean, object, array, null, artifact"#,
            ],
        ),
        (
            input(
                r#"type = "object"
properties = { a = { type = "array", items = { type = "artifact" } } }"#,
            ),
            &[
                "6:48: `tools.x.input.properties.a.items.type`: an artifact is an argument, not a part of one | make it a property of `input` itself",
            ],
        ),
        (
            input(
                r#"type = "object"
properties = { a = { "$ref" = "https://example.com/s.json" } }"#,
            ),
            &[
                "6:22: `tools.x.input.properties.a.$ref` leads out of the schema, and nothing is fetched | put it under `$defs` and write \"#/$defs/NAME\"",
            ],
        ),
        (
            input(
                r#"type = "object"
properties = { a = { pattern = "(" } }"#,
            ),
            &[
                r#"6:22: `tools.x.input.properties.a.pattern` is no JSON Schema: "(" is not a "regex" | see json-schema.org, draft 2020-12"#,
            ],
        ),
        (
            input(
                r#"type = "object"
properties = { repeat_reason = { type = "string" } }"#,
            ),
            &[
                "6:16: `repeat_reason` is an argument that the runtime adds to effects and takes out again | give it another name",
            ],
        ),
        (
            input(
                r#"type = "object"
properties = { a = { const = 9007199254740993 }, b = { default = nan }, c = { default = 2024-01-01 }, d = { description = "${env:K}" } }"#,
            ),
            &[
                "6:22: `tools.x.input.properties.a.const`: 9007199254740993 can't be held exactly | stay within 2^53",
                "6:56: `tools.x.input.properties.b.default`: nan is no number of JSON | write a finite number",
                "6:79: `tools.x.input.properties.c.default` is a date | write the date in quotes; JSON has none",
                r#"6:124: `${env:K}` can't stand here: its value would be pinned into the run's definition | a tool's environment takes it: env = { K = "${env:K}" }; so do url and headers of `http`"#,
            ],
        ),
    ];
    let table: Vec<(&str, &[&str])> = table.iter().map(|(text, expected)| (text.as_str(), *expected)).collect();
    check_faults(&table);
}

#[test]
fn a_misspelt_command_hides_nothing() {
    check_faults(&[(
        r#"[tools.x]
comand = ["sh", "x.sh"]
timeout = "soon"
class = "unsave"
[[policy]]
tools = ["x"]
decide = "ask""#,
        &[
            "1:8: [tools.x] has no `description` | add `description = \"Publish the finished report.\"`",
            "1:8: [tools.x] has no `input` | add `input = { type = \"object\", properties = { … } }`",
            "2:1: `comand` is no key of [tools.x] | did you mean `command`?",
            "3:1: `tools.x.timeout`: \"soon\" is no length of time | write one whole number and one unit: a text such as \"500ms\", \"30s\", \"5m\", \"2h\" or \"7d\"",
            r#"4:1: `tools.x.class` can't be "unsave" | did you mean `unsafe`?"#,
        ],
    )]);
}

#[test]
fn words_of_elsewhere_for_classes_and_types_are_explained() {
    let tool = |class: &str, kind: &str| {
        format!(
            "[tools.x]\ndescription = \"d\"\ncommand = [\"sh\"]\nclass = \"{class}\"\n\
             input = {{ type = \"object\", properties = {{ a = {{ type = \"{kind}\" }} }} }}"
        )
    };
    let classes = "write one of read, idempotent, keyed, checkable, unsafe; ";
    check_faults(&[
        (
            &tool("safe", "string"),
            &[&format!(
                r#"4:1: `tools.x.class` can't be "safe" | {classes}of a tool that changes nothing it is `read`"#
            )],
        ),
        (
            &tool("read-only", "string"),
            &[&format!(
                r#"4:1: `tools.x.class` can't be "read-only" | {classes}of a tool that changes nothing it is `read`"#
            )],
        ),
        (
            &tool("read", "strin"),
            &[r#"5:49: `tools.x.input.properties.a.type` can't be "strin" | did you mean `string`?"#],
        ),
        (
            &tool("read", "text"),
            &[
                r#"5:49: `tools.x.input.properties.a.type` can't be "text" | the types are string, number, integer, boolean, object, array, null, artifact"#,
            ],
        ),
        ("[inputs]\na = { type = \"strin\" }", &[r#"2:7: `inputs.a.type` can't be "strin" | did you mean `string`?"#]),
    ]);
}
