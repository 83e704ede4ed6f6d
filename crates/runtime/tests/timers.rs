//! Timers that fell due while nothing ran: deadlines of actions and reminders fire once at the next start.

mod support;

use std::path::Path;
use std::sync::{Arc, Mutex};

use lodestep::Runtime;
use lodestep::core::checkpoint::How;
use lodestep::core::definition::{Definition, Questions};
use lodestep::core::effect::Class;
use lodestep::core::event::SettledBy;
use lodestep::core::rules::inbox::{Verdict, Word};
use lodestep::core::rules::remind::Reminder;
use lodestep::core::rules::standing::{Status, standing};
use lodestep::core::{Checkpoint, Event, RunKey};
use lodestep::inspect;
use lodestep::model::ScriptModel;
use lodestep::observe::Observer;
use lodestep::store::{Clock, SettableClock, SqliteStore};
use lodestep::worker::Shutdown;
use serde_json::json;
use support::*;

const HOUR_MS: u64 = 3_600_000;

/// A runtime over a file, as a newly started program has it.
fn opened(path: &Path, clock: &Arc<SettableClock>, ledger: &Ledger) -> Runtime {
    let model: ScriptModel = script(json!([
        says(&[("pay", json!({"n": 1})), ("ask", json!({"question": "why?"}))]),
        says(&[("finish", json!({}))])
    ]));
    let clock: Arc<dyn Clock> = clock.clone();
    let store = SqliteStore::open(path, clock.clone()).expect("opened");
    over(Arc::new(store), clock, functions(ledger, &["pay"]), model)
}

/// An agent that asks before it pays.
fn asking(change: impl FnOnce(&mut Definition)) -> Definition {
    let mut definition = agent(vec![tool("pay", Class::Unsafe)], &["pay"]);
    change(&mut definition);
    definition
}

/// Keeps what it is reminded of.
#[derive(Default)]
struct Reminded(Mutex<Vec<(u32, u64)>>);

impl Observer for Reminded {
    fn committed(&self, _: &RunKey, _: &[Event], _: &[Vec<u8>], _: &Checkpoint) {}

    fn reminded(&self, _: &RunKey, _: &Checkpoint, reminders: &[Reminder]) {
        self.0.lock().expect("sound").extend(reminders.iter().map(|reminder| (reminder.action.0, reminder.number)));
    }
}

/// A program is started, works until it is idle, and ends; what it was reminded of.
async fn a_start(path: &Path, clock: &Arc<SettableClock>) -> Vec<(u32, u64)> {
    let (runtime, reminded) = (opened(path, clock, &Ledger::default()), Arc::new(Reminded::default()));
    runtime.work_until_idle(reminded.clone(), &Shutdown::default()).await.expect("worked");
    std::mem::take(&mut *reminded.0.lock().expect("sound"))
}

#[tokio::test]
async fn tim_01_a_deadline_that_passed_while_nothing_ran_fires_once_at_the_start() {
    let (folder, clock, ledger) = (tempfile::tempdir().expect("a folder"), still_clock(), Ledger::default());
    let path = folder.path().join("store.db");
    let definition = asking(|it| it.tools[0].deadline_ms = Some(2 * HOUR_MS));
    let run = {
        let before = opened(&path, &clock, &ledger);
        let run = start(&before, definition).await;
        settle(&before, &run).await;
        let due = before.store().load(&run).await.expect("loaded").row.due;
        assert_eq!(due, Some(before.store().now().plus_ms(2 * HOUR_MS)), "the store keeps the timer");
        run
    };
    clock.advance_ms(24 * HOUR_MS);
    for _ in 0..2 {
        let after = opened(&path, &clock, &ledger);
        let state = settle(&after, &run).await;
        let settled = state.recent.iter().map(|settled| (settled.ordinal.0, settled.how, settled.by));
        assert_eq!(settled.collect::<Vec<_>>(), [(1, How::Failed, Some(SettledBy::Deadline))], "once");
        assert_eq!(standing(&state).status, Status::Waiting, "the question has no deadline");
        let open = after.store().open_requests("default", 9).await.expect("listed");
        assert_eq!(open.len(), 1, "the approval is over: {open:?}");
        let verified = inspect::verify(after.store(), &after.store().load(&run).await.expect("loaded").row.run).await;
        assert!(verified.as_ref().is_ok_and(|found| found.faults.is_empty()), "{verified:?}");
    }
    assert!(ledger.counts().is_empty(), "nothing was sent");
}

#[tokio::test]
async fn tim_01_reminders_that_were_missed_are_told_once_at_the_start() {
    let (folder, clock) = (tempfile::tempdir().expect("a folder"), still_clock());
    let path = folder.path().join("store.db");
    let definition = asking(|it| {
        it.policy[0].remind_ms = Some(24 * HOUR_MS);
        it.questions = Questions { remind_ms: Some(10 * HOUR_MS), ..Questions::default() };
    });
    let run = {
        let before = opened(&path, &clock, &Ledger::default());
        start(&before, definition).await
    };
    assert_eq!(a_start(&path, &clock).await, []);
    let due = async || opened(&path, &clock, &Ledger::default()).store().load(&run).await.expect("loaded").row.due;
    let asked = clock.wall();
    assert_eq!(due().await, Some(asked.plus_ms(10 * HOUR_MS)));
    clock.advance_ms(10 * HOUR_MS);
    assert_eq!(a_start(&path, &clock).await, [(2, 1)]);
    assert_eq!(due().await, Some(asked.plus_ms(20 * HOUR_MS)), "no event was needed for that");
    assert_eq!(a_start(&path, &clock).await, [], "no worker is due: nothing is told again");
    clock.advance_ms(9 * 24 * HOUR_MS);
    assert_eq!(a_start(&path, &clock).await, [(1, 9), (2, 22)], "the newest of each, and not one for each missed");
    let runtime = opened(&path, &clock, &Ledger::default());
    let loaded = runtime.store().load(&run).await.expect("loaded");
    let state = loaded.checkpoint().expect("sound");
    assert_eq!(state.at, asked, "no transition was written for a reminder");
    let verified = inspect::verify(runtime.store(), &loaded.row.run).await;
    assert!(verified.as_ref().is_ok_and(|found| found.faults.is_empty()), "{verified:?}");
    for request in runtime.store().open_requests("default", 9).await.expect("listed") {
        let deny = Word::Deny { request: request.name, reason: String::new() };
        assert_eq!(runtime.send(&run, "ada", deny).await.expect("sent"), Verdict::Accepted);
    }
    clock.advance_ms(24 * HOUR_MS);
    assert_eq!(a_start(&path, &clock).await, [], "an answer that came meanwhile is read first");
}

/// Tells the worker to stop at the third reminder.
struct UntilTheThird {
    told: Reminded,
    shutdown: Shutdown,
}

impl Observer for UntilTheThird {
    fn committed(&self, _: &RunKey, _: &[Event], _: &[Vec<u8>], _: &Checkpoint) {}

    fn reminded(&self, run: &RunKey, state: &Checkpoint, reminders: &[Reminder]) {
        self.told.reminded(run, state, reminders);
        if reminders.iter().any(|reminder| reminder.number == 3) {
            self.shutdown.begin();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_is_there_reminds_when_the_time_comes() {
    let clock = test_time();
    let model = script(json!([says(&[("pay", json!({"n": 1}))]), says(&[("finish", json!({}))])]));
    let runtime = in_memory(&clock, functions(&Ledger::default(), &["pay"]), model);
    start(&runtime, asking(|it| it.policy[0].remind_ms = Some(30_000))).await;
    let shutdown = Shutdown::default();
    let third = Arc::new(UntilTheThird { told: Reminded::default(), shutdown: shutdown.clone() });
    runtime.work(third.clone(), &shutdown).await.expect("worked");
    assert_eq!(*third.told.0.lock().expect("sound"), [(1, 1), (1, 2), (1, 3)]);
}

#[tokio::test]
async fn what_is_sent_late_by_a_worker_that_slept_is_not_sent() {
    let (clock, ledger) = (still_clock(), Ledger::default());
    let model = script(json!([says(&[("pay", json!({"n": 1}))]), says(&[("finish", json!({}))])]));
    let runtime = in_memory(&clock, functions(&ledger, &["pay"]), model);
    let mut definition = agent(vec![tool("pay", Class::Unsafe)], &[]);
    definition.tools[0].deadline_ms = Some(1);
    /// The time passes between the intent's commit and the sending.
    struct Slow(Arc<SettableClock>);
    impl Observer for Slow {
        fn committed(&self, _: &RunKey, events: &[Event], _: &[Vec<u8>], _: &Checkpoint) {
            if events.iter().any(|event| matches!(event, Event::AttemptStarted(_))) {
                self.0.advance_ms(1);
            }
        }
    }
    let run = start(&runtime, definition).await;
    runtime.work_until_idle(Arc::new(Slow(clock.clone())), &Shutdown::default()).await.expect("worked");
    let state = runtime.store().load(&run).await.expect("loaded").checkpoint().expect("sound");
    assert_eq!((state.recent[0].how, state.recent[0].by), (How::Failed, Some(SettledBy::Deadline)));
    assert!(ledger.counts().is_empty());
}
