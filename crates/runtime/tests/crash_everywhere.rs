//! A program of one's own, crashed everywhere: one whose receiver knows the key again is safe, and one whose receiver does
//! not is found out.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use lodestep::core::effect::Class;
use lodestep::testing::{
    App, Crashes, InDoubt, StoreKind, crash_everywhere, crash_everywhere_over, crash_twice_everywhere,
};
use lodestep::tools::{Functions, ToolError};
use lodestep::{RuntimeBuilder, Start};
use serde_json::json;
use support::*;

/// The bank's books: each payment with the key that it came with.
type Books = Arc<Mutex<Vec<String>>>;

/// What the bank does.
fn pay(books: &Books, knows_keys: bool, key: String) {
    let mut paid = books.lock().expect("sound");
    if !(knows_keys && paid.contains(&key)) {
        paid.push(key);
    }
}

/// A program that pays once.
struct Payer {
    class: Class,
    knows_keys: bool,
    books: Books,
}

impl App for Payer {
    fn program(&self, builder: RuntimeBuilder) -> RuntimeBuilder {
        let (books, knows_keys) = (self.books.clone(), self.knows_keys);
        let mut functions = Functions::default();
        functions.add("pay", move |call| {
            let books = books.clone();
            async move {
                tokio::task::yield_now().await;
                pay(&books, knows_keys, call.key);
                tokio::task::yield_now().await;
                Ok::<_, ToolError>(b"paid".to_vec())
            }
        });
        let replies = json!([says(&[("pay", json!({"n": 5}))]), says(&[("finish", json!({"summary": "paid"}))])]);
        builder.functions(functions).model(Arc::new(script(replies)))
    }

    fn start(&self) -> Start {
        let definition = agent(vec![tool("pay", self.class)], &["pay"]);
        Start { definition, inputs: json!({}), id: None, labels: BTreeMap::new(), join_unfinished: false }
    }

    fn reset(&self) {
        self.books.lock().expect("sound").clear();
    }

    fn applied(&self) -> BTreeMap<String, u64> {
        [("payments".to_owned(), self.books.lock().expect("sound").len() as u64)].into()
    }

    fn happened(&self, effect: &InDoubt) -> bool {
        assert_eq!(effect.tool, "pay");
        self.books.lock().expect("sound").contains(&effect.key)
    }
}

fn payer(class: Class, knows_keys: bool) -> Payer {
    Payer { class, knows_keys, books: Books::default() }
}

fn crashes(class: Class, knows_keys: bool) -> Crashes {
    crash_everywhere(&payer(class, knows_keys))
}

#[test]
fn a_program_whose_receiver_knows_the_key_survives_every_crash() {
    for (class, knows_keys) in [(Class::Keyed, true), (Class::Unsafe, false)] {
        let crashes = crashes(class, knows_keys);
        assert!(crashes.are_survived(), "{class:?}: {crashes:?}");
        assert!(crashes.stories > 30, "{crashes:?}");
    }
}

#[test]
fn it_survives_every_crash_and_every_pair_of_crashes_over_sqlite_too() {
    for (class, knows_keys) in [(Class::Keyed, true), (Class::Unsafe, false)] {
        let payer = payer(class, knows_keys);
        let crashes = crash_everywhere_over(&payer, StoreKind::Sqlite);
        assert!(crashes.are_survived() && crashes.stories > 30, "{class:?}: {crashes:?}");
        for store in [StoreKind::Memory, StoreKind::Sqlite] {
            let crashes = crash_twice_everywhere(&payer, store);
            assert!(crashes.are_survived() && crashes.stories > 40, "{class:?} {store:?}: {crashes:?}");
        }
    }
}

#[test]
fn a_receiver_that_does_not_know_the_key_is_found_out() {
    let crashes = crashes(Class::Keyed, false);
    assert!(!crashes.are_survived() && !crashes.doubled.is_empty(), "{crashes:?}");
    assert!(crashes.lost.is_empty() && crashes.broken.is_empty(), "{crashes:?}");
    let said: BTreeSet<&str> = crashes.doubled.iter().filter_map(|what| what.split(": ").nth(1)).collect();
    assert_eq!(said, ["payments 2 times instead of 1"].into());
}
