//! Forks: what is done stays done, what the origin did since asks a person, quotas are granted once.

mod support;

use std::sync::Arc;

use lodestep::Runtime;
use lodestep::core::checkpoint::{Action, ActionState, Checkpoint, How};
use lodestep::core::definition::{Definition, QuotaLimits};
use lodestep::core::effect::Class;
use lodestep::core::event::Gate;
use lodestep::core::rules::inbox::{Verdict, Word};
use lodestep::core::rules::standing::{Status, standing};
use lodestep::core::{Digest, Ordinal, RunId, RunKey};
use lodestep::fork::{Fork, Forked};
use lodestep::inspect;
use lodestep::store::{Clock, MemoryStore, RunRow, SettableClock, SqliteStore, Store};
use serde_json::{Value, json};
use support::*;

/// Six steps: effects at 2, 4 and 6, of which the one at 4 is `b`, and an approval at 5.
fn six() -> Value {
    json!([
        says(&[("look", json!({"n": 1}))]),
        says(&[("pay", json!({"n": 2}))]),
        says(&[("look", json!({"n": 3}))]),
        says(&[("pay", json!({"n": 4}))]),
        says(&[("ask_first", json!({"n": 5}))]),
        says(&[("pay", json!({"n": 6}))]),
        says(&[("finish", json!({}))]),
        says(&[("finish", json!({}))]),
    ])
}

fn six_agent() -> Definition {
    let tools = vec![tool("look", Class::Read), tool("pay", Class::Unsafe), tool("ask_first", Class::Unsafe)];
    agent(tools, &["ask_first"])
}

struct World {
    runtime: Runtime,
    ledger: Ledger,
    run: Arc<RunKey>,
}

impl World {
    async fn of(store: Arc<dyn Store>, clock: &Arc<SettableClock>, replies: Value, agent: Definition) -> Self {
        let ledger = Ledger::default();
        let functions = functions(&ledger, &["look", "pay", "ask_first"]);
        let clock: Arc<dyn Clock> = clock.clone();
        let runtime = over(store, clock, functions, script(replies));
        let run = start(&runtime, agent).await;
        Self { runtime, ledger, run }
    }

    async fn in_memory(replies: Value, agent: Definition) -> Self {
        let clock = still_clock();
        Self::of(Arc::new(MemoryStore::new(clock.clone())), &clock, replies, agent).await
    }

    async fn row(&self, run: &RunKey) -> RunRow {
        self.runtime.find(run.run.as_str()).await.expect("found")
    }

    async fn fork(&self, of: &RunKey, at: Option<u64>, id: &str) -> lodestep::core::Result<Forked> {
        let fork = Fork {
            origin: self.row(of).await,
            at,
            id: Some(RunId::parse(id).expect("sound")),
            inputs: None,
            grant: QuotaLimits::default(),
            by: "ada".to_owned(),
        };
        self.runtime.fork(fork).await
    }

    async fn settle(&self, run: &RunKey) -> Checkpoint {
        settle(&self.runtime, run).await
    }

    /// Says a word on the only open request of a run.
    async fn say(&self, run: &RunKey, word: impl Fn(Digest) -> Word) -> Checkpoint {
        let open = self.asked(run).await;
        assert_eq!(open.len(), 1, "{open:?}");
        let said = self.runtime.send(run, "ada", word(open[0].0)).await.expect("sent");
        assert_eq!(said, Verdict::Accepted);
        self.settle(run).await
    }

    async fn asked(&self, run: &RunKey) -> Vec<(Digest, Action)> {
        let state = self.runtime.store().load(run).await.expect("loaded").checkpoint().expect("sound");
        let request = |action: &Action| match &action.state {
            ActionState::Gated { gate: Gate::Approval(request) } => Some(request.name),
            _ => None,
        };
        state.pending.values().filter_map(|action| Some((request(action)?, action.clone()))).collect()
    }

    /// The step after which an action was done.
    async fn step_of(&self, ordinal: u32) -> u64 {
        let row = self.row(&self.run).await;
        for seq in 1..=row.seq {
            let opened = inspect::open_at(self.runtime.store(), &row, seq).await.expect("folded");
            if opened.checkpoint.settled(Ordinal(ordinal)).is_some_and(|settled| settled.how == How::Done) {
                return seq;
            }
        }
        panic!("action {ordinal} was never done")
    }

    async fn verified(&self, run: &RunKey) {
        let row = self.row(run).await;
        let report = inspect::verify(self.runtime.store(), &row.run).await.expect("verified");
        assert_eq!(report.faults, Vec::<String>::new());
    }

    fn paid(&self) -> usize {
        self.ledger.counts().get("pay").copied().unwrap_or_default()
    }
}

async fn approve(world: &World, run: &RunKey) -> Checkpoint {
    world.say(run, |request| Word::Approve { request }).await
}

/// The six steps, done: three payments and one effect that was approved.
async fn six_done(store: Arc<dyn Store>, clock: &Arc<SettableClock>) -> World {
    let world = World::of(store, clock, six(), six_agent()).await;
    assert_eq!(standing(&world.settle(&world.run).await).status, Status::Waiting);
    assert_eq!(standing(&approve(&world, &world.run).await).status, Status::Completed);
    assert_eq!((world.paid(), world.ledger.counts()["ask_first"]), (3, 1));
    world
}

/// The whole of a fork's way, over any store.
async fn goes_its_own_way(store: Arc<dyn Store>, clock: Arc<SettableClock>) {
    let world = six_done(store, &clock).await;
    let before = world.row(&world.run).await;
    let at = world.step_of(3).await;
    let fork = world.fork(&world.run, Some(at), "fork").await.expect("forked");
    // Steps 1 to 3 are there as outcomes, and nothing was sent for them.
    let copied: Vec<(u32, How)> = fork.state.recent.iter().map(|it| (it.ordinal.0, it.how)).collect();
    assert_eq!(copied, [(1, How::Done), (2, How::Done), (3, How::Done)]);
    assert_eq!((world.paid(), &world.row(&world.run).await), (3, &before), "the origin was touched");
    // What equals an effect that the origin did since waits for a person, though the policy allows it.
    let state = world.settle(&fork.run.key).await;
    assert_eq!(standing(&state).status, Status::Waiting);
    let asked = world.asked(&fork.run.key).await;
    let found = asked[0].1.elsewhere.clone().expect("shown");
    assert_eq!((&found.run, found.ordinal), (&world.run.run, Ordinal(4)));
    assert_eq!(world.paid(), 3);
    // The outcome is taken over: nothing is sent.
    let state = world.say(&fork.run.key, |request| Word::Reuse { request }).await;
    let reused = state.settled(Ordinal(4)).expect("settled");
    assert_eq!((reused.how, reused.attempts), (How::Done, 0));
    let told = world.runtime.store().values(&fork.run, &[reused.result]).await.expect("read");
    assert_eq!(told[&reused.result.digest], b"done {\"n\":4}");
    // The approval that the origin had is not the fork's.
    assert_eq!(world.asked(&fork.run.key).await[0].1.tool, "ask_first");
    assert_eq!(world.ledger.counts()["ask_first"], 1);
    // Do it again, on a person's word; and skip one.
    approve(&world, &fork.run.key).await;
    assert_eq!(world.ledger.counts()["ask_first"], 2);
    let end = world.say(&fork.run.key, |request| Word::Deny { request, reason: "not twice".to_owned() }).await;
    assert_eq!((standing(&end).status, world.paid()), (Status::Completed, 3));
    assert_eq!(world.row(&world.run).await, before, "the origin was touched");
    world.verified(&fork.run.key).await;
    world.verified(&world.run).await;
}

#[tokio::test]
async fn frk_01_a_fork_goes_its_own_way_in_memory() {
    let clock = still_clock();
    goes_its_own_way(Arc::new(MemoryStore::new(clock.clone())), clock).await;
}

#[tokio::test]
async fn frk_01_a_fork_goes_its_own_way_in_a_file() {
    let (clock, folder) = (still_clock(), tempfile::tempdir().expect("a folder"));
    let store = SqliteStore::open(&folder.path().join("store.db"), clock.clone()).expect("opened");
    goes_its_own_way(Arc::new(store), clock).await;
}

#[tokio::test]
async fn g04_a_fork_never_performs_what_was_done_before_it() {
    // The fork wants the payment of before the fork again, long after it has left the state's recent actions.
    let mut replies: Vec<Value> = vec![says(&[("pay", json!({"n": 1}))])];
    replies.extend((0..6).map(|n| says(&[("look", json!({"n": n}))])));
    replies.extend([says(&[("pay", json!({"n": 1}))]), says(&[("finish", json!({}))])]);
    let mut agent = six_agent();
    agent.limits.recent_actions = 2;
    let world = World::in_memory(json!(replies), agent).await;
    assert_eq!(standing(&world.settle(&world.run).await).status, Status::Completed);
    assert_eq!(world.paid(), 1);
    let at = world.step_of(6).await;
    let fork = world.fork(&world.run, Some(at), "fork").await.expect("forked");
    assert!(fork.state.recent.iter().all(|settled| settled.tool == "look"), "it is still among the recent ones");
    let end = world.settle(&fork.run.key).await;
    assert_eq!((standing(&end).status, world.paid()), (Status::Completed, 1));
    let again = end.recent.iter().find(|settled| settled.tool == "pay").expect("the second wish");
    assert_eq!((again.how, again.attempts), (How::Done, 0));
}

#[tokio::test]
async fn frk_01_a_fork_of_a_fork_knows_all_of_its_lineage() {
    let clock = still_clock();
    let world = six_done(Arc::new(MemoryStore::new(clock.clone())), &clock).await;
    let first = world.fork(&world.run, Some(world.step_of(3).await), "first").await.expect("forked");
    world.settle(&first.run.key).await;
    let done_again = approve(&world, &first.run.key).await;
    assert_eq!((world.paid(), done_again.settled(Ordinal(4)).map(|it| it.how)), (4, Some(How::Done)));
    // The second fork has the first's payment as its past, and the first's open request is not its own.
    let second = world.fork(&first.run.key, None, "second").await.expect("forked");
    let origins: Vec<&str> = second.state.lineage.iter().map(|origin| origin.run.as_str()).collect();
    assert_eq!(origins, ["first", world.run.run.as_str()]);
    assert_eq!(second.state.settled(Ordinal(5)).map(|it| it.how), Some(How::Withdrawn));
    assert_eq!(world.asked(&first.run.key).await.len(), 1, "the first fork's request was closed");
    assert_eq!(world.asked(&second.run.key).await.len(), 0);
    // Each goes on from its own latest state.
    world.settle(&second.run.key).await;
    let found = world.asked(&second.run.key).await[0].1.elsewhere.clone().expect("shown");
    assert_eq!((found.run.as_str(), found.ordinal), (world.run.run.as_str(), Ordinal(6)));
    approve(&world, &first.run.key).await;
    world.verified(&second.run.key).await;
    world.verified(&first.run.key).await;
    assert_eq!(world.paid(), 4, "nothing more was paid without a word");
}

#[tokio::test]
async fn frk_01_what_may_have_been_sent_stays_with_the_origin() {
    let clock = still_clock();
    let ledger = Ledger::default();
    let mut functions = functions(&ledger, &["look"]);
    functions.add("pay", |_| async {
        Err::<Vec<u8>, _>(lodestep::tools::ToolError::Unknown("the line went dead".to_owned()))
    });
    let replies =
        json!([says(&[("pay", json!({"n": 1}))]), says(&[("pay", json!({"n": 1}))]), says(&[("finish", json!({}))]),]);
    let runtime = in_memory(&clock, functions, script(replies));
    let run = start(&runtime, six_agent()).await;
    assert_eq!(standing(&settle(&runtime, &run).await).status, Status::InDoubt);
    let world = World { runtime, ledger, run };
    let fork = world.fork(&world.run, None, "fork").await.expect("forked");
    assert_eq!(fork.state.settled(Ordinal(1)).map(|it| it.how), Some(How::Left));
    assert_eq!(fork.state.pending.len(), 0);
    // Wanted again, it waits for a person, who is told that nobody knows what came of it.
    let state = world.settle(&fork.run.key).await;
    assert_eq!(standing(&state).status, Status::Waiting);
    let asked = world.asked(&fork.run.key).await;
    assert_eq!(asked[0].1.elsewhere.as_ref().map(|found| found.result), Some(None));
    let word = Word::Reuse { request: asked[0].0 };
    let Verdict::Refused(error) = world.runtime.send(&fork.run.key, "ada", word).await.expect("answered") else {
        panic!("an outcome that nobody knows was taken")
    };
    assert_eq!(error.code(), "request.nothing_to_reuse");
}

#[tokio::test]
async fn frk_01_a_fork_spends_what_its_lineage_has_left() {
    let mut agent = six_agent();
    agent.quota.model_calls = Some(20);
    agent.quota.tool_calls = Some(10);
    let world = World::in_memory(six(), agent).await;
    let state = world.settle(&world.run).await;
    assert_eq!(state.quota.used.model_calls, 5);
    let limits = |state: &Checkpoint| (state.quota.limits.model_calls, state.quota.limits.tool_calls);
    let left = |state: &Checkpoint| state.remaining().iter().map(|row| row.left).collect::<Vec<_>>();
    assert_eq!(left(&state), [15, 5]);
    // Half of it, as the origin goes on: the fork has used nothing of it.
    let fork = world.fork(&world.run, None, "fork").await.expect("forked");
    assert_eq!((limits(&fork.state), left(&fork.state)), ((Some(7), Some(2)), vec![7, 2]));
    let origin = world.settle(&world.run).await;
    assert_eq!((limits(&origin), left(&origin)), ((Some(13), Some(8)), vec![8, 3]));
    // The same command again makes and grants nothing.
    let again = world.fork(&world.run, None, "fork").await;
    assert_eq!(again.err().map(|error| error.code()), Some("run.id_taken"), "the origin has moved on");
    let at = fork.state.lineage[0].seq;
    assert!(world.fork(&world.run, Some(at), "fork").await.expect("there").existed);
    assert_eq!(limits(&world.settle(&world.run).await), (Some(13), Some(8)));
    // More than there is is not granted.
    let grant = QuotaLimits { model_calls: Some(9), ..QuotaLimits::default() };
    let wish =
        Fork { origin: world.row(&world.run).await, at: None, id: None, inputs: None, grant, by: "ada".to_owned() };
    assert_eq!(world.runtime.fork(wish).await.err().map(|error| error.code()), Some("quota.not_enough"));
    assert_eq!(limits(&world.settle(&world.run).await), (Some(13), Some(8)));
    world.verified(&world.run).await;
}

#[tokio::test]
async fn frk_01_inputs_can_be_changed_and_nothing_of_the_origin_is() {
    let world = World::in_memory(six(), six_agent()).await;
    world.settle(&world.run).await;
    let fork = Fork {
        origin: world.row(&world.run).await,
        at: None,
        id: None,
        inputs: Some(json!({"topic": "another"})),
        grant: QuotaLimits::default(),
        by: "ada".to_owned(),
    };
    let fork = world.runtime.fork(fork).await.expect("forked");
    let opened = inspect::open(world.runtime.store(), &fork.run.key).await.expect("opened");
    assert_eq!(opened.inputs, json!({"topic": "another"}));
    let origin = inspect::open(world.runtime.store(), &world.run).await.expect("opened");
    assert_eq!(origin.inputs, json!({}));
    assert_ne!(opened.checkpoint.key(), origin.checkpoint.key());
}

/// Two branches have decided on the same effect before either had it, and each has an approval that says nothing of the
/// other: the one that looks second, after its intent is durable, does not send.
#[tokio::test]
async fn g05_two_branches_at_once_never_do_the_same_unasked() {
    let replies = json!([
        says(&[("ask_first", json!({"n": 2}))]),
        says(&[("ask_first", json!({"n": 2}))]),
        says(&[("finish", json!({}))]),
    ]);
    let world = World::in_memory(replies, six_agent()).await;
    let fork = world.fork(&world.run, Some(1), "fork").await.expect("forked").run.key;
    world.settle(&fork).await;
    let both = [&*world.run, &*fork];
    for run in both {
        let asked = world.asked(run).await;
        assert_eq!(asked[0].1.elsewhere, None, "neither has done it");
        let word = Word::Approve { request: asked[0].0 };
        assert_eq!(world.runtime.send(run, "ada", word).await.expect("sent"), Verdict::Accepted);
    }
    world.settle(&fork).await;
    assert_eq!(world.ledger.counts()["ask_first"], 1, "both were sent");
    let mut told = 0;
    for run in both {
        // One of them was told that it was not sent, wants it again, and now a person is shown the other.
        let asked = world.asked(run).await;
        told += asked.iter().filter(|(_, action)| action.elsewhere.is_some()).count();
        world.verified(run).await;
    }
    assert_eq!(told, 1);
}
