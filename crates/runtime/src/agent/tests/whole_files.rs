//! What is said of whole files: what is missing, what is not TOML, what can't be read, and how it is shown.

use lodestep_core::Error;

use super::super::AgentFile;
use super::Folder;

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
                "5: [model] has no `name`",
                "7: `model.api_key` holds more than a reference to a variable",
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
        (
            r#"format = 1
[agent]
name = "a"
name = "b"
"#,
            &["4: not TOML: duplicate key"][..],
        ),
        ("format = 1\n[tools.a]\n[tools.a]\n", &["3: not TOML: duplicate key"]),
        ("format = 1\nname = abc\n", &["2: not TOML: string values must be quoted, expected literal string"]),
        ("format = 1\nx = [1,\n", &["2: not TOML: unclosed array, expected `]`"]),
    ] {
        assert_eq!(faults_of_file(text), expected, "{text}");
    }
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
    let text = r#"format = 1
agent = { name = "a", objective = "o", instructions_file = "how.md" }
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

#[test]
fn a_file_that_is_no_toml_at_all_is_one_fault() {
    let folder = tempfile::tempdir().expect("a folder");
    let readme = "# Title\n\nSome words of it, and more.\n\n```toml\nformat = 1\n[agent]\n```\n\n- one: two\n- three\n\nThe end of it.\n";
    let yaml = "format: 1\nagent:\n  name: x\n";
    for (text, at) in [(readme, 3), (yaml, 1), ("{\"format\": 1}\n", 1), ("print('hello')\n", 1)] {
        let path = folder.path().join("file");
        std::fs::write(&path, text).expect("written");
        let refused = lodestep_core::Error::from(crate::agent::AgentFile::load(&path).expect_err("no agent file"));
        assert_eq!(refused.code(), "agent.invalid", "{text}");
        assert!(refused.what().contains(&format!("is no agent file: it is not TOML from line {at} on")), "{refused}");
        assert_eq!(refused.what().lines().count(), 1, "{refused}");
        assert!(refused.next().contains("`lodestep init FOLDER`"), "{refused}");
    }
}
