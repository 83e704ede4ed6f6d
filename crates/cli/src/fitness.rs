//! Names the runs that this program can't go on with.

use lodestep::Runtime;
use lodestep::core::Result;
use lodestep::core::ids::DEFAULT_NAMESPACE;
use lodestep::fitness::Unfit;
use lodestep::store::Filter;

use crate::app::App;
use crate::select::unfinished;
use crate::text::{line, short_id};

/// So many runs are looked at, the newest first.
const LOOKED_AT: usize = 10_000;

/// So many runs of one reason are named.
const NAMED: usize = 5;

/// Looks at every run of the store that is not over.
///
/// # Errors
///
/// The store's errors.
pub async fn look(runtime: &Runtime) -> Result<Vec<Unfit>> {
    let filter = Filter { statuses: unfinished(), limit: Some(LOOKED_AT), ..Filter::default() };
    runtime.unfit(&runtime.store().list(DEFAULT_NAMESPACE, &filter).await?).await
}

/// Says it on stderr, a line for each reason.
pub fn tell(app: &App, found: &[Unfit]) {
    for unfit in found {
        lodestep::note!("{}; {}", line(&in_words(unfit), 1_000), app.pasted(unfit.error.next()));
    }
}

/// `this program can't go on with run 7k2m: this build has no provider `x``.
pub fn in_words(unfit: &Unfit) -> String {
    let named: Vec<&str> = unfit.runs.iter().take(NAMED).map(|run| short_id(run.run.as_str(), &[])).collect();
    let more = match unfit.runs.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let runs = if unfit.runs.len() == 1 { "run" } else { "runs" };
    format!("this program can't go on with {runs} {}{more}: {}", named.join(", "), unfit.error.what())
}
