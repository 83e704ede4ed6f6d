//! Asks for the answer to a request at this terminal. What an answer comes to is not judged here.
//!
//! A prompt ends by a line, by the request's end elsewhere, or by the first Ctrl-C or SIGTERM, whichever comes first. The
//! reading itself can't be broken off: it stays behind on a thread that nobody waits for, and what it reads after the
//! prompt's end is no answer to it.

use std::io::{BufRead as _, IsTerminal as _};
use std::sync::OnceLock;
use std::time::Duration;

use lodestep::core::checkpoint::Action;
use lodestep::core::event::Request;
use lodestep::core::rules::inbox::Word;
use lodestep::core::{Digest, RunKey};
use lodestep::inspect::{self, Opened};
use lodestep::store::Store;
use lodestep::worker::Shutdown;
use tokio::sync::{Mutex, MutexGuard, mpsc};

use crate::app::App;
use crate::people;

/// Whether the request is still open is looked up at least so often, whatever the store hints.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Two look-ups are at least so far apart: other runs' hints are frequent, and mean nothing to this prompt.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// What asking came to.
#[derive(Debug, PartialEq, Eq)]
pub enum Asked {
    /// The person's answer.
    Said(Word),
    /// There is no terminal, or the person answers later.
    Later,
    /// The request is over without an answer from here; how, in words.
    Over(String),
    /// The process is being stopped; nothing was said.
    Stopped,
}

/// The terminal's lines, each read when it is wanted.
pub struct Terminal {
    wanted: std::sync::mpsc::Sender<()>,
    lines: mpsc::UnboundedReceiver<Option<String>>,
    reading: bool,
}

impl Terminal {
    /// This process's terminal; `None` when a person can't be asked here. There is one of it: a second reader would take
    /// the lines of the first.
    pub async fn here() -> Option<MutexGuard<'static, Self>> {
        static HERE: OnceLock<Option<Mutex<Terminal>>> = OnceLock::new();
        let here = HERE.get_or_init(|| Self::open().map(Mutex::new)).as_ref()?;
        Some(here.lock().await)
    }

    fn open() -> Option<Self> {
        if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
            return None;
        }
        let (wanted, asks) = std::sync::mpsc::channel();
        let (sender, lines) = mpsc::unbounded_channel();
        // The process ends without this thread: a read of a terminal ends by a line alone.
        std::thread::spawn(move || {
            while asks.recv().is_ok() {
                let mut line = String::new();
                let read = std::io::stdin().lock().read_line(&mut line);
                let line = matches!(read, Ok(1..)).then(|| line.trim().to_owned());
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Some(Self { wanted, lines, reading: false })
    }

    /// Asks for a line that nothing else can make needless.
    pub async fn answer(&mut self, prompt: &str) -> Option<String> {
        self.forget();
        lodestep::observe::write_stderr(format_args!("{prompt}"));
        self.line().await
    }

    /// Forgets a line that came when nobody was asked any more.
    fn forget(&mut self) {
        if self.lines.try_recv().is_ok() {
            self.reading = false;
        }
    }

    /// The next line without the blanks around it; `None` at the terminal's end. A call that is broken off leaves its line
    /// to the next one.
    async fn line(&mut self) -> Option<String> {
        if !self.reading {
            self.wanted.send(()).ok()?;
            self.reading = true;
        }
        let line = self.lines.recv().await;
        self.reading = false;
        line?
    }
}

/// What ended the wait for a line.
enum Heard {
    Line(String),
    Ended(Asked),
}

/// Waits for a line. A stop that has begun goes before a line, and so does the request's end.
async fn hear(
    line: impl Future<Output = Option<String>>,
    over: impl Future<Output = String>,
    shutdown: &Shutdown,
) -> Heard {
    tokio::select! {
        biased;
        () = shutdown.begun() => Heard::Ended(Asked::Stopped),
        why = over => Heard::Ended(Asked::Over(why)),
        line = line => match line {
            _ if shutdown.is_begun() => Heard::Ended(Asked::Stopped),
            Some(line) => Heard::Line(line),
            None => Heard::Ended(Asked::Later),
        },
    }
}

/// Asks for the answer to a run's first open request.
pub async fn ask(app: &App, store: &dyn Store, opened: &Opened, terminal: &mut Terminal, shutdown: &Shutdown) -> Asked {
    let Some((action, request, approval)) = people::open_requests(opened).into_iter().next() else {
        return Asked::Later;
    };
    terminal.forget();
    lodestep::note!("\n{}", people::describe(app, opened, action, request, approval).trim_end_matches('\n'));
    let prompt = Prompt { app, store, opened, action, request, shutdown };
    if approval { prompt.approval(terminal).await } else { prompt.question(terminal).await }
}

/// One request that is asked about.
struct Prompt<'a> {
    app: &'a App,
    store: &'a dyn Store,
    opened: &'a Opened,
    action: &'a Action,
    request: &'a Request,
    shutdown: &'a Shutdown,
}

impl Prompt<'_> {
    async fn hear(&self, terminal: &mut Terminal, prompt: &str) -> Heard {
        lodestep::observe::write_stderr(format_args!("{prompt}"));
        let over = over(self.store, &self.opened.row.run.key, self.request);
        hear(terminal.line(), over, self.shutdown).await
    }

    async fn approval(&self, terminal: &mut Terminal) -> Asked {
        let request = self.request.name;
        loop {
            let line = match self.hear(terminal, "approve? [y]es, [n]o, [l]ater, [?]: ").await {
                Heard::Line(line) => line,
                Heard::Ended(asked) => return asked,
            };
            match line.as_str() {
                "l" | "later" => return Asked::Later,
                "y" | "yes" => return Asked::Said(Word::Approve { request }),
                "n" | "no" => {
                    return match self.hear(terminal, "why (the model is told): ").await {
                        Heard::Line(reason) => Asked::Said(Word::Deny { request, reason }),
                        Heard::Ended(asked) => asked,
                    };
                }
                _ => lodestep::note!(
                    "{}",
                    people::help(self.app, self.opened, self.action, self.request).trim_end_matches('\n')
                ),
            }
        }
    }

    async fn question(&self, terminal: &mut Terminal) -> Asked {
        loop {
            let value = match self.hear(terminal, "answer (an empty line answers later): ").await {
                Heard::Line(line) if line.is_empty() => return Asked::Later,
                Heard::Line(line) => line,
                Heard::Ended(asked) => return asked,
            };
            match people::check_answer(self.opened, self.action, &value) {
                Ok(()) => return Asked::Said(Word::Answer { request: self.request.name, value }),
                Err(error) => _ = self.app.report(&error),
            }
        }
    }
}

/// Waits until a request is over, answered by a word that counts or by its time; how, in words.
async fn over(store: &dyn Store, run: &RunKey, request: &Request) -> String {
    let mut changes = store.changes();
    loop {
        changes.mark_unchanged();
        // That it can't be looked up now says nothing about it.
        if let Ok(opened) = inspect::open(store, run).await
            && let Some(how) = is_over(&opened, &request.name)
        {
            return how;
        }
        let now = store.now();
        let left = request.expires_at.map(|at| Duration::from_millis(at.ms_since(now)));
        if left.is_some_and(|left| left.is_zero()) {
            return "its time is over".to_owned();
        }
        tokio::select! {
            _ = changes.changed() => tokio::time::sleep(BETWEEN_LOOKS).await,
            () = tokio::time::sleep(left.unwrap_or(LONGEST_WAIT).min(LONGEST_WAIT)) => {}
        }
    }
}

fn is_over(opened: &Opened, request: &Digest) -> Option<String> {
    if let Some(how) = people::answered(opened, request) {
        return Some(how);
    }
    let is_open = people::open_requests(opened).iter().any(|(_, open, _)| open.name == *request);
    (!is_open).then(|| "its run has moved on".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn heard(line: Option<&str>, over: Option<&str>, stopped: Option<()>) -> Heard {
        let shutdown = Shutdown::default();
        stopped.iter().for_each(|()| shutdown.begin());
        let over = async {
            match over {
                Some(why) => why.to_owned(),
                None => std::future::pending().await,
            }
        };
        hear(async { line.map(str::to_owned) }, over, &shutdown).await
    }

    #[tokio::test]
    async fn a_stop_goes_before_the_end_of_the_request_and_that_before_a_line() {
        assert!(matches!(heard(Some("y"), None, None).await, Heard::Line(line) if line == "y"));
        assert!(matches!(heard(None, None, None).await, Heard::Ended(Asked::Later)));
        assert!(matches!(heard(Some("y"), None, Some(())).await, Heard::Ended(Asked::Stopped)));
        assert!(
            matches!(heard(Some("y"), Some("denied"), None).await, Heard::Ended(Asked::Over(why)) if why == "denied")
        );
        assert!(matches!(heard(Some("y"), Some("denied"), Some(())).await, Heard::Ended(Asked::Stopped)));
    }

    #[tokio::test]
    async fn a_stop_that_begins_while_a_line_is_read_takes_the_line() {
        let shutdown = Shutdown::default();
        let line = async {
            shutdown.begin();
            Some("y".to_owned())
        };
        let heard = hear(line, std::future::pending(), &shutdown).await;
        assert!(matches!(heard, Heard::Ended(Asked::Stopped)));
    }
}
