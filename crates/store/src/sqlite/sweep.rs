//! Files of values that nothing names, found in one pass and removed in a later one.
//!
//! Several processes may store values, commit and sweep at once. What keeps them apart is the database's one writer. A file
//! is removed inside a write transaction that finds it marked for a day and named by no transition, not even by one that
//! came while the pass read. Whoever stores bytes that are marked does it in a write transaction too, which ends the
//! mark. And a commit looks, in its own, whether the files that it names are there. So a file is never removed under a
//! transition that names it, however long a process was stopped between storing and committing. After a crash in the
//! middle a file may be gone and still be marked; the next pass forgets the mark.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use lodestep_core::draft::root_digest;
use lodestep_core::{Digest, Result, RunKey, Timestamp};
use rusqlite::{Connection, OptionalExtension as _, Transaction, params};

use super::failure::Done;
use super::row::{digest, run_id, time};
use super::settings::Reader;
use super::value::ValueFiles;
use crate::garbage::{Amount, digests_in, is_due};
use crate::refusals;

/// So many files are removed in one transaction: other writers wait no longer than that takes.
pub(super) const BATCH: usize = 128;

/// What a pass saw, of one moment.
pub(super) struct Seen {
    timeline: i64,
    /// The number of the newest transition that was read.
    newest: i64,
    pub(super) named: Amount,
    /// Files that nothing names, with their sizes.
    pub(super) unnamed: BTreeMap<Digest, u64>,
    /// When earlier passes first found one unnamed.
    marks: BTreeMap<Digest, Timestamp>,
}

impl Seen {
    /// Those that an earlier pass found unnamed long enough ago.
    pub(super) fn due(&self, now: Timestamp) -> Vec<(Digest, u64)> {
        let is_due = |digest: &Digest| self.marks.get(digest).is_some_and(|since| is_due(*since, now));
        self.unnamed.iter().filter(|(digest, _)| is_due(digest)).map(|(digest, len)| (*digest, *len)).collect()
    }
}

/// Looks for the files that no journal names. Reads every transition, on a connection of its own.
///
/// # Errors
///
/// `store.corrupt` when a journal is not what it was: what it named can't be told, so nothing is swept.
pub(super) fn look(path: &Path, reader: Reader, files: &ValueFiles) -> Result<Seen> {
    // The files first: one that comes later is not known, and stays.
    let unnamed: BTreeMap<Digest, u64> = files.all()?.into_iter().collect();
    look_into(path, reader, unnamed).map_err(|failure| failure.explain(path))
}

fn look_into(path: &Path, reader: Reader, mut unnamed: BTreeMap<Digest, u64>) -> Done<Seen> {
    let mut db = reader(path)?;
    let moment = db.transaction()?;
    let mut named = Amount::default();
    read_journals(&moment, |envelope| {
        for digest in digests_in(envelope) {
            if let Some(bytes) = unnamed.remove(&digest) {
                named.add(bytes);
            }
        }
    })?;
    let (timeline, newest) =
        moment.query_row("SELECT timeline, (SELECT coalesce(max(n), 0) FROM journal) FROM store", [], |row| {
            <(i64, i64)>::try_from(row)
        })?;
    let mut statement = moment.prepare("SELECT digest, since FROM unnamed_value")?;
    let marks = statement.query_map([], |row| Ok((digest(row, 0)?, time(row, 1)?)))?;
    let marks = marks.collect::<rusqlite::Result<_>>()?;
    Ok(Seen { timeline, newest, named, unnamed, marks })
}

/// Reads every envelope, and that each journal is the one whose head is stored: a name that can't be read any more would
/// else be taken for one that never was.
fn read_journals(db: &Transaction<'_>, mut take: impl FnMut(&[u8])) -> Done<()> {
    let mut heads = db.prepare(
        "SELECT run.number, run.namespace, run.id, head.digest FROM run LEFT JOIN head ON head.run = run.number",
    )?;
    let mut transitions = db.prepare("SELECT envelope FROM journal WHERE run = ? ORDER BY seq")?;
    let mut rows = heads.query([])?;
    let mut read = 0_i64;
    while let Some(row) = rows.next()? {
        let key = RunKey { namespace: row.get(1)?, run: run_id(row, 2)? };
        let mut chain = root_digest(&key);
        let mut envelopes = transitions.query([row.get::<_, i64>(0)?])?;
        while let Some(envelope) = envelopes.next()? {
            let envelope = envelope.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?;
            chain = chain.chain(envelope);
            take(envelope);
            read += 1;
        }
        if row.get::<_, Option<[u8; 32]>>(3)? != Some(*chain.as_bytes()) {
            return Err(refusals::not_swept(&format!("the journal of run {} is not what it was", key.run)).into());
        }
    }
    let all: i64 = db.query_row("SELECT count(*) FROM journal", [], |row| row.get(0))?;
    if all != read {
        return Err(refusals::not_swept(&format!("{} transitions belong to no run", all - read)).into());
    }
    Ok(())
}

/// Marks what is unnamed from now on, and forgets the marks of all else.
pub(super) fn mark(db: &Connection, seen: &Seen, now: Timestamp) -> Done<()> {
    for digest in seen.marks.keys().filter(|digest| !seen.unnamed.contains_key(digest)) {
        unmark(db, digest)?;
    }
    for digest in seen.unnamed.keys() {
        // A clock that was put back would make it wait for longer than a day.
        db.prepare_cached(
            "INSERT INTO unnamed_value (digest, since) VALUES (?1, ?2)
             ON CONFLICT (digest) DO UPDATE SET since = ?2 WHERE since > ?2",
        )?
        .execute(params![digest.as_bytes(), now.as_micros()])?;
    }
    Ok(())
}

/// Removes a batch of those that are due; what went. `None` when runs were removed since the look: then look again.
pub(super) fn take(
    db: &Connection,
    files: &ValueFiles,
    seen: &Seen,
    batch: &[(Digest, u64)],
    now: Timestamp,
) -> Done<Option<Amount>> {
    let timeline: i64 = db.prepare_cached("SELECT timeline FROM store")?.query_row([], |row| row.get(0))?;
    if timeline != seen.timeline {
        return Ok(None);
    }
    let named = named_since(db, seen.newest)?;
    let mut swept = Amount::default();
    for (digest, bytes) in batch.iter().filter(|(digest, _)| !named.contains(digest)) {
        let since = db
            .prepare_cached("SELECT since FROM unnamed_value WHERE digest = ?")?
            .query_row([digest.as_bytes()], |row| time(row, 0))
            .optional()?;
        if since.is_some_and(|since| is_due(since, now)) {
            files.remove(digest)?;
            unmark(db, digest)?;
            swept.add(*bytes);
        }
    }
    Ok(Some(swept))
}

/// What the transitions name that came after a look.
fn named_since(db: &Connection, newest: i64) -> Done<BTreeSet<Digest>> {
    let mut statement = db.prepare_cached("SELECT envelope FROM journal WHERE n > ?")?;
    let mut rows = statement.query([newest])?;
    let mut named = BTreeSet::new();
    while let Some(row) = rows.next()? {
        named.extend(digests_in(row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?));
    }
    Ok(named)
}

/// Did a pass find it unnamed?
pub(super) fn is_marked(db: &Connection, digest: &Digest) -> Done<bool> {
    Ok(db.prepare_cached("SELECT 1 FROM unnamed_value WHERE digest = ?")?.exists([digest.as_bytes()])?)
}

/// Somebody is about to name it: two passes have to find it unnamed anew.
pub(super) fn unmark(db: &Connection, digest: &Digest) -> Done<()> {
    db.prepare_cached("DELETE FROM unnamed_value WHERE digest = ?")?.execute([digest.as_bytes()])?;
    Ok(())
}
