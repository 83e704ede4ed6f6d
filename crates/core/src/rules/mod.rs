//! The rules: each looks at a state and pushes the events that follow from it. None of them does anything else.
//!
//! In the order of the loop:
//! - [`inbox`]: messages from outside, judged and read.
//! - [`upgrade`]: a run moved to another definition, and what that means for its actions.
//! - [`recover`]: what a worker that is gone left open.
//! - [`quarantine`]: what only a person lets go on.
//! - [`owed`]: what comes next without waiting for anyone.
//! - [`deadline`]: from when on no attempt of an action begins.
//! - [`ask`]: the reservation of a call of the model.
//! - [`decide`]: a reply becomes a decision.
//! - [`settle`]: what an attempt came to.
//! - [`completion`]: may the run end?
//! - [`wait`]: waits for signals and times, and their ends.
//! - `room`: calls of tools that wait for room in a quota.
//! - [`standing`]: where a run stands, for people and for the claim.
//! - [`remind`]: requests that stay open, of which people are reminded.

pub mod ask;
pub mod completion;
pub mod deadline;
pub mod decide;
pub mod dedupe;
pub mod inbox;
pub mod owed;
pub mod quarantine;
pub mod recover;
pub mod remind;
mod room;
pub mod settle;
pub mod standing;
pub mod upgrade;
pub mod wait;
