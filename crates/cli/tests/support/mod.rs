//! What the black-box tests share: the program, a world of its own, agent files of the test.
#![allow(dead_code, reason = "each test binary takes what it needs")]

pub mod services;

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// The research example.
pub fn research() -> PathBuf {
    root().join("examples/research/agent.toml")
}

/// A folder with a store of its own.
pub struct World {
    folder: tempfile::TempDir,
}

impl World {
    /// A new one.
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder") }
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file below it.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
        std::fs::write(&path, text).expect("written");
        path
    }

    /// Reads a file below it; empty when there is none.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).unwrap_or_default()
    }

    /// Every file below it.
    pub fn files(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut folders = vec![self.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("listed").flatten() {
                match entry.path() {
                    path if path.is_dir() => folders.push(path),
                    path => found.push(path),
                }
            }
        }
        found
    }

    /// The program with this world's store.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lodestep"));
        command.current_dir(self.path()).arg("--store").arg(self.path().join("store.db")).args(words);
        command.env("LODESTEP_USER", "ada").env_remove("LODESTEP_STORE");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs it to its end.
    pub fn lodestep(&self, words: &[&str]) -> Said {
        Said::of(self.command(words).output().expect("ran"))
    }

    /// Runs it with --json; what it printed.
    pub fn json(&self, words: &[&str]) -> Value {
        let mut all = vec!["--json"];
        all.extend(words);
        let said = self.lodestep(&all);
        serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"))
    }

    /// Starts it and lets it run.
    pub fn start(&self, words: &[&str]) -> Running {
        Running { child: self.command(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("started") }
    }

    /// Starts it and lets it run; what it says on stderr can be waited for.
    pub fn start_heard(&self, words: &[&str]) -> (Running, Lines) {
        Running::heard(self.command(words).stdout(Stdio::null()))
    }

    /// Waits until a process has closed the store, so that nothing of it is in a log.
    pub fn rest(&self) {
        eventually("the store is closed", Duration::from_secs(20), || {
            self.lodestep(&["ls"]).exits(0);
            !self.path().join("store.db-wal").exists()
        });
    }

    /// How often the model of the only run was called.
    pub fn read_calls(&self) -> Value {
        self.json(&["show", &self.run_id()])["checkpoint"]["model"]["calls"].clone()
    }

    /// The id of the only run.
    pub fn run_id(&self) -> String {
        let runs = self.json(&["ls"]);
        assert_eq!(runs.as_array().map(Vec::len), Some(1), "{runs}");
        runs[0]["run"].as_str().expect("an id").to_owned()
    }

    /// The names of the open requests of the only run.
    pub fn requests(&self) -> Vec<String> {
        let shown = self.json(&["show", &self.run_id()]);
        let requests = shown["requests"].as_array().expect("requests");
        requests.iter().map(|request| request["request"].as_str().expect("a name").to_owned()).collect()
    }

    /// An agent file whose model follows a script, with these tool tables and further tables.
    pub fn agent(&self, tables: &str, replies: &Value) -> PathBuf {
        self.write("script.json", &serde_json::json!({ "replies": replies }).to_string());
        self.write(
            "agent.toml",
            &format!(
                "format = 1\n[agent]\nname = \"scripted\"\nobjective = \"Follow the script.\"\ninstructions = \"Follow it.\"\n\
                 [model]\nprovider = \"script\"\nname = \"script.json\"\n{tables}"
            ),
        )
    }
}

/// The reply of a script that ends its run.
pub fn finish() -> Value {
    serde_json::json!({ "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] })
}

/// A process that is ended with the test.
pub struct Running {
    /// The process.
    pub child: Child,
}

impl Running {
    /// Starts a command whose stderr is a pipe.
    pub fn heard(command: &mut Command) -> (Self, Lines) {
        let mut child = command.spawn().expect("started");
        let lines = Lines::of(&mut child);
        (Self { child }, lines)
    }

    /// kill -9.
    pub fn kill(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("reaped");
    }

    /// SIGTERM.
    pub fn tell_to_stop(&self) {
        let pid = rustix::process::Pid::from_raw(self.child.id() as i32).expect("a process");
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("told");
    }

    /// Has it ended?
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("asked").is_some()
    }

    /// Waits for its end; its exit code, when it ended by itself.
    pub fn ended(&mut self) -> Option<i32> {
        self.child.wait().expect("ended").code()
    }

    /// SIGTERM, and its exit code.
    pub fn terminate(&mut self) -> Option<i32> {
        self.tell_to_stop();
        self.ended()
    }
}

/// What a process says, line by line.
pub struct Lines(BufReader<ChildStderr>);

impl Lines {
    /// Takes over what a program says on stderr.
    pub fn of(child: &mut Child) -> Self {
        Self(BufReader::new(child.stderr.take().expect("a pipe")))
    }

    /// Reads on to the line that contains this; fails when the process ends without one.
    pub fn until(&mut self, wanted: &str) {
        assert!(self.says(wanted), "it never said: {wanted}");
    }

    /// Reads on to the line that contains this; false when the process ends without one.
    pub fn says(&mut self, wanted: &str) -> bool {
        let mut line = String::new();
        while self.0.read_line(&mut line).expect("read") > 0 {
            if line.contains(wanted) {
                return true;
            }
            line.clear();
        }
        false
    }

    /// All that it still says, up to its end.
    pub fn rest(mut self) -> String {
        let mut text = String::new();
        self.0.read_to_string(&mut text).expect("read");
        text
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the program said.
#[derive(Debug)]
pub struct Said {
    /// Its exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// Its stdout.
    pub out: String,
    /// Its stderr.
    pub err: String,
}

impl Said {
    /// From a process's output.
    pub fn of(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// Checks the exit code.
    pub fn exits(self, code: i32) -> Self {
        self.exits_at("", code)
    }

    /// Checks the exit code of what is written at a place.
    pub fn exits_at(self, place: &str, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{place} {self:?}");
        self
    }
}

/// Waits until something holds, looking often; fails when it does not in time.
pub fn eventually(what: &str, within: Duration, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + within;
    while !holds() {
        assert!(Instant::now() < until, "not in time: {what}");
        std::thread::yield_now();
    }
}

/// Text with white space folded.
pub fn folded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Each `- sentence [document:from-to]` of a report: the sentence, the document, the lines.
pub fn citations(report: &str) -> Vec<(String, String, usize, usize)> {
    report
        .lines()
        .filter_map(|line| line.strip_prefix("- "))
        .map(|line| {
            let (sentence, cited) = line.rsplit_once(" [").expect("a citation");
            let (name, range) = cited.trim_end_matches(']').rsplit_once(':').expect("lines");
            let (from, to) = range.split_once('-').expect("a range");
            (sentence.to_owned(), name.to_owned(), from.parse().expect("a line"), to.parse().expect("a line"))
        })
        .collect()
}

/// Checks that each sentence stands in the lines that it cites; how many there are.
pub fn check_citations(report: &str, documents: &Path) -> usize {
    let all = citations(report);
    for (sentence, name, from, to) in &all {
        let text = std::fs::read_to_string(documents.join(name)).expect("the document");
        let lines: Vec<&str> = text.lines().collect();
        let cited = folded(&lines[from - 1..*to].join("\n"));
        assert!(cited.contains(&folded(sentence)), "{name}:{from}-{to} does not say: {sentence}");
    }
    all.len()
}
