//! Tools that are HTTP requests: what they compile to, and what is said of their faults.

use lodestep_core::definition::{HttpLookup, HttpRequest, HttpTool, Sign, ToolKind};
use lodestep_core::effect::Class;
use serde_json::json;

use super::{LEAST, check_faults, sound};

#[test]
fn a_request_is_compiled_with_its_references_as_they_stand() {
    let file = sound(&format!(
        r#"{LEAST}
[inputs]
shop = {{ type = "string" }}
[tools.charge]
description = "Charge."
class = "checkable"
input = {{ type = "object", required = ["invoice"], properties = {{ invoice = {{ type = "string" }}, cents = {{ type = "integer" }} }} }}
output = {{ type = "object", required = ["id"] }}
http = {{ method = "POST", url = "${{env:BASE:-https://pay.example}}/${{input:shop}}/charges", headers = {{ Authorization = "Bearer ${{env:PAY_TOKEN}}" }}, allow_hosts = ["localhost:8080", "10.0.0.7"] }}
lookup = {{ method = "GET", url = "https://pay.example/charges/${{arg:invoice}}", headers = {{ x-key = "${{key}}${{env:OTHER}}" }}, field = "a.b", done = ["paid", 201], absent = [404], running = ["pending"] }}
"#
    ));
    let tool = file.definition.tool("charge").expect("the tool");
    let request = |method: &str, url: &str, (name, value): (&str, &str)| HttpRequest {
        method: method.to_owned(),
        url: url.to_owned(),
        headers: [(name.to_owned(), value.to_owned())].into(),
        body: None,
    };
    let word = |word: &str| Sign::Word(word.to_owned());
    let lookup = HttpLookup {
        request: request("GET", "https://pay.example/charges/${arg:invoice}", ("x-key", "${key}${env:OTHER}")),
        field: Some("a.b".to_owned()),
        done: vec![word("paid"), Sign::Status(201)],
        absent: vec![Sign::Status(404)],
        running: vec![word("pending")],
    };
    let url = "${env:BASE:-https://pay.example}/${input:shop}/charges";
    let expected = HttpTool {
        request: request("POST", url, ("authorization", "Bearer ${env:PAY_TOKEN}")),
        lookup: Some(lookup),
        allow_hosts: vec!["localhost:8080".to_owned(), "10.0.0.7".to_owned()],
    };
    assert_eq!((tool.class, &tool.kind), (Class::Checkable, &ToolKind::Http(Box::new(expected))));
    assert_eq!(tool.output, Some(json!({"type": "object", "required": ["id"]})));
    assert_eq!(file.secrets, ["PAY_TOKEN", "OTHER"]);
    let again = lodestep_core::Definition::from_bytes(&file.definition.to_bytes()).expect("it is read again");
    assert_eq!(again, file.definition);
}

#[test]
fn a_tool_on_this_machine_and_one_that_sends_an_artifacts_bytes_are_sound() {
    sound(&format!(
        r#"{LEAST}
[tools.up]
description = "Upload."
input = {{ type = "object", required = ["file"], properties = {{ file = {{ type = "artifact" }} }} }}
http = {{ method = "PUT", url = "http://localhost:9/x", body = "${{arg:file}}", allow_hosts = ["localhost"] }}
class = "idempotent"
"#
    ));
}

/// A tool with this request, in line 4.
fn with(http: &str) -> String {
    format!(
        "[tools.x]\ndescription = \"d\"\ninput = {{ type = \"object\", properties = {{ id = {{ }} }} }}\nhttp = {http}\n"
    )
}

#[test]
fn requests_are_checked() {
    let cases: [(String, &[&str]); 11] = [
        (
            with("{ method = \"get\" }"),
            &[
                r#"4:1: [tools.x.http] has no `url` | add `url = "https://api.example/v1/items"`"#,
                r#"4:10: `tools.x.http.method` can't be "get" | did you mean `GET`?"#,
            ],
        ),
        (
            with(r#"{ method = "GET", url = "api.example/x", header = { } }"#),
            &[
                r#"4:26: `tools.x.http.url`: the url has to begin with http:// or https:// | write it whole: "https://api.example/v1/items""#,
                "4:49: `header` is no key of [tools.x.http] | did you mean `headers`?",
            ],
        ),
        (
            with(r#"{ method = "GET", url = "https://${arg:id}/x" }"#),
            &[
                r#"4:26: `tools.x.http.url`: no argument may choose the host | write the host, then a /, then the argument: "https://api.example/items/${arg:id}""#,
            ],
        ),
        (
            with(r#"{ method = "GET", url = "https://x/${arg:id}" }"#),
            &[
                r#"4:26: `tools.x.http.url`: the argument `id` may be missing | add it to `required` of `input`: required = ["id"]"#,
            ],
        ),
        (
            with(r#"{ method = "GET", url = "https://x/", headers = { a = "${arg:ib}${input:y}${env:1}" } }"#),
            &[
                "4:63: `${arg:ib}`: `input` has no property `ib` | did you mean `id`?",
                "4:72: `${input:y}`: there is no input `y` | declare it: [inputs] y = { type = \"string\" }",
                "4:82: `${env:1}` names no variable | a name has letters, digits and _, and begins with no digit",
            ],
        ),
        (
            with(r#"{ method = "POST", url = "http://localhost:8080/x" }"#),
            &[
                r#"4:27: `tools.x.http.url`: localhost is no public address, and none but those that the file names are reached | add `allow_hosts = ["localhost:8080"]` to `http`"#,
            ],
        ),
        (
            with(
                r#"{ method = "POST", url = "https://x", headers = { Host = "y", "a b" = "", Idempotency-Key = "1", A = "", a = "" } }"#,
            ),
            &[
                "4:58: `Host` is a header that the runtime sets | take it out",
                "4:70: `a b` is no name for a header | use letters, digits and -",
                "4:82: `Idempotency-Key` is a header that the runtime sets | take it out",
                "4:113: the header `a` is there twice | keep one; case makes no difference",
            ],
        ),
        (
            with(r#"{ method = "GET", url = "https://x", body = "${arg:id}" }"#),
            &["4:45: `tools.x.http.body`: a GET has no body | take it out; its arguments are the query"],
        ),
        (
            with(r#"{ method = "POST", url = "https://x", body = "a ${arg:id}", allow_hosts = ["http://y/", "*.z"] }"#),
            &[
                "4:46: `tools.x.http.body` is not one argument | write body = \"${arg:NAME}\", or leave it out: then the arguments are sent as JSON",
                "4:68: `tools.x.http.allow_hosts`: \"http://y/\" is no host | write a name or an address, and a port if only that one is meant: \"localhost:8080\"",
                "4:68: `tools.x.http.allow_hosts`: \"*.z\" is no host | write a name or an address, and a port if only that one is meant: \"localhost:8080\"",
            ],
        ),
        (
            with("{ method = \"POST\", url = \"https://x\" }\ncommand = [\"sh\"]\nenv = { A = \"1\" }"),
            &["5:1: [tools.x] has both `command` and `http` | keep one of them"],
        ),
        (
            with(
                "{ method = \"POST\", url = \"https://x\" }\nenv = { A = \"1\" }\nheaders = { }\noutput = { type = 1 }",
            ),
            &[
                "5:1: `env` is no key of [tools.x] | the keys are description, class, input, timeout, http, lookup, same_by, dedupe, attempts, key_valid_for, settles_after, output, deadline",
                "6:1: `headers` is not what it is called here | they stand in `http`",
                "7:12: `tools.x.output.type` is no JSON Schema: 1 is not valid under any of the schemas listed in the 'anyOf' keyword | see json-schema.org, draft 2020-12",
            ],
        ),
    ];
    let cases: Vec<(&str, &[&str])> = cases.iter().map(|(added, expected)| (added.as_str(), *expected)).collect();
    check_faults(&cases);
}

#[test]
fn lookups_are_checked() {
    let request = r#"{ method = "POST", url = "https://x" }"#;
    let cases: [(String, &[&str]); 4] = [
        (
            with(&format!("{request}\nclass = \"checkable\"")),
            &[
                r#"1:8: [tools.x] has no `lookup` | add `lookup = { method = "GET", url = "https://…/${key}", done = [200], absent = [404] }`"#,
            ],
        ),
        (
            with(&format!("{request}\nclass = \"checkable\"\nlookup = [\"sh\"]")),
            &[
                r#"6:1: `tools.x.lookup` is a list | write a table: lookup = { method = "GET", url = "https://…/${key}", done = [200], absent = [404] }"#,
            ],
        ),
        (
            with(&format!(
                "{request}\nlookup = {{ method = \"GET\", url = \"https://x\", done = [99, \"paid\"], absent = [404] }}"
            )),
            &[
                "5:1: a tool of class unsafe is never looked up | add `class = \"checkable\"`, or take it out",
                "5:55: `tools.x.lookup.done[0]` can't be 99 | it has to be 200 to 599",
                "5:59: `tools.x.lookup.done[1]` is a word, and no `field` is named | add field = \"status\"",
            ],
        ),
        (
            with(&format!(
                "{request}\nclass = \"checkable\"\nlookup = {{ method = \"GET\", url = \"https://x\", field = \"s\", done = [200], running = [200, \"r\"] }}"
            )),
            &[
                "6:1: `tools.x.lookup` does not say what means done and what absent | write done = [200] and absent = [404], or words of a `field`",
                "6:1: `tools.x.lookup`: 200 is in two lists | keep it in one",
            ],
        ),
    ];
    let cases: Vec<(&str, &[&str])> = cases.iter().map(|(added, expected)| (added.as_str(), *expected)).collect();
    check_faults(&cases);
}
