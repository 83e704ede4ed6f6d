//! Does a run of this agent pass a fault point of that name? A misspelt one would crash nothing, and look like a success.

use lodestep_core::Error;
use lodestep_core::definition::{Definition, StateAct, ToolKind};

use super::names::{instead, shown};
use crate::fault::{Armed, Point, parse};

/// Checks the text that arms a point: a run of this definition can pass it.
///
/// # Errors
///
/// `usage.crash_at` naming the nearest tool, or the points that the tool passes.
pub fn check(definition: &Definition, text: &str) -> Result<(), Error> {
    let fault = |what: String, next: String| Error::new("usage.crash_at", what, next);
    let Armed::Named { tool, point, .. } = parse(text).map_err(|what| fault(what, String::new()))? else {
        return Ok(());
    };
    let is_performed = |kind: &ToolKind| match kind {
        // A finish is performed where a check judges it; the core decides all else that acts on the run's own state.
        ToolKind::State { act } => *act == StateAct::Finish && definition.done.check.is_some(),
        _ => true,
    };
    let performed = definition.tools.iter().filter(|tool| is_performed(&tool.kind));
    let known: Vec<&str> = ["run", "model"].into_iter().chain(performed.map(|tool| tool.name.as_str())).collect();
    if !known.contains(&tool.as_str()) {
        let next = instead(&tool, &known, "names");
        return Err(fault(format!("no tool that is performed is called `{}`", shown(&tool)), next));
    }
    let is_repeatable = definition.tool(&tool).is_some_and(|tool| tool.class.is_repeatable());
    let passed: &[Point] = match tool.as_str() {
        "run" => &[Point::Accepted, Point::Checkpoint],
        "model" => &[Point::Reply, Point::Outcome],
        // A read or idempotent action has no intent of its own.
        _ if is_repeatable => &[Point::Applied, Point::Outcome],
        _ => &[Point::Intent, Point::Applied, Point::Outcome],
    };
    if passed.contains(&point) {
        return Ok(());
    }
    let passed: Vec<String> = passed.iter().map(|point| format!("{tool}:{}", point.as_str())).collect();
    Err(fault(
        format!("`{tool}` never passes the point `{}`", point.as_str()),
        format!("write {}", passed.join(" or ")),
    ))
}
