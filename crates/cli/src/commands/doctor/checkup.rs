//! What the checks came to.

use serde_json::{Value, json};

use crate::app::App;
use crate::text::visible;

/// What one check came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Ok,
    Warning,
    Problem,
}

impl Verdict {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// What a check is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Area {
    Store,
    Permissions,
    FileSystem,
    Disk,
    File,
    Log,
    Format,
    Witness,
    Workers,
    Runs,
    Tools,
    Values,
    Leftovers,
    Cage,
    Clock,
    Agent,
}

impl Area {
    fn as_str(self) -> &'static str {
        match self {
            Self::Store => "store",
            Self::Permissions => "permissions",
            Self::FileSystem => "file system",
            Self::Disk => "disk",
            Self::File => "file",
            Self::Log => "log",
            Self::Format => "format",
            Self::Witness => "witness",
            Self::Workers => "workers",
            Self::Runs => "runs",
            Self::Tools => "tools",
            Self::Values => "values",
            Self::Leftovers => "leftovers",
            Self::Cage => "cage",
            Self::Clock => "clock",
            Self::Agent => "agent",
        }
    }

    fn is_machine_or_agent(self) -> bool {
        matches!(self, Self::Cage | Self::Clock | Self::Agent)
    }
}

struct Check {
    area: Area,
    verdict: Verdict,
    what: String,
    next: String,
}

/// The checks, in the order in which they were made.
#[derive(Default)]
pub struct Checkup {
    checks: Vec<Check>,
}

impl Checkup {
    /// All is well.
    pub fn ok(&mut self, area: Area, what: impl Into<String>) {
        self.add(area, Verdict::Ok, what.into(), String::new());
    }

    /// It works, and somebody should know.
    pub fn warn(&mut self, area: Area, what: impl Into<String>, next: impl Into<String>) {
        self.add(area, Verdict::Warning, what.into(), next.into());
    }

    /// It does not work, or will not.
    pub fn problem(&mut self, area: Area, what: impl Into<String>, next: impl Into<String>) {
        self.add(area, Verdict::Problem, what.into(), next.into());
    }

    fn add(&mut self, area: Area, verdict: Verdict, what: String, next: String) {
        self.checks.push(Check { area, verdict, what, next });
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.checks.iter().filter(|check| check.verdict == verdict).count()
    }

    /// How many problems there are so far.
    pub fn problems(&self) -> usize {
        self.count(Verdict::Problem)
    }

    pub fn exit_code(&self) -> u8 {
        let problems = self.checks.iter().filter(|check| check.verdict == Verdict::Problem);
        let all: Vec<Area> = problems.map(|check| check.area).collect();
        match all.iter().any(|area| !area.is_machine_or_agent()) {
            true => 7,
            false => u8::from(!all.is_empty()),
        }
    }

    pub fn in_words(&self, app: &App) -> String {
        let mut text = String::new();
        for check in &self.checks {
            let (verdict, area) = (check.verdict.as_str(), check.area.as_str());
            text.push_str(&format!(
                "{verdict:<8} {area:<12} {}\n",
                visible(&check.what).replace('\n', "\n                      ")
            ));
            if !check.next.is_empty() {
                text.push_str(&format!("                      → {}\n", visible(&app.pasted(&check.next))));
            }
        }
        let plural = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let (problems, warnings) = (self.count(Verdict::Problem), self.count(Verdict::Warning));
        text.push_str(&format!("{}, {}\n", plural(problems, "problem"), plural(warnings, "warning")));
        text
    }

    pub fn as_json(&self, app: &App) -> Value {
        let checks = self.checks.iter().map(|check| {
            json!({
                "check": check.area.as_str(),
                "verdict": check.verdict.as_str(),
                "what": check.what,
                "next": app.pasted(&check.next),
            })
        });
        let (problems, warnings) = (self.count(Verdict::Problem), self.count(Verdict::Warning));
        json!({"checks": checks.collect::<Vec<_>>(), "problems": problems, "warnings": warnings})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_of_the_store_goes_before_any_other() {
        let mut checkup = Checkup::default();
        checkup.ok(Area::Store, "there");
        checkup.warn(Area::Disk, "little room", "make room");
        assert_eq!(checkup.exit_code(), 0);
        checkup.problem(Area::Agent, "no program", "install it");
        assert_eq!(checkup.exit_code(), 1);
        checkup.problem(Area::File, "damaged", "put it back");
        assert_eq!(checkup.exit_code(), 7);
    }
}
