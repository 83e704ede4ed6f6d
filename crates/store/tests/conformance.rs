//! The conformance suite over every store of this crate.

mod subjects;

use std::sync::Arc;

use lodestep_store::conformance::{Subject, cases};
use subjects::{InMemory, InSqlite};

fn prove<S: Subject + 'static>(make: impl Fn() -> S) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(8).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let failures: Vec<String> = cases()
        .into_iter()
        .filter_map(|case| runtime.block_on(case.run(Arc::new(make()))).err())
        .map(|failed| failed.to_string())
        .collect();
    assert!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn the_memory_store_keeps_every_promise() {
    prove(InMemory::new);
}

#[test]
fn the_sqlite_store_keeps_every_promise() {
    prove(InSqlite::new);
}
