//! Starts and transitions.

use std::sync::Arc;

use lodestep_core::rules::standing::standing;
use lodestep_core::{Digest, Result, RunKey, Timestamp, Transition};

use super::state::{Letter, Run, State};
use crate::garbage::large_values;
use crate::refusals;
use crate::retention::superfluous;
use crate::rows::{Head, Rows, Tables, labels_of};
use crate::store::{Adopt, Commit, Committed, JournalRow, RunRef, RunRow, StartRun, Started};

impl State {
    pub(super) fn start(&mut self, start: StartRun, now: Timestamp) -> Result<Started> {
        refusals::check_start(&start)?;
        if let Some(run) = self.find_run(&start.key) {
            if run.row.agent == start.agent && run.row.inputs == start.inputs {
                return Ok(Started::Existing(run.row.clone()));
            }
            return Err(refusals::id_taken(&start, &run.row.agent, &run.row.inputs));
        }
        let unfinished = self.unfinished(&start);
        if start.join_unfinished && !unfinished.is_empty() {
            return Ok(Started::Unfinished(unfinished));
        }
        if let Some(at) = self.removed.get(&start.key) {
            return Err(refusals::removed(&start.key, *at));
        }
        self.refuse_without_origin(&start)?;
        self.files_are_there(&start.transition, &start.key)?;
        let run = self.next_ref(start.key.clone());
        let row = first_row(&start, run.clone(), now);
        self.by_key.insert(start.key, run.number);
        self.runs.push(Run {
            row,
            journal: Vec::new(),
            snapshots: Vec::new(),
            inbox: Vec::new(),
            inbox_read: 0,
            tables: Tables::default(),
            root: start.transition.checkpoint.lineage.last().map(|root| root.run.clone()),
        });
        self.append(&run, start.transition, None, false)?;
        Ok(Started::New(run))
    }

    /// A fork finds in its origin what was done before it.
    fn refuse_without_origin(&self, start: &StartRun) -> Result<()> {
        let Some(origin) = start.transition.checkpoint.lineage.first() else { return Ok(()) };
        let key = RunKey { namespace: start.key.namespace.clone(), run: origin.run.clone() };
        self.find_run(&key).map(drop).ok_or_else(|| refusals::origin_gone(&start.key, &origin.run))
    }

    /// The values that a transition names are there, or come with it.
    fn files_are_there(&self, transition: &Transition, run: &RunKey) -> Result<()> {
        let comes = |digest: &Digest| transition.values.iter().any(|bytes| Digest::of(bytes) == *digest);
        let mut named = large_values(&transition.events).into_iter();
        match named.find(|digest| !self.files.contains_key(digest) && !comes(digest)) {
            Some(missing) => Err(refusals::value_swept(&missing, run)),
            None => Ok(()),
        }
    }

    /// Unfinished runs of the same agent and inputs, newest first.
    fn unfinished(&self, start: &StartRun) -> Vec<RunRow> {
        let alike = |row: &RunRow| {
            row.run.key.namespace == start.key.namespace && row.agent == start.agent && row.inputs == start.inputs
        };
        let rows = self.runs.iter().rev().map(|run| &run.row);
        rows.filter(|row| alike(row) && !row.status.is_terminal()).cloned().collect()
    }

    /// Takes in a run that comes whole from another store.
    pub(super) fn adopt(&mut self, adopt: Adopt) -> Result<RunRef> {
        let state = &adopt.state;
        let key = state.key();
        if self.find_run(&key).is_some() {
            return Err(refusals::is_here(&key));
        }
        if let Some(missing) = adopt.large_values()?.into_iter().find(|digest| !self.files.contains_key(digest)) {
            return Err(refusals::value_swept(&missing, &key));
        }
        let mut inbox = Vec::new();
        for letter in adopt.letters {
            inbox.push(Letter { position: letter.position, id: letter.id, message: letter.message? });
        }
        let run = self.next_ref(key.clone());
        if let Some(taken) = self.taken_by_another(&run, &adopt.tables.key_changes()) {
            return Err(taken);
        }
        let stands = standing(state);
        let head = Head::of(state, &stands);
        let row = RunRow {
            run: run.clone(),
            agent: state.agent.clone(),
            definition: adopt.definition,
            inputs: state.inputs.digest,
            status: head.status,
            why: head.why,
            due: stands.due,
            holder: None,
            seq: head.seq,
            head: head.digest,
            epoch: adopt.epoch,
            crashes: 0,
            started_at: state.started_at,
            labels: adopt.labels,
            updated_at: head.updated_at,
            inbox: inbox.last().map_or(0, |letter| letter.position),
            hold: None,
        };
        self.asked.extend(adopt.tables.requests.iter().map(|asked| (run.number, asked.name)));
        self.by_key.insert(key, run.number);
        self.runs.push(Run {
            row,
            journal: adopt.rows,
            snapshots: vec![(state.seq, state.to_bytes())],
            inbox,
            inbox_read: head.inbox_read,
            root: state.lineage.last().map(|root| root.run.clone()),
            tables: adopt.tables,
        });
        Ok(run)
    }

    pub(super) fn commit(&mut self, commit: Commit, now: Timestamp) -> Result<Committed> {
        let after = &commit.transition.checkpoint;
        let rows = Rows::of(&commit.transition.events, after);
        let head = Head::of(after, &commit.standing);
        let read = head.inbox_read;
        let other = self.taken_by_another(&commit.run, &rows.keys);
        let newest_hold = self.newest_hold();
        let has_kin = self.kin(&commit.run, after.lineage.last().map_or(&after.run, |root| &root.run)).next().is_some();
        self.files_are_there(&commit.transition, &commit.run.key)?;
        let run = self.run_mut(&commit.run)?;
        let holds = run.row.holder.is_some() && run.row.epoch == commit.epoch;
        if !holds || after.seq != run.row.seq + 1 {
            return Err(refusals::lease_lost(&commit.run.key));
        }
        let cancel = run.inbox.iter().any(|letter| letter.position > read && letter.message.holds_intents());
        if rows.yields_to_cancel && cancel {
            return Err(refusals::cancel_unread(&commit.run.key));
        }
        if let Some(error) = other {
            return Err(error);
        }
        if rows.yields_to_hold && newest_hold > commit.known_hold {
            return Err(refusals::hold_unknown(&commit.run.key));
        }
        run.row.seq = head.seq;
        run.row.head = head.digest;
        run.row.updated_at = head.updated_at;
        run.row.status = head.status;
        run.row.why = head.why;
        run.row.hold = None;
        run.inbox_read = read;
        if rows.clears_crashes {
            run.row.crashes = 0;
        }
        if commit.release {
            run.row.crashes = run.row.crashes.saturating_sub(1);
            run.let_go(commit.standing.due, now);
        }
        let committed = Committed { inbox: run.row.inbox, has_kin };
        self.append(&commit.run, Arc::unwrap_or_clone(commit.transition), commit.transcript, commit.snapshot)?;
        Ok(committed)
    }

    /// Adds a transition's rows.
    fn append(
        &mut self,
        run_ref: &RunRef,
        transition: Transition,
        transcript: Option<Vec<u8>>,
        snapshot: bool,
    ) -> Result<()> {
        let rows = Rows::of(&transition.events, &transition.checkpoint);
        let values = self.inline(transition.values);
        let seq = transition.checkpoint.seq;
        for (name, _) in &rows.opened {
            let asked = (run_ref.number, *name);
            if !self.asked.contains(&asked) {
                self.asked.push(asked);
            }
        }
        let run = self.run_mut(run_ref)?;
        run.journal.push(JournalRow { seq, envelope: transition.envelope, values: Some(values), transcript });
        run.tables.take_in(rows);
        if snapshot {
            run.snapshots.push((seq, transition.checkpoint.to_bytes()));
            let seqs: Vec<u64> = run.snapshots.iter().map(|(seq, _)| *seq).collect();
            let gone = superfluous(&seqs);
            run.snapshots.retain(|(seq, _)| !gone.contains(seq));
        }
        Ok(())
    }
}

fn first_row(start: &StartRun, run: RunRef, now: Timestamp) -> RunRow {
    let first = &start.transition.checkpoint;
    let head = Head::of(first, &standing(first));
    RunRow {
        run,
        agent: start.agent.clone(),
        definition: start.definition,
        inputs: start.inputs,
        labels: labels_of(&start.transition),
        status: head.status,
        why: head.why,
        due: Some(now),
        holder: None,
        seq: head.seq,
        head: head.digest,
        epoch: 0,
        crashes: 0,
        started_at: first.started_at,
        updated_at: head.updated_at,
        inbox: 0,
        hold: None,
    }
}
