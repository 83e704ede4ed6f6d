//! The model's server on loopback, while it runs.

use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::environment::Environment;
use crate::child::LOOK;

/// How many tokens a request and its reply may have, as the server takes it.
pub const WINDOW: u64 = 4_096;
/// It calls tools by a grammar when a request says which, or that it may choose; it answers in words when nothing is said.
const CHAT_FORMAT: &str = "chatml-function-calling";
/// Until it answers; loading the model takes a few seconds.
const START: Duration = Duration::from_secs(120);

/// A server that was started, and is ended when this is dropped.
pub struct Server {
    child: Child,
    port: u16,
}

impl Server {
    /// Starts it and waits until it takes connections. What it prints goes to a file in `folder`.
    ///
    /// # Errors
    ///
    /// If it ends or does not answer in time; then it is gone.
    pub fn start(environment: &Environment, folder: &Path) -> Result<Server> {
        let log_path = folder.join("server.log");
        let log = File::create(&log_path).with_context(|| format!("cannot create {}", log_path.display()))?;
        let port = free_port()?;
        let mut command = Command::new(&environment.python);
        command.args(["-m", "llama_cpp.server", "--host", "127.0.0.1", "--chat_format", CHAT_FORMAT]);
        command.arg("--model").arg(&environment.model);
        // One thread: two of them wait for each other busily, and stand still on a machine that has other work.
        let numbers = [("--port", u64::from(port)), ("--n_ctx", WINDOW), ("--n_threads", 1), ("--n_threads_batch", 1)];
        for (option, number) in numbers {
            command.args([option, &number.to_string()]);
        }
        // The chances of every token of a request are of no use here, and take most of the time.
        command.args(["--logits_all", "false"]);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let child = command.spawn().context("cannot start the model's server")?;
        let mut server = Server { child, port };
        server.await_connections().with_context(|| format!("{} may say why", log_path.display()))?;
        Ok(server)
    }

    /// What an agent file names as `base_url`.
    pub fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    /// Nothing, while it is there.
    ///
    /// # Errors
    ///
    /// When it has ended by itself: whatever is asked now says nothing of a model.
    pub fn still_there(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            Some(status) => bail!("the model's server ended: {status}"),
            None => Ok(()),
        }
    }

    fn await_connections(&mut self) -> Result<()> {
        let until = Instant::now() + START;
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            self.still_there()?;
            ensure!(Instant::now() < until, "the model's server does not answer after {} s", START.as_secs());
            thread::sleep(LOOK);
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has nothing to put in order. One that is gone already is no error.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that was free a moment ago. If another process takes it first, the server ends and says so.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).context("no port of loopback is free")?;
    Ok(listener.local_addr()?.port())
}
