//! `doctor`: are this machine, this store and an agent's surroundings in order?
//!
//! It changes nothing: the store is opened to be read, whoever may write it. Each check comes to ok, a warning or a problem,
//! and what is not ok says what to do. A check that can't be made because another failed is left out.

mod agent;
mod checkup;
mod machine;
mod store;

use std::path::Path;

use lodestep::core::Result;

use crate::app::App;
use checkup::Checkup;

/// Looks at everything; 0 without a problem, 7 with one of the store's, else 1.
pub async fn doctor(app: &App, file: Option<&Path>) -> Result<u8> {
    let mut checkup = Checkup::default();
    let opened = store::look(app, &mut checkup).await;
    machine::look(opened.as_ref(), &mut checkup).await;
    if let Some(file) = file {
        agent::look(app, file, &mut checkup);
    }
    app.say(&checkup.in_words(app), &checkup.as_json(app));
    Ok(checkup.exit_code())
}
