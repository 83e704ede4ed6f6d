//! `[quota]` and `[limits]`: what a run may spend, and how much of its state is kept at hand.

use std::ops::RangeInclusive;

use lodestep_core::definition::{Limits, QuotaLimits};

use super::duration::{LONGEST_MS, SECOND_MS};
use super::money::micro_usd;
use super::reader::Item;
use super::table::Table;

/// Numbers beyond this are not held exactly by every reader of the stored definition.
const MOST: u64 = 1 << 53;

/// Reads `[quota]`.
pub(super) fn quota(file: &Table<'_>, model_has_price: bool) -> QuotaLimits {
    let item = file.get("quota");
    let Some(table) = item.and_then(|item| item.table("quota", "[quota] with lines such as model_calls = 100")) else {
        return QuotaLimits::default();
    };
    let whole = |key| table.get(key).and_then(|item| item.whole(1..=MOST));
    let time = |key| table.get(key).and_then(|item| item.duration(SECOND_MS..=LONGEST_MS));
    let limits = QuotaLimits {
        total_tokens: whole("total_tokens"),
        input_tokens: whole("input_tokens"),
        output_tokens: whole("output_tokens"),
        usd_micro: table.get("usd").and_then(|item| usd(&item, model_has_price)),
        model_calls: whole("model_calls"),
        tool_calls: whole("tool_calls"),
        active_time_ms: time("active_time"),
        deadline_ms: time("deadline"),
    };
    table.close();
    limits
}

fn usd(item: &Item<'_>, model_has_price: bool) -> Option<u64> {
    if !model_has_price {
        let mend = "add `price = { input = …, output = … }` to [model], in usd per million tokens";
        item.fault("a quota of usd needs the model's price", mend);
    }
    let micro = micro_usd(item)?;
    if micro == 0 {
        item.fault(format!("`{}` can't be 0", item.name), "a run with no money can't ask its model; leave it out");
    }
    Some(micro)
}

/// Reads `[limits]`.
pub(super) fn limits(file: &Table<'_>) -> Limits {
    let standard = Limits::default();
    let item = file.get("limits");
    let Some(table) = item.and_then(|item| item.table("limits", "[limits] with lines such as parallel = 4")) else {
        return standard;
    };
    let whole = |key, bounds: RangeInclusive<u64>, standard: u32| {
        let number = table.get(key).and_then(|item| item.whole(bounds));
        number.and_then(|number| u32::try_from(number).ok()).unwrap_or(standard)
    };
    let limits = Limits {
        recent_actions: whole("recent_actions", 1..=1_024, standard.recent_actions),
        recent_errors: whole("recent_errors", 1..=1_024, standard.recent_errors),
        note_bytes: whole("note_bytes", 64..=65_536, standard.note_bytes),
        notes_bytes: whole("notes_bytes", 64..=262_144, standard.notes_bytes),
        artifacts: whole("artifacts", 1..=4_096, standard.artifacts),
        open_artifacts: whole("open_artifacts", 1..=256, standard.open_artifacts),
        milestones: whole("milestones", 1..=1_024, standard.milestones),
        parallel: whole("parallel", 1..=64, standard.parallel),
        refused_finishes: whole("refused_finishes", 1..=100, standard.refused_finishes),
        loop_repeats: whole("loop_repeats", 2..=1_000, standard.loop_repeats),
        snapshot_every: whole("snapshot_every", 1..=10_000, standard.snapshot_every),
    };
    no_larger(&table, ("note_bytes", limits.note_bytes), ("notes_bytes", limits.notes_bytes));
    no_larger(&table, ("open_artifacts", limits.open_artifacts), ("artifacts", limits.artifacts));
    table.close();
    limits
}

fn no_larger(table: &Table<'_>, part: (&'static str, u32), whole: (&'static str, u32)) {
    if part.1 <= whole.1 {
        return;
    }
    let at = table.get(part.0).or_else(|| table.get(whole.0)).map_or(table.at, |item| item.at);
    let what = format!("`{}` is {}, more than `{}`, which is {}", part.0, part.1, whole.0, whole.1);
    table.faults.add(at, what, format!("lower `{}` or raise `{}`", part.0, whole.0));
}
