//! A worker that stands still past its lease, as on a machine that was suspended: another takes over, and what the first
//! one finds when it wakes. Leases are 30 s long and last as long here, too: all cases wait at once.
//!
//! A worker that is stopped keeps its lock, so that nobody can tell it from one that works: it is taken over when its
//! lease has run out on the boot clock, and not before.

mod support;

use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use serde_json::{Value, json};
use support::*;

/// One run, the worker that has it and is stopped, and the one that takes over.
struct Case {
    world: World,
    agent: String,
    first: Running,
    second: Running,
}

fn pid(running: &Running) -> Pid {
    Pid::from_raw(running.child.id() as i32).expect("a process")
}

/// An agent of this class of tool that makes a payment, then three more; their receiver writes down each call with the
/// epoch that it came with, and then what it applied. Where it `waits`, it does so in between, for a file.
fn paying(class: &str, waits: bool) -> (World, String) {
    let world = World::new();
    let wait = if waits { "while [ ! -e go ]; do sleep 0.05; done\n" } else { "" };
    let note = |file| format!("echo \"$LODESTEP_EPOCH $n\" >> {file}\n");
    world.write("pay.sh", &format!("n=$(cat)\n{}{wait}{}echo paid\n", note("called"), note("ledger")));
    let tables = format!(
        "[tools.pay]\ndescription = \"Pay.\"\ncommand = [\"sh\", \"pay.sh\"]\nclass = \"{class}\"\n\
         input = {{ type = \"object\", properties = {{ n = {{ type = \"integer\" }} }} }}\n\
         [[policy]]\ntools = [\"pay\"]\ndecide = \"allow\"\n"
    );
    let pays = (1..=4).map(|n| json!({ "calls": [{ "name": "pay", "arguments": { "n": n } }] }));
    let finishes = json!({ "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] });
    let agent = world.agent(&tables, &pays.chain([finishes]).collect());
    let agent = agent.to_str().expect("a path").to_owned();
    (world, agent)
}

fn start(world: &World, agent: &str, stop_at: Option<&str>) -> Running {
    let mut command = world.command(&["run", agent]);
    command.envs(stop_at.map(|point| ("LODESTEP_STOP_AT", point)));
    Running { child: command.stdout(Stdio::null()).spawn().expect("started") }
}

impl Case {
    /// The first worker stops by itself at a fault point.
    fn at(class: &str, point: &str) -> Self {
        let (world, agent) = paying(class, false);
        let first = start(&world, &agent, Some(point));
        Self::stopped(world, agent, first)
    }

    /// The first worker is stopped while its tool is under way.
    fn in_a_call(class: &str) -> Self {
        let (world, agent) = paying(class, true);
        let first = start(&world, &agent, None);
        eventually("the tool began", Duration::from_secs(20), || !world.read("called").is_empty());
        kill_process(pid(&first), Signal::STOP).expect("stopped");
        Self::stopped(world, agent, first)
    }

    fn stopped(world: World, agent: String, first: Running) -> Self {
        let status = waitpid(Some(pid(&first)), WaitOptions::UNTRACED).expect("waited").expect("a change").1;
        assert!(status.stopped(), "{status:?}");
        let second = start(&world, &agent, None);
        Self { world, agent, first, second }
    }

    /// Waits for the second worker's end.
    fn taken_over(&mut self) -> Option<i32> {
        self.second.ended()
    }

    /// Lets the first one go on, to its end: its exit code, and what it says.
    fn wakes(&mut self) -> (Option<i32>, String) {
        kill_process(pid(&self.first), Signal::CONT).expect("woken");
        let said = Lines::of(&mut self.first.child).rest();
        (self.first.ended(), said)
    }

    /// Lets the first one go on; nothing is called or changed by it.
    fn wakes_and_changes_nothing(&mut self) {
        let before = (self.calls(), self.standing());
        let (code, said) = self.wakes();
        assert!(code == Some(130) && said.contains("lease"), "it does not say why it ends: {code:?} {said}");
        assert_eq!((self.calls(), self.standing()), before);
        self.world.lodestep(&["verify"]).exits(0);
    }

    /// What was called, as `epoch {"n":number}`.
    fn calls(&self) -> Vec<String> {
        self.world.read("called").lines().map(str::to_owned).collect()
    }

    /// How far the run is: its status, transitions and head, and what its model was asked.
    fn standing(&self) -> Value {
        let checkpoint = &self.world.json(&["show", &self.world.run_id()])["checkpoint"];
        json!([checkpoint["phase"], checkpoint["seq"], checkpoint["head"], checkpoint["model"]])
    }

    fn epoch(&self) -> i64 {
        let db = rusqlite::Connection::open(self.world.path().join("store.db")).expect("opened");
        db.query_row("SELECT epoch FROM head", [], |row| row.get(0)).expect("read")
    }
}

/// Each of the four payments once, all in this epoch.
fn once_each(epoch: i64) -> Vec<String> {
    (1..=4).map(|n| format!("{epoch} {{\"n\":{n}}}")).collect()
}

#[test]
fn eff_05_a_worker_that_wakes_after_its_lease_changes_nothing_and_calls_nothing() {
    let began = Instant::now();
    let mut keyed = Case::at("keyed", "pay:intent");
    let mut at_most_once = Case::at("unsafe", "pay:intent");
    let mut replied = Case::at("keyed", "model:reply");
    let mut ended = Case::in_a_call("idempotent");
    ended.world.write("go", "");
    let mut under_way = Case::in_a_call("idempotent");

    // Between the intent and the send: the second one sends it under the same key, and the first one no more.
    assert_eq!(keyed.taken_over(), Some(0));
    assert!(began.elapsed() > Duration::from_secs(15), "a lock that was held was taken for free");
    assert_eq!(keyed.calls(), once_each(2));
    keyed.wakes_and_changes_nothing();

    // The same with an unsafe effect: it is in doubt, the first one does not send it, and a person says what follows.
    assert_eq!(at_most_once.taken_over(), Some(5));
    let (code, said) = at_most_once.wakes();
    assert!(code.is_some_and(|code| code != 0), "{said}");
    assert_eq!(at_most_once.calls(), [""; 0], "it was sent without a lease");
    at_most_once.world.lodestep(&["resolve", &at_most_once.world.run_id(), "1", "--retry"]).exits(0);
    at_most_once.world.lodestep(&["run", &at_most_once.agent]).exits(0);
    assert_eq!(at_most_once.calls(), once_each(at_most_once.epoch()));
    at_most_once.world.lodestep(&["verify"]).exits(0);

    // With a reply in its hands that the other one has asked for again.
    assert_eq!(replied.taken_over(), Some(0));
    assert_eq!(replied.calls(), once_each(2));
    replied.wakes_and_changes_nothing();

    // In a call, which ends meanwhile.
    assert_eq!(ended.taken_over(), Some(0));
    assert_eq!(ended.calls(), [vec!["1 {\"n\":1}".to_owned()], once_each(2)].concat());
    ended.wakes_and_changes_nothing();

    // In a call that is still under way: the second one waits for it, and it ends with the worker that began it.
    eventually("the run is taken over", Duration::from_secs(20), || under_way.epoch() == 2);
    assert_eq!(under_way.calls(), ["1 {\"n\":1}"], "two calls at once");
    under_way.wakes();
    under_way.world.write("go", "");
    assert_eq!(under_way.taken_over(), Some(0));
    assert_eq!(under_way.world.read("ledger").lines().collect::<Vec<_>>(), once_each(2));
    under_way.world.lodestep(&["verify"]).exits(0);
}
