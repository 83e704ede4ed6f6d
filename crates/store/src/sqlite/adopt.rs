//! A run that comes whole from another store: one transaction inserts all of it or nothing.

use std::sync::Arc;

use lodestep_core::Timestamp;
use lodestep_core::rules::inbox::Message;
use lodestep_core::rules::standing::standing;
use rusqlite::{Connection, params};

use super::commit::files_are_there;
use super::dedupe;
use super::failure::Done;
use super::inbox::Outgoing;
use super::journal::Entry;
use super::remove::next_number;
use super::row::{find_run, from_end, signed};
use super::snapshot::{self, Snapshot};
use super::value::ValueFiles;
use super::{kin, label};
use crate::refusals;
use crate::store::{Adopt, RunRef};

/// The number of no run: SQLite counts rows from 1.
const NOBODY: i64 = 0;

/// Takes it in. A run that was removed here may come back so: its journal says what it did.
pub(super) fn adopt(db: &Connection, adopt: &Adopt, files: &ValueFiles, now: Timestamp) -> Done<RunRef> {
    let key = adopt.state.key();
    if find_run(db, &key)?.is_some() {
        return Err(refusals::is_here(&key).into());
    }
    // What is refused has changed nothing: all that could be refused is judged first.
    files_are_there(files, &adopt.large_values()?, &key)?;
    let key = Arc::new(key);
    let keys = adopt.tables.key_changes();
    if let Some(taken) = dedupe::taken_by_another(db, &RunRef { key: Arc::clone(&key), number: NOBODY }, &keys)? {
        return Err(taken.into());
    }
    let letters: Vec<Message> = adopt.letters.iter().map(|letter| letter.message.clone()).collect::<Result<_, _>>()?;
    let state = &adopt.state;
    let (number, id) = (next_number(db)?, key.run.as_str());
    db.prepare_cached(
        "INSERT INTO run (number, namespace, id, id_from_end, agent, definition, inputs, started_at, labels, root)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )?
    .execute(params![
        number,
        key.namespace,
        id,
        from_end(id),
        state.agent,
        adopt.definition.as_bytes(),
        state.inputs.digest.as_bytes(),
        state.started_at.as_micros(),
        label::to_text(&adopt.labels),
        state.lineage.last().map(|root| root.run.as_str()),
    ])?;
    let run = RunRef { key: Arc::clone(&key), number };
    label::insert(db, &run, &adopt.labels)?;
    insert_head(db, adopt, &run)?;
    kin::mark(db, &run, state.lineage.last().map(|root| &root.run))?;
    for row in &adopt.rows {
        Entry::from_elsewhere(row).append(db, run.number)?;
    }
    insert_tables(db, adopt, &run)?;
    snapshot::insert(db, run.number, signed(state.seq), &Snapshot::of(state))?;
    for (letter, message) in adopt.letters.iter().zip(letters) {
        let (id, body) = (letter.id.clone(), message.to_bytes());
        let outgoing = Outgoing { run: run.key.as_ref().clone(), id, message, body };
        outgoing.insert(db, run.number, letter.position, now)?;
    }
    Ok(run)
}

fn insert_head(db: &Connection, adopt: &Adopt, run: &RunRef) -> Done<()> {
    let stands = standing(&adopt.state);
    let head = crate::rows::Head::of(&adopt.state, &stands);
    db.prepare_cached(
        "INSERT INTO head (run, namespace, epoch, seq, digest, status, why, due_at, crashes, inbox, inbox_read, updated_at)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, 0, ?, ?)",
    )?
    .execute(params![
        run.number,
        run.key.namespace,
        signed(adopt.epoch),
        signed(head.seq),
        head.digest.as_bytes(),
        head.status.to_number(),
        head.why,
        stands.due.map(Timestamp::as_micros),
        signed(head.inbox_read),
        head.updated_at.as_micros(),
    ])?;
    Ok(())
}

fn insert_tables(db: &Connection, adopt: &Adopt, run: &RunRef) -> Done<()> {
    dedupe::change(db, run, &adopt.tables.key_changes())?;
    for effect in &adopt.tables.effects {
        db.prepare_cached("INSERT OR IGNORE INTO effect (run, same, ordinal, seq) VALUES (?, ?, ?, ?)")?
            .execute(params![run.number, effect.same.as_bytes(), effect.ordinal.0, signed(effect.seq)])?;
    }
    for row in &adopt.tables.artifacts {
        let (digest, len, seq) = (row.content.digest, signed(row.content.len), signed(row.content.seq));
        db.prepare_cached("INSERT INTO artifact (run, name, version, digest, len, seq) VALUES (?, ?, ?, ?, ?, ?)")?
            .execute(params![run.number, row.name, row.version, digest.as_bytes(), len, seq])?;
    }
    for asked in &adopt.tables.requests {
        db.prepare_cached("INSERT INTO request (namespace, name, run, ordinal, is_open) VALUES (?, ?, ?, ?, ?)")?
            .execute(params![run.key.namespace, asked.name.as_bytes(), run.number, asked.ordinal.0, asked.open])?;
    }
    Ok(())
}
