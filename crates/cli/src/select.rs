//! Which runs a command is about: the filters that `ls`, `todo` and the words to many runs share.
//!
//! Status, agent, label and time go by the store's indexes. What tool a run's open actions call stands in its state
//! alone: for `--tool` the states of the newest runs are read, and a note says when there were more.

use std::time::Duration;

use lodestep::core::ids::DEFAULT_NAMESPACE;
use lodestep::core::rules::standing::Status;
use lodestep::core::{Error, Result, Timestamp};
use lodestep::store::{Filter, RunRow, Store};

use crate::args::{duration, name_value};
use crate::place::{Place, place};

/// So many runs' states are read for `--tool`, and so many runs are told a word by one command.
pub const MOST: usize = 1_000;

/// How many rows are looked through for those that a live worker holds, or that a person has to say something to.
pub const LOOKED_THROUGH: usize = 10_000;

/// The filters as they are typed; every one that is given has to hold.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Selection {
    /// Only this status: running, ready, waiting, stopped, in-doubt, quarantined, completed, failed, cancelled.
    #[arg(long, value_name = "STATUS")]
    pub status: Vec<String>,
    /// Only runs with an action of this tool that is not settled.
    #[arg(long, value_name = "TOOL")]
    pub tool: Option<String>,
    /// Only this agent's runs.
    #[arg(long, value_name = "AGENT")]
    pub agent: Option<String>,
    /// Only runs with this label; several have to be there together.
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = name_value)]
    pub labels: Vec<(String, String)>,
    /// Only runs that began within this time: 30m, 2h, 7d.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub since: Option<Duration>,
}

/// The filters as they are applied.
pub struct Sieve {
    wanted: Vec<Wanted>,
    tool: Option<String>,
    filter: Filter,
    now: Timestamp,
}

/// What was found.
pub struct Selected {
    /// The runs, newest first; the holder is left out when it is dead.
    pub rows: Vec<RunRow>,
    /// Why there may be more.
    pub note: Option<String>,
}

/// What `--status` takes: a status, or `running` for a run that a live worker holds. `ready` is every run that a worker could go
/// on with and none has, as in a listing: also one that waited, and whose word or time has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Status(Status),
    Running,
}

impl Wanted {
    fn parse(word: &str) -> Result<Self> {
        if word == "running" {
            return Ok(Self::Running);
        }
        let wanted = word.replace(['-', '_'], " ");
        let found = Status::ALL.into_iter().find(|status| status.as_str() == wanted);
        found.map(Self::Status).ok_or_else(|| {
            let known = Status::ALL.iter().map(|status| status.as_str().replace(' ', "-"));
            let known: Vec<String> = ["running".to_owned()].into_iter().chain(known).collect();
            let what = format!("`{}` is no status", word.escape_default());
            Error::new("usage.status", what, format!("one of {}", known.join(", ")))
        })
    }

    fn statuses(self) -> Vec<Status> {
        match self {
            // What nobody knows stays open when the run is over.
            Self::Status(Status::InDoubt) => std::iter::once(Status::InDoubt).chain(over()).collect(),
            Self::Running | Self::Status(Status::Ready) => unfinished(),
            Self::Status(status) => vec![status],
        }
    }

    fn takes(self, row: &RunRow, place: Place) -> bool {
        match self {
            Self::Running => row.holder.is_some() && !row.status.is_terminal(),
            Self::Status(Status::InDoubt) => row.has_doubt(),
            Self::Status(Status::Ready) => place == Place::Ready,
            Self::Status(wanted) => row.status == wanted,
        }
    }
}

/// Every status of a run that is not over.
pub fn unfinished() -> Vec<Status> {
    Status::ALL.into_iter().filter(|status| !status.is_terminal()).collect()
}

/// Every status of a run that is over.
pub fn over() -> Vec<Status> {
    Status::ALL.into_iter().filter(|status| status.is_terminal()).collect()
}

impl Selection {
    /// Was nothing said?
    pub fn is_empty(&self) -> bool {
        let Self { status, tool, agent, labels, since } = self;
        status.is_empty() && tool.is_none() && agent.is_none() && labels.is_empty() && since.is_none()
    }

    /// The filters at this moment.
    ///
    /// # Errors
    ///
    /// `usage.status` names the known ones.
    pub fn sieve(&self, store: &dyn Store) -> Result<Sieve> {
        let wanted = self.status.iter().map(|word| Wanted::parse(word)).collect::<Result<Vec<_>>>()?;
        let ago_us = |ago: Duration| i64::try_from(ago.as_micros()).unwrap_or(i64::MAX);
        let now = store.now();
        let since = self.since.map(|ago| now.as_micros().saturating_sub(ago_us(ago)));
        let filter = Filter {
            agent: self.agent.clone(),
            labels: self.labels.clone(),
            since: since.map(Timestamp::from_micros),
            ..Filter::default()
        };
        Ok(Sieve { wanted, tool: self.tool.clone(), filter, now })
    }
}

impl Sieve {
    /// Does it take a run, as far as its row tells?
    pub fn takes(&self, row: &RunRow) -> bool {
        self.takes_at(row, Place::of(row, self.now))
    }

    /// Does it take a run that is listed at this place?
    pub fn takes_at(&self, row: &RunRow, place: Place) -> bool {
        let is_wanted = self.wanted.is_empty() || self.wanted.iter().any(|wanted| wanted.takes(row, place));
        is_wanted && self.filter.takes(row)
    }

    /// Are all runs of the statuses that it names meant, so that the store's indexes count them?
    pub fn is_indexed(&self) -> bool {
        let in_no_index = |wanted: &Wanted| match wanted {
            Wanted::Running | Wanted::Status(Status::Ready) => true,
            // Beside others it takes some of those that are over.
            Wanted::Status(status) => *status == Status::InDoubt && !self.takes_only_doubts(),
        };
        self.tool.is_none() && !self.wanted.iter().any(in_no_index)
    }

    /// Does it take an action of this tool?
    pub fn takes_tool(&self, tool: &str) -> bool {
        self.tool.as_ref().is_none_or(|wanted| wanted == tool)
    }

    /// Does it take actions of any tool?
    pub fn takes_every_tool(&self) -> bool {
        self.tool.is_none()
    }

    /// The statuses that were said, or these.
    pub fn statuses(&self, otherwise: &[Status]) -> Vec<Status> {
        let said: Vec<Status> = self.wanted.iter().flat_map(|wanted| wanted.statuses()).collect();
        if said.is_empty() {
            return otherwise.to_vec();
        }
        Status::ALL.into_iter().filter(|status| said.contains(status)).collect()
    }

    /// What the store's indexes serve of it, for these statuses.
    pub fn filter(&self, statuses: &[Status], limit: usize) -> Filter {
        Filter {
            statuses: statuses.to_vec(),
            limit: Some(limit),
            in_doubt: self.takes_only_doubts(),
            ..self.filter.clone()
        }
    }

    /// What the store serves of it of the runs that are in doubt, also of those that are over.
    pub fn doubts(&self, limit: usize) -> Filter {
        let statuses = Wanted::Status(Status::InDoubt).statuses();
        Filter { in_doubt: true, ..self.filter(&statuses, limit) }
    }

    fn takes_only_doubts(&self) -> bool {
        !self.wanted.is_empty() && self.wanted.iter().all(|wanted| *wanted == Wanted::Status(Status::InDoubt))
    }

    /// The runs that it takes, newest first, at most so many; of these statuses when none was said.
    ///
    /// # Errors
    ///
    /// The store's errors.
    pub async fn runs(&self, store: &dyn Store, otherwise: &[Status], limit: usize) -> Result<Selected> {
        let most = match (&self.tool, self.is_indexed()) {
            (None, true) => limit,
            (Some(_), _) if self.wanted.is_empty() => limit.max(MOST),
            _ => limit.max(LOOKED_THROUGH),
        };
        let statuses = self.statuses(otherwise);
        let mut rows = alive(store, store.list(DEFAULT_NAMESPACE, &self.filter(&statuses, most + 1)).await?);
        let mut more = rows.len() > most;
        rows.truncate(most);
        if self.wanted.contains(&Wanted::Status(Status::Ready)) {
            let placed = place(store, rows, self.now).await.into_iter();
            rows = placed.filter(|run| self.takes_at(&run.row, run.place)).map(|run| run.row).collect();
        } else {
            rows.retain(|row| self.takes(row));
        }
        if let Some(tool) = &self.tool {
            more |= rows.len() > MOST;
            rows.truncate(MOST);
            rows = calling(store, rows, tool).await;
        }
        let note = match &self.tool {
            Some(tool) if more => {
                Some(format!("only the newest {MOST} runs of the other filters were looked into for {tool}"))
            }
            _ if more || rows.len() > limit => Some(format!("only the newest {limit} are taken; there are more")),
            _ => None,
        };
        rows.truncate(limit);
        Ok(Selected { rows, note })
    }
}

/// The rows without the holders that are dead: those hold nothing any more.
pub fn alive(store: &dyn Store, rows: Vec<RunRow>) -> Vec<RunRow> {
    let mut known = std::collections::BTreeMap::new();
    let mut lives =
        |worker: &lodestep::store::WorkerId| *known.entry(worker.clone()).or_insert_with(|| store.is_alive(worker));
    let kept = rows.into_iter().map(|row| RunRow { holder: row.holder.filter(&mut lives), ..row });
    kept.collect()
}

/// The runs with an action of a tool that is not settled. A run whose state can't be read is none.
async fn calling(store: &dyn Store, rows: Vec<RunRow>, tool: &str) -> Vec<RunRow> {
    let mut calling = Vec::new();
    for row in rows {
        let Ok(checkpoint) = store.load(&row.run.key).await.and_then(|loaded| loaded.checkpoint()) else { continue };
        if checkpoint.pending.values().any(|action| action.tool == tool) {
            calling.push(row);
        }
    }
    calling
}

/// Either a name or filters say what a command is about.
///
/// # Errors
///
/// `usage.selection` when it is neither or both.
pub fn either(named: bool, selection: &Selection, what: &str) -> Result<()> {
    let wrong = match (named, selection.is_empty()) {
        (true, false) => format!("{what} is named, and filters are given"),
        (false, true) => format!("no {what} is named, and no filter given"),
        _ => return Ok(()),
    };
    let next = "name what is meant, or choose it by --status, --tool, --agent, --label or --since";
    Err(Error::new("usage.selection", wrong, next))
}
