//! What is asked at a terminal: how a prompt ends, and what of it counts. And what a run does whose readers have gone away.

mod support;

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::json;
use support::*;

fn paying(world: &World, tables: &str) -> String {
    let pay = "[tools.pay]\ndescription = \"Pay.\"\ncommand = [\"sh\", \"-c\", \"echo paid >> paid\"]\n\
               input = { type = \"object\" }\nclass = \"unsafe\"\n";
    let replies = json!([
        { "calls": [{ "name": "pay" }] },
        { "calls": [{ "name": "finish", "arguments": { "summary": "over" } }] },
    ]);
    world.agent(&format!("{pay}{tables}"), &replies).to_str().expect("a path").to_owned()
}

/// A process at a terminal of its own.
struct AtTerminal {
    running: Running,
    keys: File,
    shown: Arc<Mutex<String>>,
    reader: JoinHandle<()>,
}

impl AtTerminal {
    fn start(world: &World, words: &[&str]) -> Self {
        let keys = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&keys).expect("granted");
        unlockpt(&keys).expect("unlocked");
        let name = ptsname(&keys, Vec::new()).expect("its name");
        let screen = rustix::fs::open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("opened");
        let screen = File::from(screen);
        let mut command = world.command(words);
        let its = || Stdio::from(screen.try_clone().expect("cloned"));
        command.stdin(its()).stdout(its()).stderr(its());
        let running = Running { child: command.spawn().expect("started") };
        let keys = File::from(keys);
        let shown = Arc::new(Mutex::new(String::new()));
        let (mut reader, text) = (keys.try_clone().expect("cloned"), shown.clone());
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                text.lock().expect("whole").push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        Self { running, keys, shown, reader }
    }

    fn shown(&self) -> String {
        self.shown.lock().expect("whole").clone()
    }

    fn shows(&self, wanted: &str) {
        eventually(wanted, Duration::from_secs(20), || self.shown().contains(wanted));
    }

    fn types(&mut self, line: &str) {
        self.keys.write_all(format!("{line}\n").as_bytes()).expect("typed");
    }

    fn ends(&mut self, within: Duration, code: i32) {
        eventually("it ended", within, || self.running.has_ended());
        // Nobody has the terminal any more: what was written last is read, and then no more comes.
        eventually("its last words", Duration::from_secs(20), || self.reader.is_finished());
        assert_eq!(self.running.ended(), Some(code), "{}", self.shown());
    }
}

#[test]
fn a_stop_ends_the_prompt_and_what_is_typed_after_it_is_no_answer() {
    let world = World::new();
    let agent = paying(&world, "");
    let mut person = AtTerminal::start(&world, &["run", &agent]);
    person.shows("approve? ");
    let told = Instant::now();
    person.running.tell_to_stop();
    person.shows("stopping: ");
    person.types("y");
    person.ends(Duration::from_secs(2), 130);
    assert!(told.elapsed() < Duration::from_secs(2), "{:?}", told.elapsed());
    assert!(person.shown().contains("handed over at step"), "{}", person.shown());
    let shown = world.json(&["show", &world.run_id()]);
    assert_eq!((shown["unread"].as_u64(), world.requests().len()), (Some(0), 1), "{shown}");
    assert_eq!(world.read("paid"), "");
    // While the reason of a denial is asked for, too: nothing is denied.
    let mut person = AtTerminal::start(&world, &["resume"]);
    person.shows("approve? ");
    person.types("n");
    person.shows("why (the model is told): ");
    person.running.tell_to_stop();
    person.ends(Duration::from_secs(2), 130);
    assert_eq!(world.requests().len(), 1);
}

#[test]
fn a_stop_ends_the_prompts_of_all_runs() {
    let world = World::new();
    let agent = paying(&world, "");
    for id in ["first", "second"] {
        world.lodestep(&["run", &agent, "--id", id]).exits(3);
    }
    let mut person = AtTerminal::start(&world, &["resume", "--all"]);
    person.shows("approve? ");
    person.running.tell_to_stop();
    person.ends(Duration::from_secs(2), 130);
    assert_eq!(person.shown().matches("approve? ").count(), 1, "{}", person.shown());
    assert_eq!(person.shown().matches("going on with").count(), 1, "{}", person.shown());
}

#[test]
fn an_answer_at_the_prompt_counts() {
    let world = World::new();
    let agent = paying(&world, "");
    let mut person = AtTerminal::start(&world, &["run", &agent]);
    person.shows("approve? ");
    person.types("?");
    person.shows("it is done, once, with exactly these arguments");
    person.types("y");
    person.ends(Duration::from_secs(20), 0);
    assert_eq!(world.read("paid"), "paid\n");
}

#[test]
fn a_word_to_many_asks_once_and_takes_only_a_yes() {
    let world = World::new();
    let agent = paying(&world, "");
    world.lodestep(&["run", &agent]).exits(3);
    for (typed, code, status) in [("no", 1, "waiting"), ("", 1, "waiting"), ("y", 0, "cancelled")] {
        let mut person = AtTerminal::start(&world, &["cancel", "--status", "waiting"]);
        person.shows("cancel this 1? [y]es, [n]o: ");
        person.types(typed);
        person.ends(Duration::from_secs(20), code);
        let shown = person.shown();
        assert_eq!((shown.contains("nothing changed"), shown.contains("error")), (code == 1, false), "{shown}");
        world.lodestep(&["worker", "--until-idle"]).exits(0);
        assert_eq!(world.json(&["show", &world.run_id()])["status"], status, "{typed}");
    }
}

#[test]
fn a_prompt_ends_when_the_request_is_answered_elsewhere() {
    let world = World::new();
    let agent = paying(&world, "");
    let mut person = AtTerminal::start(&world, &["run", &agent]);
    person.shows("approve? ");
    world.lodestep(&["approve", &world.requests()[0]]).exits(0);
    person.ends(Duration::from_secs(20), 0);
    assert!(person.shown().contains("no answer is needed any more: approved by ada"), "{}", person.shown());
    assert_eq!(world.read("paid"), "paid\n");
}

#[test]
fn a_run_whose_readers_have_gone_away_completes() {
    let world = World::new();
    let agent = paying(&world, "[[policy]]\ntools = [\"pay\"]\ndecide = \"allow\"\n");
    let closed = || {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        Stdio::from(writer)
    };
    let mut command = world.command(&["run", &agent]);
    let mut running = Running { child: command.stdout(closed()).stderr(closed()).spawn().expect("started") };
    assert_eq!(running.ended(), Some(0));
    assert_eq!(world.read("paid"), "paid\n");
    let shown = world.json(&["show", &world.run_id()]);
    assert_eq!(shown["status"], "completed", "{shown}");
}

#[test]
fn sec_03_no_argument_hides_what_comes_after_it_in_the_view_of_a_request() {
    let world = World::new();
    let tables = "[tools.pay]\ndescription = \"Pay.\"\ncommand = [\"sh\", \"-c\", \"echo paid >> paid\"]\nclass = \"unsafe\"\n\
        input = { type = \"object\", additionalProperties = true }\n";
    let after = |filler: &str| format!("to ada{}SEEN at the end", filler.repeat(10_000));
    let call = json!({ "name": "pay", "arguments": {
        "a": after(" "), "b": after("\n"), "c": after("\u{200b}"), "d": after("\u{a0}\u{3000}"), "e": after("\u{2800}"),
        "f": after("x"), "g": after(".\n"), "h": after("\u{202e}"), "i": { "deep": [after(" ")] },
        "j\u{1b}[2J\n  none": after("\t"), format!("k{}", " ".repeat(10_000)): "SEEN at the end", "z": "SEEN at the end",
    } });
    let agent = world.agent(tables, &json!([{ "calls": [call] }]));
    let mut person = AtTerminal::start(&world, &["run", agent.to_str().expect("a path")]);
    person.shows("approve? ");
    let prompt = person.shown();
    person.running.tell_to_stop();
    person.ends(Duration::from_secs(5), 130);
    let shown = world.lodestep(&["show", &world.run_id()]).exits(0).out;
    for (view, text) in [("the prompt", prompt.replace('\r', "")), ("show", shown)] {
        let from = text.find(": pay (action 1, unsafe)").unwrap_or_else(|| panic!("{view}: {text}"));
        let request = &text[from..];
        let request = &request[..request.find("  asked ").unwrap_or_else(|| panic!("{view}: {request}"))];
        assert_eq!(request.matches("SEEN at the end").count(), 12, "{view}: {request}");
        for name in ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j\\u{1b}[2J   none", "k [10000 spaces] ", "z"] {
            let begins = |line: &str| line.trim_start().starts_with(&format!("{name}:"));
            assert!(request.lines().any(begins), "{view}, {name}: {request}");
        }
        assert!(request.contains("  a: to ada [10000 spaces] SEEN at the end\n"), "{view}: {request}");
        let blank = |line: &str| line.split(|c: char| !c.is_whitespace()).map(str::len).max().unwrap_or(0);
        assert!(request.lines().all(|line| blank(line) < 80), "{view}: {request}");
        assert!(request.len() < 30_000, "{view}: {} bytes", request.len());
    }
    let todo = world.lodestep(&["todo"]).exits(0).out;
    assert!(todo.contains("a=to ada [10000 spaces] SEEN"), "{todo}");
}
