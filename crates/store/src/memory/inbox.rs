//! Messages: judged against the run and all that is unread, then stored if they count.

use lodestep_core::rules::inbox::{Message, Verdict, Word};
use lodestep_core::{Result, RunKey, Timestamp};

use super::state::{Letter, State};
use crate::held::{self, Heard};
use crate::refusals;
use crate::rows::why;
use crate::store::Hold;

impl State {
    pub(super) fn send(&mut self, key: &RunKey, id: &str, message: &Message, now: Timestamp) -> Result<Verdict> {
        refusals::check_size(message)?;
        if self.run_by_key(key)?.row.hold == Some(Hold::Undecodable) {
            let read = self.load(key).and_then(|loaded| loaded.checkpoint());
            let row = &mut self.run_by_key(key)?.row;
            match held::heard(key, read, message) {
                Heard::Refused(error) => return Ok(Verdict::Refused(error)),
                Heard::Freed(standing) => {
                    (row.status, row.why, row.hold) = (standing.status, why(&standing), None);
                    row.due = Some(now);
                }
            }
            if message.word == Word::Release {
                return Ok(Verdict::Accepted);
            }
        }
        let loaded = self.load(key)?;
        let run = self.run_by_key(key)?;
        if let Some(letter) = run.inbox.iter().find(|letter| letter.id == id) {
            return Ok(refusals::sent_before(id, letter.message == *message));
        }
        refusals::check_room(key, loaded.unread.len(), message)?;
        let verdict = held::judged(&loaded, now, message)?;
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
