//! The program stores and prints no value of a secret (scenario SEC-01): every file and every command is searched.

mod support;

use std::io::{Read, Write};
use std::net::TcpListener;

use serde_json::json;
use support::*;

const HEADER_KEY: &str = "hdr-9f3kQz71Lw";
const USER_KEY: &str = "usr/Pq+55vX!2m";
const TOOL_KEY: &str = "tool~7Zr20bNc";

/// A receiver that answers every request with all that it got, as a refusal.
fn echo() -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut head = vec![0; 64 * 1024];
            let read = stream.read(&mut head).unwrap_or(0);
            let head = String::from_utf8_lossy(&head[..read]).into_owned();
            let answer = format!("HTTP/1.1 401 No\r\ncontent-length: {}\r\n\r\n{head}", head.len());
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    address
}

/// The tool's own ways to say its key; each part of it stands in a write of its own.
const LEAK: &str = r#"
printf '%s' "$TOKEN" | cut -c1-6 | tr -d '\n'
printf '%s' "$TOKEN" | cut -c7-
env | grep TOKEN
printf '%s' "$TOKEN" | od -An -tx1 | tr -d ' \n'; echo
printf 'x%s' "$TOKEN" | base64
echo "to stderr: $TOKEN" >&2
exit "$1"
"#;

#[test]
fn sec_01_no_file_and_no_command_shows_a_secret() {
    let world = World::new();
    let address = echo();
    world.write("leak.sh", LEAK);
    let program = |name: &str, status: &str| {
        format!(
            "[tools.{name}]\ndescription = \"d\"\nclass = \"read\"\ninput = {{ type = \"object\" }}\n\
             command = [\"sh\", \"leak.sh\", \"{status}\"]\nenv = {{ TOKEN = \"${{env:LODESTEP_TESTED_TOOL}}\" }}\n"
        )
    };
    let request = format!(
        "[tools.call]\ndescription = \"d\"\nclass = \"read\"\ninput = {{ type = \"object\" }}\n\
         http = {{ method = \"POST\", url = \"http://me:${{env:LODESTEP_TESTED_USER}}@{address}/\", allow_hosts = [\"127.0.0.1\"], \
         headers = {{ x-key = \"${{env:LODESTEP_TESTED_HEADER}}\" }} }}\n"
    );
    let tables = program("leak", "0") + &program("fail", "3") + &request;
    let replies = json!([
        { "text": format!("The key is {TOOL_KEY}."), "calls": [
            { "name": "leak", "arguments": {} }, { "name": "fail", "arguments": {} }, { "name": "call", "arguments": {} },
        ] },
        { "calls": [{ "name": "finish", "arguments": { "summary": format!("It was {HEADER_KEY}.") } }] },
    ]);
    let agent = world.agent(&tables, &replies);
    let run = |words: &[&str]| {
        let mut command = world.command(words);
        command.env("LODESTEP_TESTED_HEADER", HEADER_KEY).env("LODESTEP_TESTED_USER", USER_KEY);
        Said::of(command.env("LODESTEP_TESTED_TOOL", TOOL_KEY).output().expect("ran"))
    };
    let mut said = vec![run(&["run", agent.to_str().expect("a path")]).exits(0)];
    let id = world.run_id();
    for words in [&["show", &id][..], &["log", &id], &["effects", &id], &["artifacts", &id], &["ls"], &["verify"]] {
        said.push(run(words).exits(0));
        said.push(run(&[&["--json"], words].concat()).exits(0));
    }
    // What the scripted model was to say stands in the script; everything else is the program's.
    let mut all: Vec<(String, Vec<u8>)> = world
        .files()
        .into_iter()
        .filter(|path| !path.ends_with("script.json"))
        .map(|path| (path.display().to_string(), std::fs::read(&path).expect("read")))
        .collect();
    all.extend(said.iter().map(|said| ("what it said".to_owned(), format!("{}{}", said.out, said.err).into_bytes())));
    for spelled in [
        HEADER_KEY,
        USER_KEY,
        TOOL_KEY,
        "bWU6dXNyL1BxKzU1dlghMm0",
        "746f6f6c7e375a723230624e63",
        "Rvb2x+N1pyMjBiTm",
        "usr%2FPq%2B55vX%212m",
    ] {
        for (whence, bytes) in &all {
            assert!(!bytes.windows(spelled.len()).any(|window| window == spelled.as_bytes()), "{spelled} in {whence}");
        }
    }
    let log = world.lodestep(&["--json", "log", &id]).out;
    assert!(log.contains("ErrorLogged"), "{log}");
    let shown = world.lodestep(&["show", &id]).out;
    for note in
        ["LODESTEP_TESTED_TOOL 5 times", "its result held secrets, which were taken out: LODESTEP_TESTED_HEADER once"]
    {
        assert!(shown.contains(note), "{note}: {shown}");
    }
    assert!(shown.contains("secret.removed"), "{shown}");
}

#[test]
fn a_short_secret_is_refused_before_anything_is_started() {
    let world = World::new();
    let tables = "[tools.pay]\ndescription = \"d\"\ninput = { type = \"object\" }\ncommand = [\"sh\"]\n\
                  env = { A = \"${env:LODESTEP_TESTED_PIN}\", B = \"${env:LODESTEP_TESTED_MODE:-x}\" }\n";
    let agent = world.agent(tables, &json!([]));
    for words in [&["run", "--check"][..], &["run"]] {
        let mut command = world.command(&[words, &[agent.to_str().expect("a path")]].concat());
        command.env("LODESTEP_TESTED_PIN", "1234567").env("LODESTEP_TESTED_MODE", "fast");
        let refused = Said::of(command.output().expect("ran")).exits(2);
        assert!(
            refused.err.contains("LODESTEP_TESTED_PIN") && refused.err.contains("[agent.secret_short]"),
            "{refused:?}"
        );
        assert!(!refused.err.contains("1234567") && !refused.err.contains("MODE"), "{refused:?}");
    }
    assert!(!world.path().join("store.db").exists());
    let mut sound = world.command(&["run", "--check", agent.to_str().expect("a path")]);
    Said::of(sound.env("LODESTEP_TESTED_PIN", "12345678").output().expect("ran")).exits(0);
}
