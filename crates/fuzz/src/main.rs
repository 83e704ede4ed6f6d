//! The driver: `cargo xtask fuzz [TARGET...] [--seconds N] [--inputs N] [--seed S]`.
//!
//! Each target is hunted in a process of its own. One that ends without a word leaves the input that ended it in a file,
//! which is made smaller in further processes. What failed is written to `regressions/TARGET/`, or to `--into FOLDER`.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use lodestep_core::Digest;
use lodestep_fuzz::hunt::{Hunt, folder};
use lodestep_fuzz::judge::{Fault, HUNTER, judge};
use lodestep_fuzz::minimize::minimize;
use lodestep_fuzz::targets::{ALL, Target, named};

/// What a thread of the runtime has for a stack, in bytes.
const STACK_BYTES: usize = 2 << 20;

/// A call that takes longer, by the clock on the wall, comes to no end.
const HANGS: Duration = Duration::from_secs(30);

/// So many processes of one target may end before it is left alone.
const ENDS: u64 = 4;

/// So many processes make an input smaller, for so long at most.
const TRIES: usize = 200;
const MINIMIZING: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("fuzz: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn dispatch(args: &[String]) -> Result<bool> {
    match args.split_first() {
        Some((word, [target, file])) if word == "try" => attempt(target, Path::new(file)),
        Some((word, [target, seed, inputs, ms, file, into])) if word == "hunt" => {
            let time = Duration::from_millis(ms.parse()?);
            let hunt = Hunt { seed: seed.parse()?, inputs: inputs.parse()?, time };
            work(the(target)?, hunt, Path::new(file), Path::new(into))
        }
        _ => drive(&Asked::read(args)?),
    }
}

fn the(name: &str) -> Result<&'static Target> {
    let names: Vec<&str> = ALL.iter().map(|target| target.name).collect();
    named(name).with_context(|| format!("no target is called `{name}`; there are {}", names.join(", ")))
}

/// What is to be hunted, and for how long.
struct Asked {
    targets: Vec<&'static Target>,
    hunt: Hunt,
    into: Option<PathBuf>,
}

impl Asked {
    fn read(args: &[String]) -> Result<Self> {
        let hunt = Hunt { seed: 1, inputs: u64::MAX, time: Duration::from_secs(60) };
        let mut asked = Self { targets: Vec::new(), hunt, into: None };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().with_context(|| format!("`{arg}` needs a value"));
            match arg.as_str() {
                "--seconds" => asked.hunt.time = Duration::from_secs(value()?.parse().context("--seconds")?),
                "--inputs" => asked.hunt.inputs = value()?.parse().context("--inputs")?,
                "--seed" => asked.hunt.seed = value()?.parse().context("--seed")?,
                "--into" => asked.into = Some(PathBuf::from(value()?)),
                option if option.starts_with('-') => bail!("there is no option `{option}`"),
                name => asked.targets.push(the(name)?),
            }
        }
        if asked.targets.is_empty() {
            asked.targets = ALL.iter().collect();
        }
        Ok(asked)
    }
}

/// Hunts each target; false when something was found.
fn drive(asked: &Asked) -> Result<bool> {
    let mut sound = true;
    for target in &asked.targets {
        let into = asked.into.clone().unwrap_or_else(|| folder(target));
        let began = Instant::now();
        let (mut inputs, mut ends) = (0, 0);
        loop {
            let left = asked.hunt.time.saturating_sub(began.elapsed());
            let hunt = Hunt { seed: asked.hunt.seed + ends, inputs: asked.hunt.inputs - inputs, time: left };
            let done = hunted(target, hunt, &into)?;
            inputs += done.inputs;
            sound &= done.is_sound;
            ends += 1;
            if done.is_whole || ends >= ENDS {
                break;
            }
        }
        println!("{:<12} {inputs:>10} inputs in {:>4} s", target.name, began.elapsed().as_secs());
    }
    Ok(sound)
}

/// What a process of a hunt came to.
struct Hunted {
    inputs: u64,
    is_sound: bool,
    /// It came to its end by itself.
    is_whole: bool,
}

fn hunted(target: &Target, hunt: Hunt, into: &Path) -> Result<Hunted> {
    let last = tempfile::NamedTempFile::new()?;
    let numbers = [hunt.seed.to_string(), hunt.inputs.to_string(), hunt.time.as_millis().to_string()];
    let mut child = Command::new(std::env::current_exe()?)
        .args(["hunt", target.name])
        .args(numbers)
        .args([last.path(), into])
        .spawn()?;
    let status = child.wait()?;
    let (inputs, input) = left_by(last.path())?;
    if let Some(code @ 0..=1) = status.code() {
        return Ok(Hunted { inputs, is_sound: code == 0, is_whole: true });
    }
    if status.code().is_some() {
        bail!("the hunt of `{}` failed by itself: {status}", target.name);
    }
    let (file, began) = (tempfile::NamedTempFile::new()?, Instant::now());
    let fails = |input: &[u8]| {
        if began.elapsed() > MINIMIZING {
            return false;
        }
        let tried = std::fs::write(file.path(), input).is_ok();
        let mut command = Command::new(std::env::current_exe().unwrap_or_default());
        let status = command.args(["try", target.name]).arg(file.path()).stderr(Stdio::null()).status();
        tried && status.is_ok_and(|status| status.code().is_none())
    };
    report(target, &Fault::Ended(status.to_string()), &minimize(&input, TRIES, fails), into)?;
    Ok(Hunted { inputs, is_sound: false, is_whole: false })
}

/// How many inputs a process had tried, and the last.
fn left_by(path: &Path) -> Result<(u64, Vec<u8>)> {
    let mut bytes = Vec::new();
    File::open(path)?.read_to_end(&mut bytes)?;
    let number = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
    let (Some(inputs), Some(length)) = (number(0), number(8)) else { return Ok((0, Vec::new())) };
    let length = usize::try_from(length)?;
    Ok((inputs, bytes.get(16..16 + length).unwrap_or_default().to_vec()))
}

/// The process of a hunt: each input is in the file before it is tried.
fn work(target: &'static Target, hunt: Hunt, last: &Path, into: &Path) -> Result<bool> {
    let last = File::options().write(true).open(last)?;
    let tried = Arc::new(AtomicU64::new(0));
    watch(Arc::clone(&tried));
    let before = move |input: &[u8]| {
        let inputs = tried.fetch_add(1, Ordering::Relaxed) + 1;
        let head = [inputs.to_le_bytes(), (input.len() as u64).to_le_bytes()].concat();
        // Without it a process that ends is told all the same, only not by which input.
        let _ = last.write_all_at(&head, 0).and_then(|()| last.write_all_at(input, 16));
    };
    let found = on_a_small_stack(move || hunt.run(target, before))?;
    for (fault, input) in &found.faults {
        report(target, fault, input, into)?;
    }
    Ok(found.faults.is_empty())
}

/// One input from a file; false when something is wrong with it.
fn attempt(target: &str, file: &Path) -> Result<bool> {
    let (target, input) = (the(target)?, std::fs::read(file)?);
    watch(Arc::default());
    let judged = on_a_small_stack(move || judge(target, &input))?;
    if let Err(fault) = &judged {
        println!("{}: {fault}", target.name);
    }
    Ok(judged.is_ok())
}

fn on_a_small_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let thread = std::thread::Builder::new().name(HUNTER.to_owned()).stack_size(STACK_BYTES).spawn(work)?;
    thread.join().map_err(|_| anyhow::anyhow!("the driver itself panicked"))
}

/// Ends this process when no further input is tried for long.
fn watch(tried: Arc<AtomicU64>) {
    std::thread::spawn(move || {
        let mut before = u64::MAX;
        loop {
            let now = tried.load(Ordering::Relaxed);
            if now == before {
                std::process::abort();
            }
            before = now;
            std::thread::sleep(HANGS);
        }
    });
}

/// Says what is wrong, and keeps the input.
fn report(target: &Target, fault: &Fault, input: &[u8], into: &Path) -> Result<()> {
    std::fs::create_dir_all(into)?;
    let path = into.join(&Digest::of(input).to_hex()[..16]);
    std::fs::write(&path, input)?;
    println!("{}: {fault}\n  {} bytes in {}", target.name, input.len(), path.display());
    Ok(())
}
