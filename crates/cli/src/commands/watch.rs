//! `watch`: a line for each transition of a run, or of all, from any process. It reads; it moves nothing.
//!
//! The store hints at what is due; a plain step of another process gives no hint, so that a look is taken at least so often.

use std::collections::BTreeMap;
use std::time::Duration;

use lodestep::core::event::Envelope;
use lodestep::core::fold::{fold, fold_first};
use lodestep::core::ids::DEFAULT_NAMESPACE;
use lodestep::core::rules::standing::{Status, standing};
use lodestep::core::{Checkpoint, Result};
use lodestep::store::{Filter, JournalRow, RunRef, RunRow, Store, rows};

use crate::app::App;
use crate::commands::run::stop_signal;
use crate::happened;
use crate::progress::{Progress, as_json};
use crate::select::unfinished;
use crate::text::{line, short_id};

/// Without a hint a look is taken after so long.
const LOOK: Duration = Duration::from_millis(100);

/// Of all runs so many unfinished ones are followed, the newest.
const FOLLOWED: usize = 1_000;

/// So many of those that are over are looked through for one that began and ended between two looks.
const OVER: usize = 100;

/// So many transitions are read at once.
const PAGE: usize = 256;

/// Follows one run to its end, or all until Ctrl-C, which ends nothing but the watching.
pub async fn watch(app: &App, run: Option<String>) -> Result<u8> {
    let runtime = app.open_to_read()?;
    let only = match &run {
        Some(id_end) => Some(app.find(&runtime, id_end).await?.run),
        None => None,
    };
    tokio::select! {
        watched = Watching::new(app, runtime.store(), only).run() => watched.map(|()| 0),
        () = stop_signal() => Ok(130),
    }
}

/// What is followed, and how far it was told.
struct Watching<'a> {
    app: &'a App,
    store: &'a dyn Store,
    only: Option<RunRef>,
    progress: Progress,
    /// `None` before a run's first transition was told.
    known: BTreeMap<i64, (RunRef, Option<Checkpoint>)>,
    newest: Option<i64>,
}

impl<'a> Watching<'a> {
    fn new(app: &'a App, store: &'a dyn Store, only: Option<RunRef>) -> Self {
        Self { app, store, only, progress: Progress::new(None, true), known: BTreeMap::new(), newest: None }
    }

    async fn run(mut self) -> Result<()> {
        let mut changes = self.store.changes();
        loop {
            changes.mark_unchanged();
            let rows = self.rows().await?;
            let is_first = self.newest.is_none();
            for row in &rows {
                self.meet(row, is_first).await?;
            }
            self.newest = rows.iter().map(|row| row.run.number).max().max(self.newest).or(Some(0));
            let known: Vec<i64> = self.known.keys().copied().collect();
            for number in known {
                let row = rows.iter().find(|row| row.run.number == number);
                self.catch_up(number, row).await?;
            }
            if self.only.is_some() && self.known.is_empty() {
                return Ok(());
            }
            // The sender lives as long as the store: this ends by a hint or by the time.
            let _ = tokio::time::timeout(LOOK, changes.changed()).await;
        }
    }

    async fn rows(&self) -> Result<Vec<RunRow>> {
        if let Some(only) = &self.only {
            return self.store.find(DEFAULT_NAMESPACE, only.key.run.as_str(), 1).await;
        }
        let filter = |statuses, limit| Filter { statuses, limit: Some(limit), ..Filter::default() };
        let over = Status::ALL.into_iter().filter(|status| status.is_terminal()).collect();
        let mut rows = self.store.list(DEFAULT_NAMESPACE, &filter(unfinished(), FOLLOWED)).await?;
        rows.extend(self.store.list(DEFAULT_NAMESPACE, &filter(over, OVER)).await?);
        Ok(rows)
    }

    /// A run that was there before is told from now on, one that begins later from its start.
    async fn meet(&mut self, row: &RunRow, is_first: bool) -> Result<()> {
        let is_new = self.newest.is_some_and(|newest| row.run.number > newest);
        if self.known.contains_key(&row.run.number) || !(is_first || is_new) {
            return Ok(());
        }
        if is_first && row.status.is_terminal() && self.only.is_none() {
            return Ok(());
        }
        let from = match is_first {
            true => match self.store.load(&row.run.key).await.and_then(|loaded| loaded.checkpoint()) {
                Ok(checkpoint) => Some(checkpoint),
                Err(error) => return self.lost(&row.run, &error),
            },
            false => None,
        };
        if let Some(checkpoint) = &from {
            self.know(&row.run, checkpoint).await;
            self.tell_where(row, checkpoint);
        }
        self.known.insert(row.run.number, (row.run.clone(), from));
        Ok(())
    }

    /// Names the actions that were proposed before, as their own lines would.
    async fn know(&self, run: &RunRef, checkpoint: &Checkpoint) {
        for action in checkpoint.pending.values() {
            let arguments = self.store.values(run, &[action.arguments]).await.unwrap_or_default();
            let arguments = arguments.get(&action.arguments.digest).map(Vec::as_slice).unwrap_or_default();
            self.progress.know(&run.key, action.ordinal, &action.tool, arguments);
        }
    }

    async fn catch_up(&mut self, number: i64, row: Option<&RunRow>) -> Result<()> {
        let Some((run, mut state)) = self.known.remove(&number) else { return Ok(()) };
        let seq = |state: &Option<Checkpoint>| state.as_ref().map_or(0, |state| state.seq);
        // What has left the listing has ended: its journal tells how.
        while row.is_none_or(|row| row.seq > seq(&state)) {
            let page = self.store.journal(&run, seq(&state) + 1, PAGE).await?;
            if page.is_empty() {
                break;
            }
            for transition in &page {
                if let Err(error) = self.tell(&run, &mut state, transition) {
                    return self.lost(&run, &error);
                }
            }
        }
        let is_over = state.as_ref().is_some_and(Checkpoint::is_over);
        if !is_over && row.is_some() {
            self.known.insert(number, (run, state));
        }
        Ok(())
    }

    fn tell(&self, run: &RunRef, state: &mut Option<Checkpoint>, transition: &JournalRow) -> Result<()> {
        let envelope = match state {
            Some(state) => fold(state, &transition.envelope)?,
            None => {
                let (first, envelope) = fold_first(&transition.envelope)?;
                *state = Some(first);
                envelope
            }
        };
        if let Some(after) = state {
            self.print(run, &envelope, transition.values.as_deref().unwrap_or_default(), after);
        }
        Ok(())
    }

    fn print(&self, run: &RunRef, envelope: &Envelope, values: &[Vec<u8>], after: &Checkpoint) {
        let told = self.progress.told(&run.key, &envelope.events, values, after);
        if self.app.json {
            let entry = as_json(&run.key, &envelope.events, &told, after);
            return self.app.print(&format!("{entry}\n"));
        }
        let stands = standing(after);
        let why = rows::why(&stands);
        let stands = match stands.status {
            Status::Ready => String::new(),
            status if why.is_empty() => format!("  [{}]", status.as_str()),
            status => format!("  [{}: {}]", status.as_str(), line(&why, 80)),
        };
        let id = short_id(run.key.run.as_str(), &[]);
        let what = if told.is_empty() { happened::in_words(&envelope.events) } else { told.join("; ") };
        self.app.print(&format!("{id}  step {:<4} {}{stands}\n", envelope.seq, line(&what, 200)));
    }

    /// Where a run stands when it is first met.
    fn tell_where(&self, row: &RunRow, checkpoint: &Checkpoint) {
        let id = short_id(row.run.key.run.as_str(), &[]);
        let status = if row.holder.is_some() { "running" } else { row.status.as_str() };
        lodestep::note!("{id}  at step {} of {}: {status}", checkpoint.seq, line(&row.agent, 24));
    }

    /// A run that can't be read is named, and followed no more.
    fn lost(&self, run: &RunRef, error: &lodestep::core::Error) -> Result<()> {
        lodestep::note!("{}  can't be followed: {} [{}]", run.key.run, error.what(), error.code());
        Ok(())
    }
}
