//! Messages: judged against the run and all that is unread, then stored if they count.

use lodestep_core::rules::inbox::{Message, Verdict, judge};
use lodestep_core::{Draft, Result, RunKey, Timestamp};

use super::state::{Letter, State};
use crate::refusals;

impl State {
    pub(super) fn send(&mut self, key: &RunKey, id: &str, message: &Message, now: Timestamp) -> Result<Verdict> {
        refusals::check_size(message)?;
        let loaded = self.load(key)?;
        let run = self.run_by_key(key)?;
        if let Some(letter) = run.inbox.iter().find(|letter| letter.id == id) {
            return Ok(refusals::sent_before(id, letter.message == *message));
        }
        refusals::check_room(key, loaded.unread.len(), message)?;
        let draft = Draft::next(loaded.checkpoint()?, now, run.row.epoch, 0);
        let verdict = judge(draft, &loaded.unread, message)?;
        if verdict == Verdict::Accepted {
            run.row.inbox += 1;
            let position = run.row.inbox;
            run.inbox.push(Letter { position, id: id.to_owned(), message: message.clone() });
            if run.row.holder.is_none() {
                run.row.due = Some(run.row.due.map_or(now, |due| due.min(now)));
            }
        }
        Ok(verdict)
    }
}
