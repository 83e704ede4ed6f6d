//! The conformance suite: what the trait promises, as cases that any store can be put through.
//!
//! A test of a store makes a [`Subject`] for each of [`cases`] and runs the case on a multi-threaded tokio runtime. A
//! case fails with a sentence; it uses no test framework, so that it can run in any.
//!
//! - `script`: small valid runs.
//! - `start`, `commit`, `tables`, `beside`, `dedupe`, `lineage`, `adopt`, `lease`, `death`, `inbox`, `verdict`, `words`,
//!   `value`, `listing`, `garbage`, `hold`, `rate_limit`, `hint`:
//!   the cases.

mod adopt;
mod beside;
mod commit;
mod death;
mod dedupe;
mod garbage;
mod hint;
mod hold;
mod inbox;
mod lease;
mod lineage;
mod listing;
mod rate_limit;
mod script;
mod start;
mod tables;
mod value;
mod verdict;
mod words;

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use lodestep_core::{Digest, Error};

use crate::clock::SettableClock;
use crate::store::{RunRef, Store, WorkerId};

/// A fresh store, and what a test can do to it from outside.
pub trait Subject: Send + Sync {
    /// The clock that all handles on the store follow.
    fn clock(&self) -> &SettableClock;

    /// The store; the same handle every time.
    fn store(&self) -> Arc<dyn Store>;

    /// Another handle on the same store, as another process would open it.
    fn reopen(&self) -> Arc<dyn Store>;

    /// Ends a worker as the death of its process would.
    fn kill(&self, worker: &WorkerId);

    /// Changes a byte of a value in the place where it is stored.
    fn damage_value(&self, run: &RunRef, digest: &Digest);

    /// Erases the values that stand in a transition's row.
    fn erase_values(&self, run: &RunRef, seq: u64);
}

/// Why a case failed.
#[derive(Debug)]
pub struct Failed(String);

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failed {}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self(error.to_string())
    }
}

impl From<&str> for Failed {
    fn from(what: &str) -> Self {
        Self(what.to_owned())
    }
}

impl From<String> for Failed {
    fn from(what: String) -> Self {
        Self(what)
    }
}

/// What a case comes to.
pub type Checked = Result<(), Failed>;

/// One case.
#[derive(Clone, Copy)]
pub struct Case {
    /// What it shows.
    pub name: &'static str,
    run: fn(Arc<dyn Subject>) -> Running,
}

type Running = Pin<Box<dyn Future<Output = Checked> + Send>>;

impl Case {
    /// Runs it on a fresh store.
    ///
    /// # Errors
    ///
    /// Says what the store did that it should not have done.
    pub async fn run(&self, subject: Arc<dyn Subject>) -> Checked {
        (self.run)(subject).await.map_err(|failed| Failed(format!("{}: {failed}", self.name)))
    }
}

/// Fails the case unless it holds.
macro_rules! ensure {
    ($holds:expr, $($what:tt)+) => {
        if !$holds {
            return Err(format!("{} (line {} of {})", format_args!($($what)+), line!(), file!()).into());
        }
    };
}

/// Fails the case unless both are equal.
macro_rules! ensure_equal {
    ($found:expr, $wanted:expr) => {
        match (&$found, &$wanted) {
            (found, wanted) => {
                $crate::conformance::ensure!(found == wanted, "{} is {found:?}, not {wanted:?}", stringify!($found))
            }
        }
    };
}
use {ensure, ensure_equal};

macro_rules! list {
    ($($area:ident: $($case:ident),+;)+) => {
        vec![$($(Case { name: stringify!($case), run: |subject| Box::pin($area::$case(subject)) }),+),+]
    };
}

/// Every case.
pub fn cases() -> Vec<Case> {
    list! {
        start:
            a_started_run_is_there_and_due,
            the_same_start_again_gives_the_run_that_exists,
            an_id_of_another_agent_or_other_inputs_is_refused,
            fifty_parallel_starts_with_one_id_make_one_run,
            a_start_that_joins_finds_the_unfinished_runs,
            a_start_without_a_first_transition_is_refused;
        commit:
            what_was_committed_is_loaded,
            a_load_begins_at_the_newest_snapshot,
            old_snapshots_thin_out,
            a_stale_epoch_changes_nothing,
            a_number_that_does_not_follow_changes_nothing,
            a_lease_ends_with_its_release,
            each_transition_of_a_batch_stands_or_falls_alone,
            no_intent_is_stored_while_a_cancel_is_unread,
            a_commit_tells_what_the_inbox_holds,
            a_commit_of_a_thousand_runs_is_whole;
        tables:
            a_journal_gives_back_what_was_committed,
            transcripts_can_be_emptied_and_nothing_needs_them,
            an_effect_is_listed_from_its_first_intent_on,
            every_version_of_an_artifact_is_listed,
            a_request_is_open_until_a_transition_closes_it;
        dedupe:
            a_dedupe_key_is_one_run_s,
            who_waits_for_a_key_is_due_when_it_is_free,
            who_waits_for_a_key_is_due_when_its_effect_is_known;
        lineage:
            a_lineage_is_its_root_and_every_fork_that_goes_back_to_it,
            equal_effects_of_the_other_runs_of_a_lineage_are_found,
            a_commit_says_whether_the_lineage_has_another_run,
            a_run_that_comes_in_is_kin;
        adopt:
            an_adopted_run_is_as_it_was,
            a_run_that_can_not_be_adopted_leaves_nothing;
        beside:
            what_stands_beside_is_what_a_replay_gives,
            a_run_that_cannot_be_read_is_nobody_s_until_it_is_released;
        lease:
            of_eight_workers_exactly_one_gets_each_run,
            each_claim_raises_the_epoch,
            the_longest_due_is_claimed_first_and_no_more_than_wanted,
            one_run_is_claimed_only_when_it_is_due_and_free,
            a_released_run_is_due_when_it_says,
            a_released_run_with_something_unread_is_due_at_once,
            a_commit_that_releases_leaves_the_run_where_it_stands,
            crashes_count_since_the_last_outcome,
            a_retired_worker_hands_over,
            an_unknown_worker_gets_nothing;
        death:
            a_dead_worker_s_runs_are_taken_over_at_once,
            a_hanging_worker_keeps_its_runs_until_its_lease_ends,
            a_suspect_is_claimed_beside_no_other,
            a_renewed_lease_holds_longer,
            a_worker_taken_for_dead_can_do_nothing_more;
        inbox:
            an_accepted_message_is_stored_and_makes_the_run_due,
            a_held_run_stays_with_its_worker,
            an_id_deduplicates,
            an_inbox_takes_no_more_than_its_limits,
            a_run_that_is_not_there_takes_no_message,
            a_message_is_unread_until_a_transition_read_it,
            a_run_that_is_over_refuses;
        verdict:
            a_second_approval_is_already_given,
            of_eight_parallel_approvals_one_counts,
            approve_against_deny_has_one_winner,
            a_message_is_judged_with_those_unread_before_it;
        words:
            no_intent_is_stored_while_a_pause_is_unread,
            of_ten_deliveries_under_one_id_one_counts,
            a_signal_makes_a_waiting_run_due,
            an_approval_that_lapsed_is_an_open_request_again,
            a_call_that_waited_for_a_quota_asks_when_it_is_granted;
        value:
            values_of_every_size_come_back,
            a_value_is_durable_before_a_transition_names_it,
            a_damaged_value_is_named,
            erased_values_are_left_out;
        listing:
            runs_are_listed_newest_first,
            a_listing_shows_only_what_its_filter_names,
            who_is_in_doubt_is_listed_whether_or_not_it_is_over,
            a_listing_goes_by_labels_and_by_when_a_run_began,
            a_run_is_found_by_the_end_of_its_id,
            requests_are_found_by_the_start_of_their_name;
        garbage:
            a_value_that_nothing_names_goes_in_a_pass_a_day_after_the_first,
            a_commit_that_names_a_swept_value_fails,
            to_put_a_value_anew_begins_its_day_anew,
            a_removed_run_leaves_nothing_but_its_id,
            a_run_that_is_needed_is_kept,
            a_lineage_goes_whole_or_not_at_all;
        hold:
            a_hold_is_listed_until_it_is_released,
            no_intent_is_stored_under_a_hold_that_its_worker_does_not_know,
            a_parked_run_is_due_when_one_of_its_holds_ends,
            a_run_parked_under_a_hold_that_has_ended_is_due_at_once,
            a_hold_is_hinted_at_to_another_handle;
        rate_limit:
            a_limit_holds_for_every_handle_until_its_time,
            of_two_limits_of_a_service_the_later_stands;
        hint:
            a_change_is_hinted_at_to_this_handle,
            a_change_is_hinted_at_to_another_handle_within_50_ms;
    }
}
