//! The `sql` tool through an agent file: its statement happens once, whoever dies when and however many work.

mod support;

use rusqlite::Connection;
use serde_json::json;
use support::*;

const TOOLS: &str = r#"
[tools.charge]
description = "Charge."
sql = { database = "shop.db", statement = "INSERT INTO charge (cents) VALUES (:cents) RETURNING id" }
input = { type = "object", required = ["cents"], properties = { cents = { type = "integer" } } }
[tools.orders]
description = "Look at the orders."
sql = { database = "shop.db", statement = "SELECT * FROM word" }
input = { type = "object" }
class = "read"
[[policy]]
tools = ["charge"]
decide = "allow"
"#;

/// A shop's database, and an agent that charges once and finishes.
fn shop(world: &World) -> String {
    let db = database(world);
    db.execute_batch("CREATE TABLE charge (id INTEGER PRIMARY KEY, cents INTEGER); CREATE TABLE word (text TEXT)")
        .expect("made");
    let replies = json!([
        { "calls": [{ "name": "charge", "arguments": { "cents": 1900 } }] },
        { "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] },
    ]);
    world.agent(TOOLS, &replies).to_str().expect("a path").to_owned()
}

fn database(world: &World) -> Connection {
    Connection::open(world.path().join("shop.db")).expect("a database")
}

fn rows(world: &World, table: &str) -> u32 {
    database(world).query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).expect("counted")
}

#[test]
fn sql_a_crash_round_a_statement_leaves_it_done_once() {
    for point in ["charge:intent", "charge:applied", "charge:outcome", "run:checkpoint", "model:reply"] {
        let world = World::new();
        let agent = shop(&world);
        assert_eq!(world.lodestep(&["run", &agent, "--crash-at", point]).code, None, "{point}");
        let since = std::time::Instant::now();
        world.lodestep(&["run", &agent]).exits(0);
        assert!(since.elapsed().as_secs() < 10, "{point}: no time is waited out before it is looked up");
        assert_eq!((rows(&world, "charge"), rows(&world, "lodestep_applied")), (1, 1), "{point}");
        let effects = world.lodestep(&["effects", &world.run_id()]).exits(0);
        assert!(effects.out.contains("charge"), "{effects:?}");
        world.lodestep(&["verify"]).exits(0);
    }
}

#[test]
fn sql_two_workers_apply_each_statement_once() {
    let world = World::new();
    let agent = shop(&world);
    for number in 0..12 {
        let id = format!("run-{number}");
        assert_eq!(world.lodestep(&["run", &agent, "--id", &id, "--crash-at", "run:accepted"]).code, None);
    }
    let mut workers = [world.start(&["worker", "--until-idle"]), world.start(&["worker", "--until-idle"])];
    workers.iter_mut().for_each(|worker| assert_eq!(worker.ended(), Some(0)));
    world.lodestep(&["worker", "--until-idle"]).exits(0);
    assert_eq!(world.json(&["ls", "--status", "completed"]).as_array().map(Vec::len), Some(12));
    assert_eq!((rows(&world, "charge"), rows(&world, "lodestep_applied")), (12, 12));
}

#[test]
fn sql_an_argument_that_a_double_cannot_hold_is_refused_by_name() {
    let world = World::new();
    shop(&world);
    let replies = json!([
        { "calls": [{ "name": "charge", "raw": "{\"cents\":9007199254740993}" }] },
        { "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] },
    ]);
    let agent = world.agent(TOOLS, &replies);
    world.lodestep(&["run", agent.to_str().expect("a path")]).exits(0);
    assert_eq!(rows(&world, "charge"), 0);
    let log = world.lodestep(&["show", &world.run_id()]).exits(0);
    assert!(log.out.contains("9007199254740993"), "{log:?}");
}

#[test]
fn sql_the_runs_own_store_is_no_target() {
    let world = World::new();
    let tables = TOOLS.replace("shop.db", "store.db");
    let replies = json!([
        { "calls": [{ "name": "charge", "arguments": { "cents": 1 } }, { "name": "orders" }] },
        { "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] },
    ]);
    let agent = world.agent(&tables, &replies);
    world.lodestep(&["run", agent.to_str().expect("a path")]).exits(0);
    let shown = world.lodestep(&["show", &world.run_id()]).exits(0);
    assert!(shown.out.contains("tool.own_store"), "{shown:?}");
    world.lodestep(&["verify"]).exits(0);
}

#[test]
fn sql_many_rows_become_an_artifact_with_every_byte() {
    let world = World::new();
    let words = "INSERT INTO word WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
        SELECT printf('word %d', i) FROM n";
    shop(&world);
    database(&world).execute_batch(words).expect("filled");
    let replies = json!([
        { "calls": [{ "name": "orders" }] },
        { "calls": [{ "name": "finish", "arguments": { "summary": "done" } }] },
    ]);
    let agent = world.agent(TOOLS, &replies);
    world.lodestep(&["run", agent.to_str().expect("a path")]).exits(0);
    let id = world.run_id();
    let said = world.lodestep(&["artifacts", &id, "output-1.txt"]).exits(0);
    let rows: Vec<serde_json::Value> = serde_json::from_str(&said.out).expect("JSON");
    assert_eq!((rows.len(), &rows[4_999]), (5_000, &json!({"text": "word 5000"})));
}
