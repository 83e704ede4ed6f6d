//! What statements come to, in databases of the test.

use std::path::Path;
use std::time::Duration;

use lodestep_core::effect::Seen;
use lodestep_core::rules::settle::LookedUp;
use lodestep_store::{SqliteStore, SystemClock};
use rusqlite::Connection;
use serde_json::{Value, json};

use super::{Brake, Key, Statement};
use crate::tools::Sight;

const SCHEMA: &str = "CREATE TABLE account (id INTEGER PRIMARY KEY, name TEXT UNIQUE);
    CREATE TABLE charge (id INTEGER PRIMARY KEY, cents INTEGER CHECK (cents > 0), note, data,
        account INTEGER REFERENCES account (id) DEFERRABLE INITIALLY DEFERRED);
    CREATE TRIGGER stop BEFORE INSERT ON charge WHEN new.note = 'stop' BEGIN SELECT RAISE(ROLLBACK, 'stopped'); END;
    INSERT INTO account (id, name) VALUES (1, 'ada')";

struct Shop(tempfile::TempDir);

impl Shop {
    fn new() -> Self {
        let shop = Self(tempfile::tempdir().unwrap());
        Connection::open(shop.path()).unwrap().execute_batch(SCHEMA).unwrap();
        shop
    }

    fn path(&self) -> std::path::PathBuf {
        self.0.path().join("shop.db")
    }

    fn db(&self) -> Connection {
        Connection::open(self.path()).unwrap()
    }

    fn count(&self, table: &str) -> u32 {
        self.db().query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    }

    fn effect(&self, text: &str, arguments: Value, key: &str, epoch: u64) -> Statement {
        let key = Key { key: key.to_owned(), epoch, tool: "charge".to_owned(), run: "r".to_owned(), action: 1 };
        Statement { key: Some(key), ..self.query(text, arguments) }
    }

    fn query(&self, text: &str, arguments: Value) -> Statement {
        Statement {
            database: self.path(),
            text: text.to_owned(),
            arguments,
            key: None,
            timeout: Duration::from_millis(50),
        }
    }
}

fn performed(statement: &Statement) -> (Seen, String) {
    let Sight { seen, text, .. } = statement.perform(&Brake::default());
    (seen, String::from_utf8(text).unwrap())
}

const CHARGE: &str = "INSERT INTO charge (cents, note) VALUES (:cents, :note)";

#[test]
fn a_key_is_applied_once_and_keeps_its_result() {
    let shop = Shop::new();
    let text = "INSERT INTO charge (cents) VALUES (:cents) RETURNING id, cents";
    for epoch in [1, 1, 2, 3, 1] {
        let sight = performed(&shop.effect(text, json!({"cents": 1900}), "k1:a", epoch));
        assert_eq!(sight, (Seen::Done, r#"[{"cents":1900,"id":1}]"#.to_owned()), "epoch {epoch}");
    }
    assert_eq!((shop.count("charge"), shop.count("lodestep_applied")), (1, 1));
    let other = performed(&shop.effect(CHARGE, json!({"cents": 1}), "k1:b", 1));
    assert_eq!(other, (Seen::Done, r#"{"changed":1}"#.to_owned()));
    assert_eq!(shop.count("charge"), 2);
}

#[test]
fn many_at_once_apply_a_key_once() {
    let shop = Shop::new();
    let statement = Statement { timeout: Duration::from_secs(20), ..shop.effect(CHARGE, json!({"cents": 5}), "k", 1) };
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| assert_eq!(performed(&statement), (Seen::Done, r#"{"changed":1}"#.to_owned())));
        }
    });
    assert_eq!(shop.count("charge"), 1);
}

#[test]
fn a_lookup_tells_and_fences_what_is_still_on_its_way() {
    let shop = Shop::new();
    let effect = |epoch| shop.effect(CHARGE, json!({"cents": 5}), "k", epoch);
    assert_eq!(effect(2).ask(), LookedUp::Absent);
    let (seen, text) = performed(&effect(1));
    assert_eq!((seen, shop.count("charge")), (Seen::NotStarted, 0), "{text}");
    assert_eq!(effect(3).ask(), LookedUp::Absent, "asked again");
    assert_eq!(performed(&effect(3)).0, Seen::Done);
    for epoch in [1, 3, 9] {
        assert_eq!(effect(epoch).ask(), LookedUp::Done(br#"{"changed":1}"#.to_vec()));
    }
    assert_eq!(shop.count("charge"), 1);
}

#[test]
fn what_a_fault_proves() {
    let shop = Shop::new();
    let store = shop.0.path().join("store/lodestep.db");
    drop(SqliteStore::open(&store, std::sync::Arc::new(SystemClock)).unwrap());
    let linked = shop.0.path().join("linked.db");
    std::fs::hard_link(&store, &linked).unwrap();
    std::fs::write(shop.0.path().join("text.db"), "no database at all, only some text").unwrap();
    let at = |name: &str| Statement { database: shop.0.path().join(name), ..shop.effect(CHARGE, json!({}), "k", 1) };
    let with = |text: &str| shop.effect(text, json!({"cents": 5, "note": "stop"}), "k", 1);
    for (statement, seen, says) in [
        (at("none.db"), Seen::NotStarted, "unable to open"),
        (at("text.db"), Seen::NotStarted, "not a database"),
        (at("linked.db"), Seen::Refused, "tool.own_store"),
        (at("store/lodestep.db"), Seen::Refused, "tool.own_store"),
        (with("INSERT INTO charge (cents) VALUES (-:cents)"), Seen::Refused, "CHECK"),
        (with("INSERT INTO account (name) VALUES ('ada')"), Seen::Refused, "UNIQUE"),
        (with("INSERT INTO charge (account) VALUES (7)"), Seen::Refused, "FOREIGN KEY"),
        (with(CHARGE), Seen::Refused, "stopped"),
        (with("INSERT OR ROLLBACK INTO account (name) VALUES ('ada')"), Seen::Refused, "UNIQUE"),
        (with("INSERT INTO missing VALUES (1)"), Seen::Refused, "no such table"),
        (with("INSERT INTO"), Seen::Refused, "incomplete input"),
        (with("DELETE FROM charge; DELETE FROM account"), Seen::Refused, "Multiple statements"),
        (with("COMMIT"), Seen::Refused, "not authorized"),
        (with("SAVEPOINT a"), Seen::Refused, "not authorized"),
        (with("ATTACH 'other.db' AS other"), Seen::Refused, "not authorized"),
        (with("PRAGMA foreign_keys = OFF"), Seen::Refused, "not authorized"),
        (with("DELETE FROM lodestep_applied"), Seen::Refused, "not authorized"),
        (with("DROP TABLE Lodestep_Applied"), Seen::Refused, "not authorized"),
        (with("UPDATE account SET name = 'x' RETURNING id, name AS id"), Seen::Refused, "two columns"),
        (shop.query("DELETE FROM account", json!({})), Seen::Refused, "declared to read"),
        (shop.query("DELETE FROM account RETURNING id", json!({})), Seen::Refused, "declared to read"),
    ] {
        let (was, text) = performed(&statement);
        assert_eq!(was, seen, "{statement:?}: {text}");
        assert!(text.contains(says), "{statement:?}: {text}");
    }
    assert_eq!((shop.count("charge"), shop.count("account")), (0, 1));
    assert_eq!(with("SELECT 1").ask(), LookedUp::Absent, "nothing of it left a key");
    assert!(matches!(at("none.db").ask(), LookedUp::NotNow(_)), "asked again later");
}

#[test]
fn a_locked_database_is_one_that_nothing_was_sent_to() {
    let shop = Shop::new();
    let holder = shop.db();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let statement = shop.effect(CHARGE, json!({"cents": 5}), "k", 1);
    assert_eq!(performed(&statement).0, Seen::NotStarted);
    assert!(matches!(statement.ask(), LookedUp::NotNow(_)));
    holder.execute_batch("COMMIT; BEGIN; SELECT * FROM account").unwrap();
    // A reader lets the statement begin, and keeps its commit back.
    assert_eq!(performed(&statement).0, Seen::NotStarted);
    holder.execute_batch("COMMIT").unwrap();
    assert_eq!(shop.count("charge"), 0);
    assert_eq!(performed(&statement).0, Seen::Done);
}

#[tokio::test]
async fn a_statement_without_end_is_rolled_back_in_time() {
    let shop = Shop::new();
    let endless =
        "INSERT INTO charge (cents) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n";
    let statement = shop.effect(endless, json!({}), "k", 1);
    let sight = statement.clone().attempt(std::future::pending()).await;
    assert_eq!(sight.seen, Seen::NotStarted);
    let stopped = Statement { timeout: Duration::from_secs(600), ..statement };
    assert_eq!(stopped.attempt(std::future::ready(())).await.seen, Seen::NotStarted);
    assert_eq!(shop.count("charge"), 0);
}

#[test]
fn values_come_and_go_exactly() {
    let shop = Shop::new();
    let text =
        "INSERT INTO charge (cents, note, data) VALUES (:cents, :note, unhex(:data)) RETURNING cents, note, data";
    let arguments = json!({"cents": 9_007_199_254_740_992_u64, "note": "a\u{0}b ☃ \u{10fffd}", "data": "00ff80"});
    let said = performed(&shop.effect(text, arguments.clone(), "k", 1)).1;
    let row = &serde_json::from_str::<Value>(&said).unwrap()[0];
    assert_eq!((&row["cents"], &row["note"]), (&arguments["cents"], &arguments["note"]));
    assert_eq!(row["data"], json!({"hex": "00ff80"}));
    let kept: (i64, String, Vec<u8>) = shop
        .db()
        .query_row("SELECT cents, note, data FROM charge", [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .unwrap();
    assert_eq!(kept, (9_007_199_254_740_992, "a\u{0}b ☃ \u{10fffd}".to_owned(), vec![0, 255, 128]));
    let text = "SELECT :yes, typeof(:none) AS none, typeof(:half) AS half, :list ->> 1 AS second, 9223372036854775807 AS whole,
        9e999 AS endless, CAST(x'61ff' AS TEXT) AS broken";
    let said = performed(&shop.query(text, json!({"yes": true, "half": 0.5, "list": [1, "two"]}))).1;
    let expected = r#"[{":yes":1,"broken":{"hex":"61ff"},"endless":"inf","half":"real","none":"null","second":"two","whole":9223372036854775807}]"#;
    assert_eq!(said, expected);
    assert_eq!(performed(&shop.query("SELECT 1 AS a WHERE 0", json!({}))).1, "[]");
}

#[test]
fn a_result_that_is_too_large_changes_nothing() {
    let shop = Shop::new();
    let text = "INSERT INTO charge (cents, data) VALUES (1, zeroblob(40000000)) RETURNING data";
    let (seen, said) = performed(&shop.effect(text, json!({}), "k", 1));
    assert_eq!(seen, Seen::Refused, "{said}");
    assert!(said.contains("LIMIT"), "{said}");
    assert_eq!(shop.count("charge"), 0);
}

#[test]
fn the_table_of_keys_is_read_by_any_sqlite() {
    let shop = Shop::new();
    performed(&shop.effect(CHARGE, json!({"cents": 5}), "k", 1));
    let made: String = shop
        .db()
        .query_row("SELECT sql FROM sqlite_schema WHERE name = 'lodestep_applied'", [], |row| row.get(0))
        .unwrap();
    assert!(!made.contains("STRICT"), "{made}");
    assert!(Path::new(&shop.path()).is_file());
}
