//! Starting the tool, so that it is known whether its program ever ran.
//!
//! On Linux a tool must ask the kernel to be killed with its holder, between `fork` and `exec`,
//! where safe Rust cannot run code. So the holder starts the binary once more as a **stub**, which
//! does that, enters the tool's cage and becomes the tool by `exec`. A stub that can't enter one way is
//! no use any more, so each way is tried by a stub of its own.
//!
//! The stub reports on a pipe of its own, its standard error until then: [`READY_TO_EXEC`] right
//! before `exec`, [`NO_CAGE`] or [`FAILED`] with a message when the cage or anything else fails. The pipe is closed by a
//! successful `exec`. So a tool cannot write to it: no exit status and no output of a tool is ever
//! taken for a failed start.

use std::process::ExitCode;

use rustix::process::Pid;

#[cfg(not(target_os = "linux"))]
pub(super) use elsewhere::spawn;
#[cfg(target_os = "linux")]
pub(super) use linux::spawn;

/// A started tool: its main process and the ends of its three streams.
pub(super) struct Spawned {
    pub main: Pid,
    pub stdin: std::process::ChildStdin,
    pub stdout: std::process::ChildStdout,
    pub stderr: std::io::PipeReader,
}

/// The main function of a process that was started with `__exec`: becomes the tool.
///
/// Returns only when that failed. Not to be called by anyone but a holder's child.
pub fn exec_main() -> ExitCode {
    #[cfg(target_os = "linux")]
    linux::exec_main(std::env::args_os().skip(2).collect());
    ExitCode::FAILURE
}

fn main_pid(child: &std::process::Child) -> Result<Pid, String> {
    let number = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    number.ok_or_else(|| format!("process number {} is not one", child.id()))
}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::OsString;
    use std::fs::{File, OpenOptions};
    use std::io::{self, Read, Write};
    use std::os::fd::{AsFd, AsRawFd};
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::process::CommandExt;
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};

    use rustix::process::{Pid, Resource, Rlimit, Signal};

    use super::super::EXEC_ARGUMENT;
    use super::super::cage::{self, Way};
    use super::super::protocol::Spec;
    use super::{Spawned, main_pid};

    /// From here on the program may have run.
    const READY_TO_EXEC: u8 = b'R';
    /// The program did not run; a message follows.
    const FAILED: u8 = b'F';
    /// The program did not run, because its cage could not be entered this way; a message follows.
    const NO_CAGE: u8 = b'C';
    /// How much of a message goes to the worker.
    const MESSAGE_BYTES: usize = 4096;

    /// Starts the tool and returns once its program runs.
    ///
    /// Call it from the main thread: the kernel kills the tool when the *thread* that started it
    /// ends.
    ///
    /// # Errors
    ///
    /// Text on why the program never ran.
    pub(in super::super) fn spawn(spec: &Spec) -> Result<Spawned, String> {
        let mut refusals = Vec::new();
        for &way in spec.cage.ways() {
            match try_way(spec, way) {
                Err(Failure::NoCage(why)) => refusals.push(why),
                Err(Failure::Other(why)) => return Err(why),
                Ok(spawned) => return Ok(spawned),
            }
        }
        let why = refusals.join("; ");
        Err(format!(
            "no cage on this machine keeps the program from the store: {why}. A best-effort cage starts it all the same"
        ))
    }

    /// Why the program never ran.
    #[derive(Debug, PartialEq, Eq)]
    enum Failure {
        NoCage(String),
        Other(String),
    }

    impl From<String> for Failure {
        fn from(why: String) -> Self {
            Failure::Other(why)
        }
    }

    fn try_way(spec: &Spec, way: Way) -> Result<Spawned, Failure> {
        let (mut report, reporter) = io::pipe().map_err(|error| format!("no pipe for the report: {error}"))?;
        let (stderr, stderr_of_tool) = io::pipe().map_err(|error| format!("no pipe for standard error: {error}"))?;
        let parent = std::process::id();
        let cage = serde_json::to_string(&(way, &spec.cage.keep_out)).map_err(|error| format!("cage: {error}"))?;
        // The stub's standard error is taken by the report, so it opens the tool's by the holder's
        // number.
        let stderr_path = format!("/proc/{parent}/fd/{}", stderr_of_tool.as_raw_fd());
        let mut command = Command::new("/proc/self/exe");
        command.arg(EXEC_ARGUMENT).arg(parent.to_string()).arg(stderr_path).arg(&spec.cwd).arg(cage).arg("--");
        command.args(&spec.argv).env_clear().envs(&spec.env);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(reporter);
        let child = command.spawn();
        // Closes this side's copy of the report pipe, so that it ends with the stub's.
        drop(command);
        let mut child = child.map_err(|error| format!("the stub for {:?}: {error}", spec.argv[0]))?;
        let mut said = Vec::new();
        report.read_to_end(&mut said).map_err(|error| format!("no report from the stub: {error}"))?;
        judge(&said)?;
        let main = main_pid(&child)?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Failure::Other("the stub has no pipes".into()));
        };
        Ok(Spawned { main, stdin, stdout, stderr })
    }

    /// What a report means. It ended, so the stub is gone or has become the tool.
    fn judge(said: &[u8]) -> Result<(), Failure> {
        // Cut, since a program's name may be longer than a frame.
        let text =
            |from: usize| String::from_utf8_lossy(&said[from..said.len().min(from + MESSAGE_BYTES)]).into_owned();
        if said.first() == Some(&NO_CAGE) {
            return Err(Failure::NoCage(text(1)));
        }
        match said.iter().position(|&byte| byte == FAILED) {
            Some(at) => Err(Failure::Other(text(at + 1))),
            None if said == [READY_TO_EXEC] => Ok(()),
            None => Err(Failure::Other("the stub ended before it could start the program".into())),
        }
    }

    /// Becomes the tool; returns after reporting why it could not.
    pub(super) fn exec_main(arguments: Vec<OsString>) {
        let Ok(report) = io::stderr().as_fd().try_clone_to_owned() else {
            return;
        };
        let mut report = File::from(report);
        let (kind, why) = match become_tool(&mut report, arguments) {
            Failure::NoCage(why) => (NO_CAGE, why),
            Failure::Other(why) => (FAILED, why),
        };
        // Without a reader there is nobody left to tell.
        let _ = report.write_all(&[&[kind], why.as_bytes()].concat());
    }

    /// Returns only with the reason why it did not.
    fn become_tool(report: &mut File, arguments: Vec<OsString>) -> Failure {
        let [parent, stderr, cwd, cage, dashes, program, rest @ ..] = arguments.as_slice() else {
            return Failure::Other(format!("{EXEC_ARGUMENT} is for a holder only"));
        };
        if dashes != "--" {
            return Failure::Other(format!("{EXEC_ARGUMENT} is for a holder only"));
        }
        let stderr = match prepare(parent, stderr, cwd, cage) {
            Ok(stderr) => stderr,
            Err(failure) => return failure,
        };
        let mut command = Command::new(program);
        command.args(rest).stderr(stderr);
        if let Err(error) = report.write_all(&[READY_TO_EXEC]) {
            return Failure::Other(format!("the holder does not listen: {error}"));
        }
        // `exec` returns only when there is still this program and not the other.
        Failure::Other(format!("program {}: {}", program.to_string_lossy(), command.exec()))
    }

    /// Makes this process what the tool is to start in; gives the tool's standard error.
    fn prepare(parent: &OsString, stderr: &OsString, cwd: &OsString, cage: &OsString) -> Result<File, Failure> {
        rustix::process::setsid().map_err(|error| format!("no session of its own: {error}"))?;
        // Before the cage, from which the holder's files are out of reach.
        let opened = OpenOptions::new().write(true).open(stderr);
        let opened = opened.map_err(|error| format!("standard error by {}: {error}", stderr.to_string_lossy()))?;
        close_all_but_streams();
        // What a tool has in memory must not be left in a file.
        let none = Rlimit { current: Some(0), maximum: Some(0) };
        rustix::process::setrlimit(Resource::Core, none).map_err(|error| format!("core dumps: {error}"))?;
        let (way, keep_out): (Way, Vec<PathBuf>) =
            serde_json::from_slice(cage.as_bytes()).map_err(|error| format!("the cage can't be read: {error}"))?;
        cage::enter(way, &keep_out, Path::new(cwd)).map_err(Failure::NoCage)?;
        // After the cage: a change of rights makes the kernel forget what is asked here.
        die_with(parent)?;
        std::env::set_current_dir(cwd).map_err(|error| format!("folder {}: {error}", cwd.to_string_lossy()))?;
        Ok(opened)
    }

    /// What the worker was started with, and did not mark, ends here: `exec` closes it.
    fn close_all_but_streams() {
        const FIRST_OTHER: i32 = 3;
        close_fds::set_fds_cloexec(FIRST_OTHER, &[]);
    }

    /// Asks the kernel to kill this process when its parent ends, and checks that it has not ended
    /// before.
    fn die_with(parent: &OsString) -> Result<(), String> {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
            .map_err(|error| format!("no parent-death signal: {error}"))?;
        let now = rustix::process::getppid().map(Pid::as_raw_nonzero).map(|pid| pid.to_string());
        if now.as_deref() == parent.to_str() { Ok(()) } else { Err("the holder is gone".into()) }
    }

    #[cfg(test)]
    mod tests {
        use super::{Failure, judge};

        #[test]
        fn only_a_bare_ready_is_a_start() {
            for (said, started) in
                [("R", true), ("", false), ("RFno such file", false), ("Ffolder x", false), ("panic", false)]
            {
                assert_eq!(judge(said.as_bytes()).is_ok(), started, "{said:?}");
            }
            assert_eq!(judge(b"RFno such file"), Err(Failure::Other("no such file".into())));
            assert_eq!(judge(b"CFence"), Err(Failure::NoCage("Fence".into())));
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    use super::super::cage::Way;
    use super::super::protocol::Spec;
    use super::{Spawned, main_pid};

    /// Starts the tool in a process group of its own. No stub: there is no parent-death signal to
    /// ask for, and the standard library reports a failed `exec` by itself.
    ///
    /// # Errors
    ///
    /// Text on why the program never ran.
    pub(in super::super) fn spawn(spec: &Spec) -> Result<Spawned, String> {
        if !spec.cage.ways().contains(&Way::Open) {
            return Err(
                "no cage on this system keeps the program from the store. A best-effort cage starts it all the same"
                    .into(),
            );
        }
        if !spec.cwd.is_dir() {
            return Err(format!("folder {}: not a folder", spec.cwd.display()));
        }
        let (stderr, stderr_of_tool) =
            std::io::pipe().map_err(|error| format!("no pipe for standard error: {error}"))?;
        let mut command = Command::new(&spec.argv[0]);
        command.args(&spec.argv[1..]).current_dir(&spec.cwd).env_clear().envs(&spec.env);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(stderr_of_tool).process_group(0);
        let child = command.spawn();
        drop(command);
        let mut child = child.map_err(|error| format!("program {}: {error}", spec.argv[0]))?;
        let main = main_pid(&child)?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the program has no pipes".into());
        };
        Ok(Spawned { main, stdin, stdout, stderr })
    }
}
