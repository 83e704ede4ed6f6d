//! Tools that are programs: arguments as one JSON object on stdin, the answer on stdout, the exit status as the verdict.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

use lodestep_core::effect::Seen;
use lodestep_core::reference::with_inputs;
use lodestep_core::rules::settle::LookedUp;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::process::{Cage, Command, Ended, Holder, Output, clean_environment};
use crate::secrets::{Environment, Removed, Scrubber};
use crate::tools::Sight;

/// The most bytes that are taken of a program's stdout; more is dropped and said so.
pub const STDOUT_BYTES: u64 = 64 * 1024 * 1024;

/// The most bytes that are taken of a program's stderr.
pub const STDERR_BYTES: u64 = 64 * 1024;

/// One run of a program.
pub(crate) struct Program<'a> {
    pub argv: &'a [String],
    pub env: BTreeMap<&'a str, &'a str>,
    pub environment: &'a Environment,
    pub scrubber: &'a Scrubber,
    pub folder: &'a str,
    pub inputs: &'a Value,
    pub stdin: Vec<u8>,
    pub timeout: Duration,
    pub lock_file: Option<PathBuf>,
    pub cage: &'a Cage,
    /// `LODESTEP_…` variables: key, run, action, epoch, attempt.
    pub identity: Vec<(&'static str, String)>,
}

impl Program<'_> {
    fn command(self) -> Result<Command, String> {
        let mut env = clean_environment();
        for (name, value) in self.env {
            env.insert(name.to_owned(), self.environment.fill(value)?);
        }
        env.extend(self.identity.into_iter().map(|(name, value)| (name.to_owned(), value)));
        Ok(Command {
            argv: self.argv.iter().map(|word| with_inputs(word, self.inputs)).collect(),
            cwd: PathBuf::from(self.folder),
            env,
            stdin: self.stdin,
            timeout: self.timeout,
            stdout_limit: STDOUT_BYTES,
            stderr_limit: STDERR_BYTES,
            lock_file: self.lock_file,
            cage: self.cage.clone(),
        })
    }

    /// Runs it as an attempt of an action. What it says is cleaned of secrets before anything of it is cut.
    pub async fn attempt(self, holder: &Holder, stop: impl Future<Output = ()>, removed: &mut Removed) -> Sight {
        let (timeout, scrubber) = (self.timeout, self.scrubber);
        match self.command() {
            Ok(command) => sight_of(clean(scrubber, holder.run(command, stop).await, removed), timeout),
            Err(missing) => Sight::new(Seen::NotStarted, missing),
        }
    }

    /// Runs it as a lookup. It answers JSON on stdout: `{"status": "done" | "absent" | "running", "result": …}`.
    pub async fn look_up(self, holder: &Holder, stop: impl Future<Output = ()>, removed: &mut Removed) -> LookedUp {
        let scrubber = self.scrubber;
        let output = match self.command() {
            Ok(command) => clean(scrubber, holder.run(command, stop).await, removed),
            Err(missing) => return LookedUp::Unknown(missing),
        };
        if output.ended == Ended::Stopped {
            // The worker's end says nothing about the effect: whoever has the run then asks.
            return LookedUp::NotNow("stopped by the worker".to_owned());
        }
        if output.ended != Ended::Exited(0) {
            return LookedUp::Unknown(format!("the lookup {}", failure(&output)));
        }
        let said: Option<Said<'_>> = serde_json::from_slice(&output.stdout).ok();
        match said.as_ref().map(|said| said.status.as_str()) {
            Some("done") => {
                let result = said.and_then(|said| said.result);
                LookedUp::Done(result.map(text_of).unwrap_or_else(|| b"done, says the lookup".to_vec()))
            }
            Some("absent") => LookedUp::Absent,
            Some("running") => LookedUp::Running,
            _ => LookedUp::Unknown("it did not answer {\"status\": \"done\" | \"absent\" | \"running\"}".to_owned()),
        }
    }
}

fn clean(scrubber: &Scrubber, mut output: Output, removed: &mut Removed) -> Output {
    removed.add(match output.stdout_truncated {
        Some(_) => scrubber.scrub_cut(&mut output.stdout),
        None => scrubber.scrub(&mut output.stdout),
    });
    removed.add(match output.stderr_truncated {
        Some(_) => scrubber.scrub_cut(&mut output.stderr),
        None => scrubber.scrub(&mut output.stderr),
    });
    output
}

/// What a lookup says.
#[derive(Deserialize)]
struct Said<'a> {
    status: String,
    /// To the byte: a number may be longer than any type here.
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
}

/// A text is what it says, anything else as it is written.
fn text_of(value: &RawValue) -> Vec<u8> {
    serde_json::from_str::<String>(value.get()).map_or_else(|_| value.get().as_bytes().to_vec(), String::into_bytes)
}

fn sight_of(output: Output, timeout: Duration) -> Sight {
    match output.ended {
        Ended::Exited(0) => {
            let mut text = output.stdout;
            if let Some(length) = output.stdout_truncated {
                text.extend(format!("\n[truncated at the source: {length} bytes were written]").into_bytes());
            }
            Sight { cut_from_bytes: output.stdout_truncated, ..Sight::new(Seen::Done, text) }
        }
        Ended::Exited(_) => Sight::new(Seen::Refused, failure(&output)),
        Ended::Signalled(_) | Ended::Stopped | Ended::HolderLost(_) => Sight::new(Seen::Interrupted, failure(&output)),
        Ended::TimedOut => Sight::new(
            Seen::TimedOut,
            format!("no end within {} s; it was stopped, and may have done its work", timeout.as_secs_f32()),
        ),
        Ended::NotStarted(ref why) => Sight::new(Seen::NotStarted, format!("could not start: {why}")),
    }
}

fn failure(output: &Output) -> String {
    let how = match &output.ended {
        Ended::Exited(status) => format!("exit status {status}"),
        Ended::Signalled(signal) => format!("ended by signal {signal}"),
        Ended::TimedOut => "no end in time".to_owned(),
        Ended::Stopped => "stopped by the worker".to_owned(),
        Ended::NotStarted(why) => format!("could not start: {why}"),
        Ended::HolderLost(why) => format!("its holder was lost: {why}"),
    };
    let said = [&output.stderr, &output.stdout].into_iter().map(|bytes| String::from_utf8_lossy(bytes));
    let said = said.map(|text| text.trim().to_owned()).find(|text| !text.is_empty());
    match said {
        Some(said) => format!("{how}: {}", said.chars().take(4_000).collect::<String>()),
        None => how,
    }
}
