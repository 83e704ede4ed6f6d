//! Listings: runs by status, agent, label or the end of an id; requests by name.
//!
//! Each goes by an index, and stops at its limit. A filter by several takes the one that names few runs, as far as a
//! short look tells.

use std::sync::Arc;

use lodestep_core::rules::standing::Status;
use lodestep_core::{Digest, Ordinal, RunId, RunKey};
use rusqlite::{Connection, Row, ToSql, params, params_from_iter};

use super::failure::Done;
use super::row::{at_most, digest, find_run, from_end, run_columns, run_id, run_row};
use crate::store::{Filter, RequestRow, RunRef, RunRow};

/// An agent or a label of so many runs or more is looked for among the statuses instead.
const MANY_RUNS: i64 = 2_000;

/// Numbers follow the order of starts; the clocks behind their times may differ by so much, in milliseconds.
const CLOCKS_DIFFER_MS: u64 = 3_600_000;

/// Runs, newest first.
pub(super) fn list(db: &Connection, namespace: &str, filter: &Filter) -> Done<Vec<RunRow>> {
    let limit = filter.limit.unwrap_or(usize::MAX);
    if let Some((name, value)) = filter.labels.first()
        && (filter.statuses.is_empty() || is_rare(db, LABELLED, &[&namespace, name, value])?)
    {
        return taken(db, BY_LABEL, &[&namespace, name, value], filter, limit);
    }
    if let Some(agent) = &filter.agent
        && (filter.statuses.is_empty() || is_rare(db, OF_AGENT, &[&namespace, agent])?)
    {
        return taken(db, BY_AGENT, &[&namespace, agent], filter, limit);
    }
    let mut rows = Vec::new();
    let by_status = if filter.in_doubt { BY_STATUS_WITH_REASON } else { BY_STATUS };
    for status in statuses(filter) {
        rows.extend(taken(db, by_status, &[&namespace, &status.to_number()], filter, limit)?);
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.run.number));
    // A status that was named twice.
    rows.dedup_by_key(|row| row.run.number);
    rows.truncate(limit);
    Ok(rows)
}

/// How many runs a filter shows; counting ends behind `most`.
pub(super) fn count(db: &Connection, namespace: &str, filter: &Filter, most: usize) -> Done<usize> {
    let behind = most.saturating_add(1);
    let by_row = filter.in_doubt || filter.since.or(filter.still_since).is_some();
    if filter.agent.is_some() || !filter.labels.is_empty() || by_row {
        return Ok(list(db, namespace, &Filter { limit: Some(behind), ..filter.clone() })?.len());
    }
    let mut statuses = statuses(filter).to_vec();
    statuses.sort_unstable();
    statuses.dedup();
    let mut found = 0;
    for status in statuses {
        let rows: i64 = db
            .prepare_cached(
                "SELECT count(*) FROM
                 (SELECT 1 FROM head INDEXED BY head_by_status WHERE namespace = ? AND status = ? LIMIT ?)",
            )?
            .query_row(params![namespace, status.to_number(), at_most(behind)], |row| row.get(0))?;
        found += usize::try_from(rows).unwrap_or(behind);
    }
    Ok(found.min(behind))
}

fn statuses(filter: &Filter) -> &[Status] {
    if filter.statuses.is_empty() { &Status::ALL } else { &filter.statuses }
}

const OF_AGENT: &str = "SELECT count(*) FROM (SELECT 1 FROM run WHERE namespace = ? AND agent = ? LIMIT ?)";

const LABELLED: &str =
    "SELECT count(*) FROM (SELECT 1 FROM label WHERE namespace = ? AND name = ? AND value = ? LIMIT ?)";

fn is_rare(db: &Connection, counting: &str, wanted: &[&dyn ToSql]) -> Done<bool> {
    let wanted = params_from_iter(wanted.iter().copied().chain([&MANY_RUNS as &dyn ToSql]));
    let count: i64 = db.prepare_cached(counting)?.query_row(wanted, |row| row.get(0))?;
    Ok(count < MANY_RUNS)
}

const BY_LABEL: &str = concat!(
    "SELECT ",
    run_columns!(),
    " FROM label CROSS JOIN run ON run.number = label.run CROSS JOIN head ON head.run = run.number
     WHERE label.namespace = ? AND label.name = ? AND label.value = ? ORDER BY label.run DESC"
);

const BY_AGENT: &str = concat!(
    "SELECT ",
    run_columns!(),
    " FROM run INDEXED BY run_by_agent JOIN head ON head.run = run.number
     WHERE run.namespace = ? AND run.agent = ? ORDER BY run.number DESC"
);

const BY_STATUS: &str = concat!(
    "SELECT ",
    run_columns!(),
    " FROM head INDEXED BY head_by_status CROSS JOIN run ON run.number = head.run
     WHERE head.namespace = ? AND head.status = ? ORDER BY head.run DESC"
);

/// Of many runs that are over few are in doubt: the others are passed over where their heads are read.
const BY_STATUS_WITH_REASON: &str = concat!(
    "SELECT ",
    run_columns!(),
    " FROM head INDEXED BY head_by_status CROSS JOIN run ON run.number = head.run
     WHERE head.namespace = ? AND head.status = ? AND head.why <> '' ORDER BY head.run DESC"
);

/// Of the runs that an index names, newest first, those that the filter takes; looks no further than it has to.
fn taken(db: &Connection, by: &str, wanted: &[&dyn ToSql], filter: &Filter, limit: usize) -> Done<Vec<RunRow>> {
    let mut statement = db.prepare_cached(by)?;
    let mut rows = statement.query(wanted)?;
    let mut runs = Vec::new();
    while runs.len() < limit
        && let Some(row) = rows.next()?
    {
        let row = run_row(row)?;
        if filter.since.is_some_and(|since| row.started_at.plus_ms(CLOCKS_DIFFER_MS) < since) {
            break;
        }
        if filter.takes(&row) {
            runs.push(row);
        }
    }
    Ok(runs)
}

/// The runs whose id ends so; a whole id finds just that one.
pub(super) fn find(db: &Connection, namespace: &str, id_end: &str, limit: usize) -> Done<Vec<RunRow>> {
    if let Ok(run) = RunId::parse(id_end)
        && let Some(row) = find_run(db, &RunKey { namespace: namespace.to_owned(), run })?
    {
        return Ok(vec![row]);
    }
    let mut statement = db.prepare_cached(concat!(
        "SELECT ",
        run_columns!(),
        " FROM run JOIN head ON head.run = run.number
         WHERE run.namespace = ?1 AND run.id_from_end >= ?2 AND run.id_from_end < ?2 || char(127) LIMIT ?3"
    ))?;
    let wanted = params![namespace, from_end(id_end), at_most(limit)];
    let rows = statement.query_map(wanted, |row| Ok(run_row(row)))?;
    let mut rows = rows.map(|row| row?).collect::<Done<Vec<_>>>()?;
    rows.sort_by_key(|row| std::cmp::Reverse(row.run.number));
    Ok(rows)
}

/// Requests that are open, oldest first.
pub(super) fn open_requests(db: &Connection, namespace: &str, limit: usize) -> Done<Vec<RequestRow>> {
    let mut statement = db.prepare_cached(
        "SELECT request.name, request.run, request.ordinal, request.is_open, run.id
         FROM request INDEXED BY request_open JOIN run ON run.number = request.run
         WHERE request.namespace = ? AND request.is_open = 1 ORDER BY request.n LIMIT ?",
    )?;
    let rows = statement.query_map(params![namespace, at_most(limit)], |row| Ok(request_row(row, namespace)))?;
    rows.map(|row| row?).collect()
}

/// Requests whose name's hex begins so.
pub(super) fn find_requests(db: &Connection, namespace: &str, name_start: &str) -> Done<Vec<RequestRow>> {
    let Some((first, last)) = bounds(name_start) else { return Ok(Vec::new()) };
    let mut statement = db.prepare_cached(
        "SELECT request.name, request.run, request.ordinal, request.is_open, run.id
         FROM request JOIN run ON run.number = request.run
         WHERE request.namespace = ? AND request.name BETWEEN ? AND ? ORDER BY request.n",
    )?;
    let rows = statement.query_map(params![namespace, first, last], |row| Ok(request_row(row, namespace)))?;
    rows.map(|row| row?).collect()
}

fn request_row(row: &Row<'_>, namespace: &str) -> Done<RequestRow> {
    let key = RunKey { namespace: namespace.to_owned(), run: run_id(row, 4)? };
    let run = RunRef { key: Arc::new(key), number: row.get(1)? };
    Ok(RequestRow { name: digest(row, 0)?, run, ordinal: Ordinal(row.get(2)?), open: row.get(3)? })
}

/// The lowest and the highest digest whose hex begins so; `None` when none does.
fn bounds(start: &str) -> Option<([u8; 32], [u8; 32])> {
    let is_hex = start.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    if !is_hex || start.len() > 64 {
        return None;
    }
    let filled = |digit: char| {
        let hex: String = start.chars().chain(std::iter::repeat(digit)).take(64).collect();
        Digest::from_hex(&hex).map(|digest| *digest.as_bytes())
    };
    Some((filled('0')?, filled('f')?))
}
