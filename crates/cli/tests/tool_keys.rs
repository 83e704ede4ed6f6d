//! Keys of a tool's table, from an agent file to what happens: `same_by`, `repeat_reason`, `key_valid_for`,
//! `settles_after`.

mod support;

use serde_json::{Value, json};
use support::*;

/// An agent whose tool `charge`, of these keys, writes a line a charge; its replies call it with these arguments.
fn charging(world: &World, keys: &str, calls: &[Value]) -> String {
    world.write("charge.sh", "cat >> charged; echo >> charged; echo charged\n");
    world.write("lookup.sh", "cat > asked; echo '{\"status\": \"done\", \"result\": \"found\"}'\n");
    let tables = format!(
        "[tools.charge]\ndescription = \"Charge.\"\ncommand = [\"sh\", \"charge.sh\"]\n{keys}\n\
         input = {{ type = \"object\", required = [\"invoice\", \"cents\"], properties = {{ invoice = {{ type = \"integer\" }}, \
         cents = {{ type = \"integer\" }} }} }}\n[[policy]]\ntools = [\"charge\"]\ndecide = \"allow\"\n"
    );
    let calls = calls.iter().map(|arguments| json!({ "calls": [{ "name": "charge", "arguments": arguments }] }));
    let finish = json!({ "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] });
    let replies: Vec<Value> = calls.chain([finish]).collect();
    world.agent(&tables, &json!(replies)).to_str().expect("a path").to_owned()
}

fn charges(world: &World) -> Vec<Value> {
    world.read("charged").lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn an_effect_is_the_same_by_the_arguments_that_same_by_names_unless_a_reason_repeats_it() {
    let (one, other) = (json!({ "invoice": 7, "cents": 1 }), json!({ "invoice": 7, "cents": 2 }));
    let again = json!({ "invoice": 7, "cents": 2, "repeat_reason": "the customer ordered twice" });
    for (keys, calls, wanted) in [
        ("", [&one, &one], vec![&one]),
        ("", [&one, &other], vec![&one, &other]),
        ("same_by = [\"invoice\"]", [&one, &other], vec![&one]),
        // The reason is the runtime's own argument: the tool does not get it.
        ("same_by = [\"invoice\"]", [&one, &again], vec![&one, &other]),
    ] {
        let world = World::new();
        let agent = charging(&world, &format!("class = \"unsafe\"\n{keys}"), &calls.map(Clone::clone));
        world.lodestep(&["run", &agent]).exits(0);
        assert_eq!(charges(&world).iter().collect::<Vec<_>>(), wanted, "{keys} {calls:?}");
    }
}

#[test]
fn a_keyed_effect_is_sent_again_only_while_key_valid_for_lasts() {
    for (valid_for, code, count) in [("24h", 0, 2), ("1ms", 5, 1)] {
        let world = World::new();
        let keys = format!("class = \"keyed\"\nkey_valid_for = \"{valid_for}\"");
        let agent = charging(&world, &keys, &[json!({ "invoice": 7, "cents": 1 })]);
        assert_eq!(world.lodestep(&["run", &agent, "--crash-at", "charge:applied"]).code, None);
        world.lodestep(&["run", &agent]).exits(code);
        assert_eq!(charges(&world).len(), count, "{valid_for}");
    }
}

#[test]
fn a_lookup_is_asked_only_after_settles_after() {
    for (settles_after, asked, status) in [("1ms", true, "completed"), ("12h", false, "waiting")] {
        let world = World::new();
        let keys =
            format!("class = \"checkable\"\nlookup = [\"sh\", \"lookup.sh\"]\nsettles_after = \"{settles_after}\"");
        let agent = charging(&world, &keys, &[json!({ "invoice": 7, "cents": 1 })]);
        assert_eq!(world.lodestep(&["run", &agent, "--crash-at", "charge:applied"]).code, None);
        world.lodestep(&["worker", "--until-idle"]).exits(0);
        let shown = world.json(&["show", &world.run_id()]);
        assert_eq!((&shown["status"], !world.read("asked").is_empty()), (&json!(status), asked), "{settles_after}");
        assert_eq!(charges(&world).len(), 1, "{settles_after}");
    }
}
