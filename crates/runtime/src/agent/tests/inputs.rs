//! The inputs of a run: typed, complete, absolute.

use serde_json::{Value, json};

use super::{Folder, LEAST};

const INPUTS: &str = r#"[inputs]
topic = { type = "string" }
folder = { type = "path", default = "docs/../docs" }
out = { type = "path", default = "no/./such/../place" }
count = { type = "integer", default = 3 }
share = { type = "number", default = 0.5 }
loud = { type = "boolean", default = false }
"#;

fn inputs(given: &[(&str, &str)]) -> (Result<Value, lodestep_core::Error>, String, String) {
    let (home, elsewhere) = (Folder::new(), Folder::new());
    home.write("docs/a.md", "");
    elsewhere.write("mine/a.md", "");
    let file = home.load(format!("{LEAST}{INPUTS}")).unwrap();
    let given: Vec<(String, String)> = given.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    let values = file.inputs(&given, &elsewhere.path());
    (values, home.path().display().to_string(), elsewhere.path().display().to_string())
}

#[test]
fn defaults_are_of_the_file_and_what_is_given_is_of_here() {
    let (values, home, _) = inputs(&[("topic", "Pin")]);
    let expected = json!({"topic": "Pin", "folder": format!("{home}/docs"), "out": format!("{home}/no/place"),
        "count": 3, "share": 0.5, "loud": false});
    assert_eq!(values, Ok(expected));
    let given = [
        ("topic", ""),
        ("folder", "mine/../mine"),
        ("out", "/a/../b"),
        ("count", "-7"),
        ("share", "1e3"),
        ("loud", "true"),
    ];
    let (values, _, elsewhere) = inputs(&given);
    let expected = json!({"topic": "", "folder": format!("{elsewhere}/mine"), "out": "/b", "count": -7, "share": 1000.0, "loud": true});
    assert_eq!(values, Ok(expected));
}

#[test]
fn what_is_wrong_with_an_input_is_named() {
    for (given, code, what, next) in [
        (&[("topik", "x")][..], "input.unknown", "the agent has no input `topik`", "did you mean `topic`?"),
        (
            &[("x", "x")],
            "input.unknown",
            "the agent has no input `x`",
            "the inputs are topic, folder, out, count, share, loud",
        ),
        (&[], "input.missing", "needed input is missing: topic", "add -i topic=…"),
        (&[("topic", "a"), ("topic", "b")], "input.invalid", "the input `topic` is given twice", "give it once"),
        (
            &[("count", "3.5")],
            "input.invalid",
            "the input `count`: \"3.5\" is no whole number",
            "give a whole number, such as 3",
        ),
        (
            &[("count", "9007199254740993")],
            "input.invalid",
            "the input `count`: \"9007199254740993\" is beyond 2^53 and can't be held exactly",
            "give a whole number, such as 3",
        ),
        (&[("share", "NaN")], "input.invalid", "the input `share`: \"NaN\" is no number", "give a number, such as 0.5"),
        (
            &[("share", "\"1\"")],
            "input.invalid",
            "the input `share`: \"\"1\"\" is no number",
            "give a number, such as 0.5",
        ),
        (&[("loud", "yes")], "input.invalid", "the input `loud`: \"yes\" is not true or false", "give true or false"),
        (&[("folder", "")], "input.invalid", "the input `folder`: \"\" is no path", "give a path in quotes"),
    ] {
        let error = inputs(given).0.expect_err(what);
        assert_eq!((error.code(), error.what(), error.next()), (code, what, next));
    }
}

#[cfg(unix)]
#[test]
fn a_path_that_exists_is_given_without_links() {
    let folder = Folder::new();
    folder.write("true/a", "");
    std::os::unix::fs::symlink(folder.path().join("true"), folder.path().join("link")).unwrap();
    let file = folder.load(format!("{LEAST}[inputs]\np = {{ type = \"path\", default = \"link\" }}")).unwrap();
    let values = file.inputs(&[], &folder.path()).unwrap();
    assert_eq!(values["p"], folder.path().join("true").display().to_string());
}
