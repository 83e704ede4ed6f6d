//! Listings: runs by status, agent or the end of an id; requests by name.
//!
//! Each goes by an index, and stops at its limit. A filter by agent and status takes whichever of the two names fewer
//! runs, as far as a short look tells.

use std::sync::Arc;

use lodestep_core::rules::standing::Status;
use lodestep_core::{Digest, Ordinal, RunId, RunKey};
use rusqlite::{Connection, Row, params};

use super::failure::Done;
use super::row::{at_most, digest, find_run, from_end, run_columns, run_id, run_row};
use crate::store::{Filter, RequestRow, RunRef, RunRow};

/// An agent of so many runs or more is looked for among the statuses instead.
const MANY_RUNS: i64 = 2_000;

/// Runs, newest first.
pub(super) fn list(db: &Connection, namespace: &str, filter: &Filter) -> Done<Vec<RunRow>> {
    let limit = filter.limit.unwrap_or(usize::MAX);
    if let Some(agent) = &filter.agent
        && (filter.statuses.is_empty() || is_rare(db, namespace, agent)?)
    {
        return by_agent(db, namespace, agent, &filter.statuses, limit);
    }
    let statuses = if filter.statuses.is_empty() { &Status::ALL[..] } else { &filter.statuses };
    let mut rows = Vec::new();
    for status in statuses {
        rows.extend(by_status(db, namespace, *status, filter.agent.as_deref(), limit)?);
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.run.number));
    // A status that was named twice.
    rows.dedup_by_key(|row| row.run.number);
    rows.truncate(limit);
    Ok(rows)
}

fn is_rare(db: &Connection, namespace: &str, agent: &str) -> Done<bool> {
    let count: i64 = db
        .prepare_cached("SELECT count(*) FROM (SELECT 1 FROM run WHERE namespace = ? AND agent = ? LIMIT ?)")?
        .query_row(params![namespace, agent, MANY_RUNS], |row| row.get(0))?;
    Ok(count < MANY_RUNS)
}

fn by_agent(db: &Connection, namespace: &str, agent: &str, statuses: &[Status], limit: usize) -> Done<Vec<RunRow>> {
    let mut statement = db.prepare_cached(concat!(
        "SELECT ",
        run_columns!(),
        " FROM run INDEXED BY run_by_agent JOIN head ON head.run = run.number
         WHERE run.namespace = ? AND run.agent = ? ORDER BY run.number DESC"
    ))?;
    let mut rows = statement.query(params![namespace, agent])?;
    let mut runs = Vec::new();
    while runs.len() < limit
        && let Some(row) = rows.next()?
    {
        let row = run_row(row)?;
        if statuses.is_empty() || statuses.contains(&row.status) {
            runs.push(row);
        }
    }
    Ok(runs)
}

fn by_status(db: &Connection, namespace: &str, status: Status, agent: Option<&str>, limit: usize) -> Done<Vec<RunRow>> {
    let mut statement = db.prepare_cached(concat!(
        "SELECT ",
        run_columns!(),
        " FROM head INDEXED BY head_by_status CROSS JOIN run ON run.number = head.run
         WHERE head.namespace = ?1 AND head.status = ?2 AND (?3 IS NULL OR run.agent = ?3)
         ORDER BY head.run DESC LIMIT ?4"
    ))?;
    let wanted = params![namespace, status.to_number(), agent, at_most(limit)];
    let rows = statement.query_map(wanted, |row| Ok(run_row(row)))?;
    rows.map(|row| row?).collect()
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
