//! The project's own chores: `cargo xtask <command>`, one command each.
//!
//! Everything that a contributor or a build machine runs goes through here, so that both run the same thing.
//! Nothing here depends on the product's crates: a chore must run while the product does not compile.
//!
//! # Layout
//!
//! `ci` is the sum of the others; `test`, `tidy` and `licences` are its parts that are more than one cargo
//! command; `mutate` proves that tests can fail; `simulate` plays what can go wrong; `fuzz` sends
//! what nobody meant; `bench` measures; `through_providers` asks models as services are asked; `try_local_model` asks a real
//! one, a very small one. `workspace` knows where things lie, `child` waits for processes and ends them.

mod bench;
mod child;
mod ci;
mod fuzz;
mod licences;
mod mutate;
mod simulate;
mod test;
mod through_providers;
mod tidy;
mod try_local_model;
mod workspace;

use std::process::ExitCode;

use anyhow::{Result, bail};

const USAGE: &str = "\
cargo xtask <command>

  ci                      everything a change must pass: fmt, clippy, doc, tidy, licences, test
  test [ARGS]             every test of the workspace; ARGS go to `cargo test` (-- NAME runs one)
  tidy                    the project's own rules about its sources and documents
  licences                licences, banned crates and sources of every dependency
  through-providers       the tests again, each question to a model asked through the strict model server
  mutate [G4|NAME|--all]  break the product on purpose and see that the named test notices
  simulate [--seeds N]    random simulations with every fault, in release; --seed S plays one again
                          --store memory|sqlite|mixed; --exhaustive kills small agents everywhere
  fuzz [TARGET...]        inputs by chance for all that is read from outside; --seconds N each, --seed S
  try-local-model         runs with a real, very small model on this machine; --decisions N in all
  bench [ROWS]            the benchmarks, in release

cargo xtask <command> --help says what a command takes.";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(args: &[String]) -> Result<()> {
    let Some((command, rest)) = args.split_first() else {
        bail!("no command given\n\n{USAGE}");
    };
    if asks_for_help(rest)
        && let Some(help) = help(command)
    {
        println!("{help}");
        return Ok(());
    }
    match (command.as_str(), rest) {
        ("ci", []) => ci::run(),
        ("test", args) => test::run(args),
        ("through-providers", []) => through_providers::run(),
        ("tidy", []) => tidy::run(),
        ("licences", []) => licences::run(),
        ("mutate", []) => mutate::run("--all"),
        ("mutate", [which]) => mutate::run(which),
        ("simulate", args) => simulate::run(args),
        ("fuzz", args) => fuzz::run(args),
        ("bench", args) => bench::run(args),
        ("try-local-model", args) => try_local_model::run(args),
        ("help" | "--help" | "-h", _) => {
            println!("{USAGE}");
            Ok(())
        }
        (known @ ("ci" | "tidy" | "licences" | "mutate" | "through-providers"), extra) => {
            bail!("`{known}` does not understand `{}`\n\n{USAGE}", extra.join(" "))
        }
        (unknown, _) => bail!("there is no command `{unknown}`\n\n{USAGE}"),
    }
}

/// Is it asked what a command takes? What stands behind `--` is for another program.
fn asks_for_help(args: &[String]) -> bool {
    args.iter().take_while(|arg| *arg != "--").any(|arg| arg == "--help" || arg == "-h")
}

/// What a command takes; `None` for one that there is not.
fn help(command: &str) -> Option<&'static str> {
    match command {
        "test" => Some(test::HELP),
        "mutate" => Some(mutate::HELP),
        "simulate" => Some(simulate::HELP),
        "fuzz" => Some(fuzz::HELP),
        "bench" => Some(bench::HELP),
        "try-local-model" => Some(try_local_model::HELP),
        "ci" | "tidy" | "licences" | "through-providers" => Some(USAGE),
        _ => None,
    }
}
