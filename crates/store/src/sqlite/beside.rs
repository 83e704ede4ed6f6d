//! What stands beside the journals, as it is stored, for whoever compares it with what the journals give.

use lodestep_core::rules::standing::Status;
use lodestep_core::{RunId, RunKey};
use rusqlite::{Connection, Row, params};

use super::failure::Done;
use super::inbox::letters;
use super::load::{artifacts, effects};
use super::row::{from_end, run_columns, run_row, unsigned};
use super::{dedupe, hold, label, piece};
use crate::audit::{Audit, Beside};
use crate::refusals;
use crate::rows::Tables;
use crate::store::RunRef;

/// One run, of the moment of the open transaction.
pub(super) fn beside(db: &Connection, run: &RunRef) -> Done<Beside> {
    let mut statement = db.prepare_cached(concat!(
        "SELECT ",
        run_columns!(),
        ", run.id_from_end, head.namespace, head.inbox_read, head.cancel_at,
             head.holder IS NULL OR EXISTS (SELECT 1 FROM worker WHERE worker.id = head.holder), run.root
         FROM run JOIN head ON head.run = run.number WHERE run.number = ?"
    ))?;
    let mut rows = statement.query([run.number])?;
    let Some(row) = rows.next()? else { return Err(refusals::not_found(&run.key).into()) };
    Ok(Beside {
        row: run_row(row)?,
        found_as: from_end(&row.get::<_, String>(21)?),
        listed_in: row.get(22)?,
        inbox_read: unsigned(row, 23)?,
        cancel_at: row.get::<_, Option<i64>>(24)?.map(i64::unsigned_abs),
        found_by: label::of_run(db, run)?,
        root: row.get(26)?,
        parked_under: hold::parked_under(db, run)?,
        holder_is_known: row.get(25)?,
        tables: Tables {
            effects: effects(db, run, None)?,
            artifacts: artifacts(db, run)?,
            requests: Vec::new(),
            keys: dedupe::of_run(db, run)?,
            waits: dedupe::waits(db, run)?,
        },
        letters: letters(db, run, 0)?,
    })
}

/// Every run, and what belongs to none, of the moment of the open transaction.
pub(super) fn audit(db: &Connection) -> Done<Audit> {
    let mut audit = Audit::default();
    let mut statement = db.prepare(
        "SELECT run.number, run.namespace, run.id, head.run IS NULL, head.status
         FROM run LEFT JOIN head ON head.run = run.number ORDER BY run.number",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        audit_run(&mut audit, row)?;
    }
    for table in [
        "head",
        "journal",
        "snapshot",
        "message",
        "request",
        "effect",
        "artifact",
        "label",
        "parked",
        "dedupe",
        "dedupe_wait",
    ] {
        let orphans = format!("SELECT DISTINCT run FROM {table} WHERE run NOT IN (SELECT number FROM run)");
        let mut statement = db.prepare(&orphans)?;
        for number in statement.query_map([], |row| row.get::<_, i64>(0))? {
            audit.strays.push(format!("table {table}: a row belongs to run number {}, and there is none", number?));
        }
    }
    audit.strays.extend(piece::strays(db)?);
    let mut statement = db.prepare("SELECT run, hold FROM parked WHERE hold NOT IN (SELECT n FROM hold)")?;
    for row in statement.query_map([], |row| <(i64, i64)>::try_from(row))? {
        let (run, number) = row?;
        audit.strays.push(format!("table parked: run number {run} is parked under hold {number}, and there is none"));
    }
    let unmarked =
        "SELECT run.id FROM run JOIN head ON head.run = run.number WHERE NOT has_kin AND (run.root IS NOT NULL
         OR EXISTS (SELECT 1 FROM run AS fork WHERE fork.root = run.id AND fork.namespace = run.namespace))";
    for id in db.prepare(unmarked)?.query_map([], |row| row.get::<_, String>(0))? {
        audit
            .strays
            .push(format!("table head: run {} has another run in its lineage, and its row says that it has none", id?));
    }
    let named = "SELECT count(*) = 1 AND sum(length(name) = 32 AND name NOT GLOB '*[^0-9a-f]*') = 1 FROM store";
    if !db.query_row(named, [], |row| row.get::<_, Option<bool>>(0))?.unwrap_or_default() {
        audit.strays.push("table store: it is not one row with a name of 32 hexadecimal digits".to_owned());
    }
    let mut statement = db.prepare("SELECT run, namespace FROM request WHERE is_open NOT IN (0, 1)")?;
    for row in statement.query_map(params![], |row| <(i64, String)>::try_from(row))? {
        audit.strays.push(format!("table request: a row of run number {} is neither open nor closed", row?.0));
    }
    Ok(audit)
}

fn audit_run(audit: &mut Audit, row: &Row<'_>) -> Done<()> {
    let (number, namespace, id): (i64, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
    let Ok(run) = RunId::parse(&id) else {
        audit.strays.push(format!("table run: run number {number} has the id `{}`, which is none", id.escape_debug()));
        return Ok(());
    };
    if row.get(3)? {
        audit.strays.push(format!("table head: run {id} has no row"));
        return Ok(());
    }
    let status: i64 = row.get(4)?;
    if u8::try_from(status).ok().and_then(Status::from_number).is_none() {
        audit.strays.push(format!("table head: the status of run {id} is {status}, which is none"));
        return Ok(());
    }
    audit.runs.push(RunRef { key: std::sync::Arc::new(RunKey { namespace, run }), number });
    Ok(())
}
