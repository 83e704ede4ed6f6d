//! Holds: what an operator has stopped is not dispatched, and everything else is.

mod support;

use lodestep_core::Ordinal;
use lodestep_core::effect::Class;
use lodestep_core::hold::{DispatchHold, Held, Target};
use lodestep_core::rules::owed::{dispatchable, is_held};
use serde_json::json;
use support::{Bench, call, free, names};

fn held(bench: &Bench, target: &str) -> Held {
    let hold = DispatchHold {
        number: 1,
        target: Target::parse(target).expect("a target"),
        by: "ada".to_owned(),
        reason: String::new(),
        since: bench.checkpoint.at,
    };
    Held::of(&[hold], &free())
}

#[test]
fn nothing_is_sent_to_a_held_tool_and_the_others_go_on() {
    for (target, keeps) in [
        ("tool:unsafe", &[Class::Unsafe][..]),
        ("tool:*e*", &[Class::Read, Class::Idempotent, Class::Keyed, Class::Checkable, Class::Unsafe]),
        ("tool:re*", &[Class::Read]),
        ("agent:bench", &Class::ALL),
        ("model:script", &[]),
    ] {
        let mut bench = Bench::new(free());
        bench.calls(Class::ALL.into_iter().map(|class| call(class.as_str(), &json!({ "x": 1 }))).collect());
        let held = held(&bench, target);
        bench.owed_under(8, &held);
        let mut begun = dispatchable(&bench.checkpoint, bench.epoch, bench.now);
        begun.retain(|ordinal| !is_held(&bench.checkpoint, *ordinal, &held));
        let wanted = Class::ALL.into_iter().enumerate().filter(|(_, class)| !keeps.contains(class));
        let wanted: Vec<Ordinal> = wanted.map(|(place, _)| Ordinal(place as u32 + 1)).collect();
        assert_eq!(begun, wanted, "{target}");
        let after = bench.owed();
        let intents = names(&after).iter().filter(|name| **name == "AttemptStarted").count();
        let effects = keeps.iter().filter(|class| !class.is_repeatable()).count();
        assert_eq!(intents, effects, "{target}: released, they are sent to");
    }
}
