//! Where a run is listed: whom or what it waits for. A row tells most of it; what words that no worker has read come to, and
//! whether a hold has ended, stands in the run's state.

use lodestep::core::Timestamp;
use lodestep::core::rules::remind;
use lodestep::core::rules::standing::{Reason, Standing, Status, standing};
use lodestep::inspect::{self, Opened};
use lodestep::store::rows::why;
use lodestep::store::{RunRow, Store};

use crate::people;
use crate::select::MOST;

/// The groups of a listing, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A person has to say something.
    Person,
    /// For a time, a signal, another run, or the end of a hold.
    Waiting,
    /// A worker can go on with it, and none has it.
    Ready,
    /// A worker has it.
    Running,
    /// It has ended.
    Over,
}

impl Place {
    /// Every place, in order.
    pub const ALL: [Self; 5] = [Self::Person, Self::Waiting, Self::Ready, Self::Running, Self::Over];

    /// The title of its group.
    pub fn title(self) -> &'static str {
        match self {
            Self::Person => "needs you",
            Self::Waiting => "waiting",
            Self::Ready => "ready",
            Self::Running => "running",
            Self::Over => "over",
        }
    }

    /// The place of most runs of a status.
    pub fn of_most(status: Status) -> Self {
        match status {
            Status::InDoubt | Status::Quarantined | Status::Stopped => Self::Person,
            Status::Waiting => Self::Waiting,
            Status::Ready => Self::Ready,
            Status::Completed | Status::Failed | Status::Cancelled => Self::Over,
        }
    }

    /// As far as a row tells, whose holder is alive.
    pub fn of(row: &RunRow, now: Timestamp) -> Self {
        match row.status {
            // What nobody knows stays open when the run is over.
            status if status.is_terminal() => {
                if row.has_doubt() {
                    Self::Person
                } else {
                    Self::Over
                }
            }
            _ if is_due(row, now) => Self::Ready,
            Status::Waiting if asks_a_person(row) => Self::Person,
            Status::Waiting | Status::Ready if row.holder.is_some() => Self::Running,
            status => Self::of_most(status),
        }
    }
}

/// A run with its place.
#[derive(Clone, Debug)]
pub struct Placed {
    /// Its row; of one that a hold kept, which has ended, its status and reasons are those without it.
    pub row: RunRow,
    /// Its place.
    pub place: Place,
    /// What was said to it that no worker has read, in words; mostly nothing.
    pub said: Vec<String>,
}

/// Gives runs their places. The states of the first thousand that a worker is due for are read where rows don't tell enough.
pub async fn place(store: &dyn Store, rows: Vec<RunRow>, now: Timestamp) -> Vec<Placed> {
    let mut placed = Vec::with_capacity(rows.len());
    let mut read = 0;
    for row in rows {
        let mut run = Placed { place: Place::of(&row, now), row, said: Vec::new() };
        let is_open = run.row.status != Status::Waiting || asks_a_person(&run.row) || is_parked(&run.row);
        if is_open && is_due(&run.row, now) && read < MOST {
            read += 1;
            // One that can't be read is where its row says.
            if let Ok(opened) = inspect::open(store, &run.row.run.key).await {
                look_ahead(&mut run, &opened, now);
            }
        }
        placed.push(run);
    }
    placed
}

/// What becomes of a run once its words are read.
fn look_ahead(run: &mut Placed, opened: &Opened, now: Timestamp) {
    let ahead = if opened.unread.is_empty() { opened.standing.clone() } else { standing(&opened.ahead) };
    if is_parked(&run.row) && opened.unread.is_empty() {
        run.row.status = ahead.status;
        run.row.why = why(&ahead);
    }
    let answers = people::open_requests(opened).into_iter();
    run.said = answers.filter_map(|(_, request, _)| people::answered(opened, &request.name)).collect();
    // What a worker is due for may be to remind that person, or to end a request that nobody answered.
    let is_told = !opened.unread.is_empty() || !remind::due(&opened.checkpoint, now).is_empty();
    let is_over_in_time = ahead.status == Status::Waiting && !is_told;
    if needs_a_person(&ahead) && !is_over_in_time {
        run.place = Place::Person;
        if !opened.unread.is_empty() && run.said.is_empty() {
            run.said.push("a word has come that no worker has read".to_owned());
        }
    }
}

fn needs_a_person(stands: &Standing) -> bool {
    let asks = |reason: &Reason| matches!(reason, Reason::Approval { .. } | Reason::Answer { .. });
    match stands.status {
        Status::InDoubt | Status::Quarantined | Status::Stopped => true,
        Status::Waiting => stands.reasons.iter().any(asks),
        _ => false,
    }
}

/// Is a worker due for a run that waited or stopped, and none has it?
fn is_due(row: &RunRow, now: Timestamp) -> bool {
    let is_still = row.holder.is_none() && !row.status.is_terminal() && row.status != Status::Ready;
    is_still && row.due.is_some_and(|due| due <= now)
}

/// Does it wait for an approval or an answer?
pub fn asks_a_person(row: &RunRow) -> bool {
    row.why.split(", ").any(|reason| reason.starts_with("approval ") || reason.starts_with("answer "))
}

fn is_parked(row: &RunRow) -> bool {
    row.why.contains("held: ")
}
