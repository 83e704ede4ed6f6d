//! The tables beside a journal, compared with what the journal gives: run, head, effects, artifacts, requests, inbox.
//!
//! What the journal gives comes from [`Replay`], which draws it as a commit does. Some columns of a head are the store's
//! own and no fold of the journal: who holds the run, how often it was claimed, when it is due. Of those it is checked
//! what they can't be.

use std::fmt::Display;

use lodestep_core::hold::Held;
use lodestep_core::rules::standing::standing_at;
use lodestep_core::{Labels, Result, Timestamp};
use lodestep_store::rows::{Asked, Tables};
use lodestep_store::{ArtifactRow, Beside, EffectRow, Hold, Replay, RunRef, Store};

/// A run that failed is tried again after such a pause at most, and clocks of one machine differ by no more.
const LONGEST_PAUSE_MS: u64 = 120_000;

/// How many rows were compared, and what does not fit.
pub(super) async fn compare(
    store: &dyn Store,
    run: &RunRef,
    replay: &Replay,
    beside: &Beside,
) -> Result<(u64, Vec<String>)> {
    let mut found = Findings::default();
    found.compare_run(run, replay, beside);
    found.compare_head(replay, beside);
    found.compare_due(replay, beside, store.now());
    found.compare_inbox(beside);
    found.compare_effects(&replay.tables.effects, &beside.tables.effects);
    found.compare_artifacts(&replay.tables.artifacts, &beside.tables.artifacts);
    found.compare_keys(&replay.tables, &beside.tables);
    for asked in &replay.tables.requests {
        found.compare_request(store, run, asked).await?;
    }
    Ok((found.rows, found.faults))
}

#[derive(Default)]
struct Findings {
    rows: u64,
    faults: Vec<String>,
}

impl Findings {
    /// Notes both values when they differ.
    fn equal<T: PartialEq + Display>(&mut self, row: impl Display, column: &str, found: &T, journal: &T) {
        if found != journal {
            self.faults.push(format!("{row}: {column} is {found}, and the journal gives {journal}"));
        }
    }

    fn wrong(&mut self, row: impl Display, what: impl Display) {
        self.faults.push(format!("{row}: {what}"));
    }

    fn compare_run(&mut self, run: &RunRef, replay: &Replay, beside: &Beside) {
        let Some(state) = &replay.checkpoint else { return };
        self.rows += 1;
        let row = &beside.row;
        self.equal("table run", "the id", &run.key.run, &state.run);
        self.equal("table run", "the id from its end", &beside.found_as, &state.run.to_string());
        self.equal("table run", "the namespace", &run.key.namespace, &state.namespace);
        self.equal("table run", "the agent", &row.agent, &state.agent);
        let began_with = replay.definition.unwrap_or(state.definition.digest);
        self.equal("table run", "the definition", &row.definition, &began_with);
        self.equal("table run", "the inputs", &row.inputs, &state.inputs.digest);
        self.equal("table run", "the start", &row.started_at, &state.started_at);
        let root = state.lineage.last().map(|root| root.run.to_string());
        let or_none = |root: &Option<String>| root.clone().unwrap_or_else(|| "none".to_owned());
        self.equal("table run", "the root", &or_none(&beside.root), &or_none(&root));
        let listed = |labels: &Labels| format!("{labels:?}");
        self.equal("table run", "the labels", &listed(&row.labels), &listed(&replay.labels));
        self.rows += beside.found_by.len() as u64;
        self.equal("table label", "the labels", &listed(&beside.found_by), &listed(&replay.labels));
    }

    fn compare_head(&mut self, replay: &Replay, beside: &Beside) {
        let (Some(head), Some(state)) = (replay.head(), &replay.checkpoint) else {
            return self.wrong("table journal", "it has no first transition");
        };
        self.rows += 1;
        let row = &beside.row;
        self.equal("table head", "the transition", &row.seq, &head.seq);
        self.equal("table head", "the digest", &row.head, &head.digest);
        self.equal("table head", "the time", &row.updated_at, &head.updated_at);
        self.equal("table head", "the namespace", &beside.listed_in, &state.namespace);
        self.equal("table head", "the last message read", &beside.inbox_read, &head.inbox_read);
        if row.hold.is_none() {
            self.equal("table head", "the status", &row.status.as_str(), &head.status.as_str());
            self.equal("table head", "the reason", &row.why, &head.why);
        }
        if row.epoch < replay.epoch {
            self.wrong(
                "table head",
                format!("the epoch is {}, and the journal was written up to {}", row.epoch, replay.epoch),
            );
        }
        let claims = row.epoch.saturating_sub(replay.outcome_epoch);
        if u64::from(row.crashes) > claims {
            let what = format!("{} crashes, and {claims} claims since the last outcome", row.crashes);
            self.wrong("table head", what);
        }
        if let Some(holder) = row.holder.as_ref().filter(|_| !beside.holder_is_known) {
            self.wrong("table head", format!("the holder is {}, and there is no such worker", holder.0));
        }
    }

    /// When a worker is due for a run is not in its journal, but what it can be at the latest is.
    fn compare_due(&mut self, replay: &Replay, beside: &Beside, now: Timestamp) {
        let (row, Some(state)) = (&beside.row, &replay.checkpoint) else { return };
        let due = row.due.map_or("never".to_owned(), |due| due.to_string());
        if row.holder.is_some() || row.hold == Some(Hold::Undecodable) {
            if row.due.is_some() {
                self.wrong("table head", format!("it is due {due}, and no worker may take it"));
            }
            return;
        }
        let soon = now.plus_ms(LONGEST_PAUSE_MS);
        let at_once = row.inbox > beside.inbox_read || row.hold == Some(Hold::Rewound);
        let latest =
            if at_once { Some(soon) } else { standing_at(state, &Held::default(), now).due.map(|due| due.max(soon)) };
        let fits = match (row.due, latest) {
            (Some(due), Some(latest)) => due <= latest,
            // The end of one of its holds makes it due, and nothing else does.
            (None, Some(_)) => row.hold == Some(Hold::Parked) && !beside.parked_under.is_empty(),
            // A worker that has gone may have left it due for a look.
            (Some(due), None) => due <= soon,
            (None, None) => true,
        };
        if !fits {
            let latest = latest.map_or("never".to_owned(), |latest| format!("{latest} at the latest"));
            self.wrong("table head", format!("it is due {due}, and the journal gives {latest}"));
        }
    }

    fn compare_inbox(&mut self, beside: &Beside) {
        for (place, letter) in (1_u64..).zip(&beside.letters) {
            self.rows += 1;
            let row = format!("table message, position {}", letter.position);
            if letter.position != place {
                self.wrong(&row, format!("the one before it is {}", place - 1));
            }
            if let Err(error) = &letter.message {
                self.wrong(&row, error.what());
            }
        }
        let newest = beside.letters.last().map_or(0, |letter| letter.position);
        self.equal("table head", "the newest message", &beside.row.inbox, &newest);
        let is_cancel = |message: &&lodestep_store::Letter| {
            message.message.as_ref().is_ok_and(lodestep_core::rules::inbox::Message::holds_intents)
        };
        let cancel = beside.letters.iter().rev().find(is_cancel).map(|letter| letter.position);
        if beside.cancel_at != cancel {
            let what = format!("the newest cancel is {:?}, and the inbox holds {cancel:?}", beside.cancel_at);
            self.wrong("table head", what);
        }
    }

    fn compare_effects(&mut self, journal: &[EffectRow], found: &[EffectRow]) {
        for wanted in journal {
            self.rows += 1;
            let row = format!("table effect, action {}", wanted.ordinal);
            let same_row = |row: &&EffectRow| row.ordinal == wanted.ordinal;
            // A row whose action is altered is known by its sameness and its transition.
            let altered = |row: &&EffectRow| row.same == wanted.same && row.seq == wanted.seq;
            match found.iter().find(same_row).or_else(|| found.iter().find(altered)) {
                None => {
                    self.wrong(&row, format!("missing; the journal gives {} at transition {}", wanted.same, wanted.seq))
                }
                Some(row_found) => {
                    self.equal(&row, "the action", &row_found.ordinal, &wanted.ordinal);
                    self.equal(&row, "the sameness", &row_found.same, &wanted.same);
                    self.equal(&row, "the transition", &row_found.seq, &wanted.seq);
                }
            }
        }
        self.equal("table effect", "the number of rows", &found.len(), &journal.len());
    }

    fn compare_artifacts(&mut self, journal: &[ArtifactRow], found: &[ArtifactRow]) {
        for (place, wanted) in journal.iter().enumerate() {
            self.rows += 1;
            let row = format!("table artifact, `{}` version {}", wanted.name.escape_debug(), wanted.version);
            let Some(row_found) = found.get(place) else {
                self.wrong(&row, format!("missing; the journal gives {}", wanted.content.digest));
                continue;
            };
            self.equal(&row, "the name", &row_found.name, &wanted.name);
            self.equal(&row, "the version", &row_found.version, &wanted.version);
            self.equal(&row, "the digest", &row_found.content.digest, &wanted.content.digest);
            self.equal(&row, "the length", &row_found.content.len, &wanted.content.len);
            self.equal(&row, "the transition", &row_found.content.seq, &wanted.content.seq);
        }
        self.equal("table artifact", "the number of rows", &found.len(), &journal.len());
    }

    fn compare_keys(&mut self, journal: &Tables, found: &Tables) {
        for wanted in &journal.keys {
            self.rows += 1;
            let row = format!("table dedupe, action {}", wanted.ordinal);
            let Some(row_found) = found.keys.iter().find(|row| row.ordinal == wanted.ordinal) else {
                self.wrong(&row, format!("missing; the journal gives the key `{}`", wanted.key.escape_debug()));
                continue;
            };
            self.equal(&row, "the key", &row_found.key, &wanted.key);
            self.equal(&row, "the sameness", &row_found.same, &wanted.same);
            if row_found.fate != wanted.fate {
                let what = format!("it is {:?}, and the journal gives {:?}", row_found.fate, wanted.fate);
                self.wrong(&row, what);
            }
        }
        self.equal("table dedupe", "the number of rows", &found.keys.len(), &journal.keys.len());
        self.rows += journal.waits.len() as u64;
        let mut waits = journal.waits.clone();
        waits.sort();
        if waits != found.waits {
            let what = format!("{:?} wait, and the journal gives {waits:?}", found.waits);
            self.wrong("table dedupe_wait", what);
        }
    }

    async fn compare_request(&mut self, store: &dyn Store, run: &RunRef, asked: &Asked) -> Result<()> {
        self.rows += 1;
        let row = format!("table request, {}", asked.name);
        let rows = store.find_requests(&run.key.namespace, &asked.name.to_hex()).await?;
        let Some(found) = rows.first() else {
            self.wrong(&row, format!("missing; the journal gives it for action {}", asked.ordinal));
            return Ok(());
        };
        self.equal(&row, "the run", &found.run.key.run, &run.key.run);
        self.equal(&row, "the action", &found.ordinal, &asked.ordinal);
        let open = |open: bool| if open { "open" } else { "closed" };
        self.equal(&row, "the request", &open(found.open), &open(asked.open));
        Ok(())
    }
}
