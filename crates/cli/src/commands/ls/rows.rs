//! The words of a listing: titles with counts, a row for each run that is shown, and what the others are.

use std::collections::BTreeMap;

use lodestep::core::rules::standing::Status;

use super::{COUNTED, Shown, unheld};
use crate::place::{Place, Placed};
use crate::retries::{Retry, told};
use crate::text::{line, short_id, wrapped};

/// So many characters of an error are shown, or fewer where the row would not fit.
const ERROR: [usize; 4] = [60, 40, 28, 16];

/// Fewer columns than these are not worth a row's labels.
const LEAST_LABELS: usize = 6;

/// Runs of one place.
pub struct Group {
    /// The place.
    pub place: Place,
    /// Those that were read, in the order in which they are shown.
    pub runs: Vec<Placed>,
    /// How many more have the status that most of this place have.
    pub more: usize,
    /// Were not all read whose place this may be?
    pub is_part: bool,
}

/// The listing. On a terminal a row has its columns, and what does not fit goes on below it.
pub fn in_words(
    groups: &[Group],
    retries: &BTreeMap<i64, Vec<Retry>>,
    shown: &Shown,
    columns: Option<usize>,
) -> String {
    let all = groups.iter().flat_map(|group| &group.runs);
    let ids: Vec<&str> = all.map(|run| run.row.run.key.run.as_str()).collect();
    let mut text = String::new();
    for group in groups.iter().filter(|group| group.runs.len() + group.more > 0) {
        let gap = if text.is_empty() { "" } else { "\n" };
        text.push_str(&format!("{gap}{} ({})\n", group.place.title(), count(group)));
        let most = if group.place == Place::Over { shown.over } else { shown.of_each };
        let seen = &group.runs[..most.min(group.runs.len())];
        let cells: Vec<[String; 4]> = seen.iter().map(|run| cells(run, &ids)).collect();
        let width = |at: usize| cells.iter().map(|cells| cells[at].chars().count()).max().unwrap_or(0);
        let widths = [width(0), width(1), width(2), width(3)];
        for (run, cells) in seen.iter().zip(&cells) {
            let head: String =
                cells.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$} ", width = width)).collect();
            let of_run = retries.get(&run.row.run.number).map(Vec::as_slice).unwrap_or_default();
            text.push_str(&in_a_row(&format!("  {head} "), run, of_run, columns));
        }
        text.push_str(&the_others(group, most));
    }
    if text.is_empty() { "no runs\n".to_owned() } else { text }
}

fn count(group: &Group) -> String {
    match group.is_part {
        true => format!("at least {}", group.runs.len()),
        false => counted(group.runs.len() + group.more),
    }
}

fn counted(count: usize) -> String {
    if count > COUNTED { format!("more than {COUNTED}") } else { count.to_string() }
}

fn cells(run: &Placed, ids: &[&str]) -> [String; 4] {
    let row = &run.row;
    let status = if run.place != Place::Over && row.holder.is_some() { "running" } else { row.status.as_str() };
    let id = short_id(row.run.key.run.as_str(), ids).to_owned();
    [id, status.to_owned(), format!("step {}", row.seq), line(&row.agent, 24)]
}

fn in_a_row(head: &str, run: &Placed, retries: &[Retry], columns: Option<usize>) -> String {
    let room = columns.map_or(usize::MAX, |columns| columns.saturating_sub(head.chars().count()));
    let length = |text: &String| text.chars().count();
    let labels: Vec<String> = run.row.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let labels = line(&labels.join(" "), 60);
    let ways: Vec<String> = ERROR.iter().map(|error| line(&why(run, retries, *error), 200)).collect();
    if let Some(why) = ways.iter().find(|why| length(why) <= room) {
        let left = room - length(why);
        let labels = if left >= LEAST_LABELS + 2 { line(&labels, left - 2) } else { String::new() };
        return format!("{}\n", [head, why, "  ", &labels].concat().trim_end());
    }
    // Most of a narrow terminal is better used below.
    let below =
        wrapped(&format!("{}  {labels}", ways[0]), columns.map_or(usize::MAX, |columns| columns.saturating_sub(6)));
    let below: String = below.iter().map(|line| format!("      {}\n", line.trim())).collect();
    format!("{}\n{below}", head.trim_end())
}

/// Why a run is where it is, with errors of at most so many characters.
fn why(run: &Placed, retries: &[Retry], most: usize) -> String {
    let row = &run.row;
    let is_due = run.place == Place::Ready;
    if row.status == Status::Ready {
        return if is_due { unheld(row) } else { row.why.clone() };
    }
    let mut why = told(&row.why, retries, most, is_due);
    for said in &run.said {
        why.push_str(&format!(", {said}"));
    }
    if row.status.is_terminal() && row.has_doubt() {
        return format!("in doubt: {why}");
    }
    if is_due { format!("{why}: due, {}", unheld(row)) } else { why }
}

/// What is not shown run by run: how many of which agent, for what.
fn the_others(group: &Group, shown: usize) -> String {
    let mut kinds: BTreeMap<(String, String), usize> = BTreeMap::new();
    for run in group.runs.iter().skip(shown) {
        *kinds.entry((line(&run.row.agent, 24), kind_of(run).to_owned())).or_default() += 1;
    }
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let most = 10;
    let mut text: String = kinds
        .iter()
        .take(most)
        .map(|((agent, kind), count)| format!("  … {count} more of {agent}  {kind}\n"))
        .collect();
    let told: usize = kinds.iter().take(most).map(|(_, count)| count).sum();
    let rest = group.runs.len().saturating_sub(shown) - told + group.more;
    if rest > 0 {
        text.push_str(&format!("  … {} more\n", counted(rest)));
    }
    text
}

/// A reason without what tells one run's from another's.
fn kind_of(run: &Placed) -> &str {
    let row = &run.row;
    let first = row.why.split([' ', ',', ':']).next().unwrap_or_default();
    match row.status {
        status if status.is_terminal() || status == Status::InDoubt || first.is_empty() => status.as_str(),
        _ => first,
    }
}
