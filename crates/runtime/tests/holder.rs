//! Tools under holders, with real processes (scenarios TOL-11, TOL-13, EFF-02).
//!
//! This test has a main of its own, because the binary that runs it is also its holder, its stub
//! and, for the cases that kill one, its worker. It takes a filter, `--exact` and `--list` like any
//! other test.

mod holder_cases;

use std::panic::catch_unwind;
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    if let Some(code) = lodestep::process::hidden_main() {
        return code;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == [holder_cases::WORKER_ARGUMENT, holder_cases::OPEN_FILES] {
        holder_cases::list_open_files();
        return ExitCode::SUCCESS;
    }
    if let [first, marker, lock_file] = arguments.as_slice()
        && first == holder_cases::WORKER_ARGUMENT
    {
        holder_cases::work(marker, lock_file);
        return ExitCode::SUCCESS;
    }
    let flag = |name: &str| arguments.iter().any(|argument| argument == name);
    let filters: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let wanted = |name: &str| {
        let matches = |filter: &&String| {
            if flag("--exact") { name == *filter } else { name.contains(filter.as_str()) }
        };
        !flag("--ignored") && (filters.is_empty() || filters.iter().any(matches))
    };
    let all = holder_cases::cases();
    let cases: Vec<_> = all.iter().filter(|(name, _)| wanted(name)).copied().collect();
    if flag("--list") {
        cases.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    run(&cases, all.len() - cases.len())
}

fn run(cases: &[(&str, fn())], filtered_out: usize) -> ExitCode {
    let started = Instant::now();
    println!("\nrunning {} tests", cases.len());
    let mut failed = 0;
    for (name, case) in cases {
        let passed = catch_unwind(*case).is_ok();
        println!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
        failed += usize::from(!passed);
    }
    println!(
        "\ntest result: {}. {} passed; {failed} failed; 0 ignored; 0 measured; {filtered_out} filtered out; finished in {:.2}s\n",
        if failed == 0 { "ok" } else { "FAILED" },
        cases.len() - failed,
        started.elapsed().as_secs_f64(),
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(101) }
}
