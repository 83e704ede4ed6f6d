//! What a service is asked after kills and doubts (scenarios CTX-01, EFF-02): each call has its one result, which is the one that
//! was stored, and nothing is said of an outcome that nobody knows.

mod support;

use lodestep_model::Reply;
use lodestep_model_server::WAYS;
use serde_json::{Value, json};
use support::services::*;
use support::*;

/// What the tools say behind their arguments: what is easily changed on its way.
const ODD: &str = "é\t\"x\" \\ 🦀'";

/// A tool that applies each key once and says its arguments and more, and one that does it as often as it is called.
fn tools(world: &World) -> &'static str {
    world.write("said", ODD);
    world.write(
        "pay.sh",
        "grep -q \"^$LODESTEP_IDEMPOTENCY_KEY\" paid 2>/dev/null || echo \"$LODESTEP_IDEMPOTENCY_KEY\" >> paid\ncat; cat said\n",
    );
    world.write("mail.sh", "echo \"$LODESTEP_IDEMPOTENCY_KEY\" >> mailed; echo mailed\n");
    "[tools.pay]\ndescription = \"Pay.\"\ncommand = [\"sh\", \"pay.sh\"]\nclass = \"keyed\"\n\
     input = { type = \"object\", properties = { n = { type = \"integer\" } } }\n\
     [tools.mail]\ndescription = \"Mail.\"\ncommand = [\"sh\", \"mail.sh\"]\nclass = \"unsafe\"\ninput = { type = \"object\" }\n\
     [[policy]]\ntools = [\"pay\", \"mail\"]\ndecide = \"allow\"\n[limits]\nparallel = 1\n"
}

fn finish() -> Reply {
    calls(&[("finish", json!({"summary": "done"}))])
}

/// The results of a request's calls, in either shape, as text: each right behind its calls.
fn results(body: &Value) -> Vec<String> {
    let messages = body["messages"].as_array().expect("messages");
    let blocks = messages.iter().flat_map(|message| match &message["content"] {
        Value::Array(blocks) => blocks.clone(),
        _ => vec![message.clone()],
    });
    let results = blocks.filter(|block| block["type"] == "tool_result" || block["role"] == "tool");
    results.map(|result| text_of(&result["content"])).collect()
}

fn text_of(content: &Value) -> String {
    match content {
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        Value::String(text) => text.clone(),
        other => panic!("{other}"),
    }
}

#[test]
fn ctx_01_a_kill_after_none_one_two_and_three_of_three_results() {
    let three = [1, 2, 3].map(|n| ("pay", json!({"n": n})));
    let stored: Vec<String> = (1..=3).map(|n| format!("{{\"n\":{n}}}{ODD}")).collect();
    for way in WAYS {
        for (count, point) in ["pay:intent", "pay:outcome:1", "pay:outcome:2", "pay:outcome:3"].into_iter().enumerate()
        {
            let world = World::new();
            let service = Service::new(way, by_decisions(vec![calls(&three), finish()]));
            let agent = service.agent(&world, "", tools(&world)).to_str().expect("a path").to_owned();
            assert_eq!(world.lodestep(&["run", &agent, "--crash-at", point]).code, None, "{way:?} {point}");
            let state = world.json(&["show", &world.run_id()])["checkpoint"].clone();
            assert_eq!(state["recent"].as_array().map(Vec::len), Some(count), "{way:?} {point}: so many are stored");
            world.lodestep(&["run", &agent]).exits(0);
            let bill = service.sound_bill();
            assert_eq!(bill.entries.len(), 2, "{way:?} {point}: it is asked when all are settled, and not before");
            assert_eq!(results(bill.entries[1].body.as_ref().expect("JSON")), stored, "{way:?} {point}: to the byte");
            assert_eq!(world.read("paid").lines().count(), 3, "{way:?} {point}");
        }
    }
}

#[test]
fn eff_02_the_model_is_not_asked_while_an_outcome_is_unknown_and_then_told_what_it_was() {
    for way in WAYS {
        for (words, told) in [
            (&["--happened", "it was sent"][..], "it was sent"),
            (&["--retry"], "mailed"),
            (&["--did-not-happen"], "did not happen"),
            (&["--abandon"], "unknown"),
        ] {
            let world = World::new();
            let service = Service::new(way, by_decisions(vec![calls(&[("mail", json!({}))]), finish()]));
            let agent = service.agent(&world, "", tools(&world)).to_str().expect("a path").to_owned();
            assert_eq!(world.lodestep(&["run", &agent, "--crash-at", "mail:applied"]).code, None, "{way:?}");
            world.lodestep(&["run", &agent]).exits(5);
            world.lodestep(&["worker", "--until-idle"]).exits(0);
            assert_eq!(service.requests(), 1, "{way:?}: it is told nothing while nobody knows");
            world.lodestep(&[&["resolve", &world.run_id(), "1"], words].concat()).exits(0);
            world.lodestep(&["run", &agent]).exits(0);
            let bill = service.sound_bill();
            assert_eq!(bill.entries.len(), 2, "{way:?}");
            let results = results(bill.entries[1].body.as_ref().expect("JSON"));
            assert_eq!(results.len(), 1, "{way:?} {words:?}: {results:?}");
            assert!(results[0].contains(told), "{way:?} {words:?}: {results:?}");
            let sent = world.read("mailed").lines().count();
            assert_eq!(sent, if words[0] == "--retry" { 2 } else { 1 }, "{way:?}: never again by the machine");
        }
    }
}
