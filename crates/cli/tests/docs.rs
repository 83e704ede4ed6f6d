//! Every fenced block of the README and of docs/ is run or checked: commands are typed, agent files are read, JSON is
//! compared with the real one. What can't be run says why in its info string; `--nocapture` lists it.
//!
//! The drawings of docs/state-machine.md are compared by lodestep-core, the Rust of the documents by lodestep's doc-tests.

mod documents;
mod support;

use documents::markdown::{Block, blocks, commands_in_text, documents};
use documents::scenes::Scene;
use documents::{agent_files, commands, values};
use support::root;

/// Checks a document's blocks in order. A block that names a scene begins it; the others go on in the one before.
fn check(name: &str, text: &str) -> Vec<Block> {
    let blocks = blocks(name, text);
    let mut scene = Scene::new("agent");
    for block in &blocks {
        if let Some(name) = &block.scene {
            scene = Scene::new(name);
        }
        match (block.language.as_str(), &block.no_run) {
            ("sh", Some(_)) => block.text.lines().for_each(|line| commands::check_words(&block.place, line, &scene)),
            ("sh" | "console", None) => commands::check(block, &mut scene),
            ("toml", None) => agent_files::check(block, &scene),
            ("json", None) => values::check(block, &scene),
            ("rust", None) => assert!(is_a_doc_test(name), "{}: lodestep's doc-tests leave {name} out", block.place),
            ("mermaid", None) => assert_eq!(name, "docs/state-machine.md", "{}: nobody checks it", block.place),
            ("text", Some(_)) => {}
            (language, _) => panic!("{}: nothing checks a block `{language}` that says no more", block.place),
        }
    }
    blocks
}

/// Does the library compile the Rust of this document?
fn is_a_doc_test(name: &str) -> bool {
    let library = std::fs::read_to_string(root().join("crates/runtime/src/lib.rs")).expect("the library");
    library.contains(&format!("include_str!(\"../../../{name}\")"))
}

#[test]
fn every_block_of_the_documents_does_what_it_says() {
    let documents = documents(&root());
    let blocks: Vec<Block> = std::thread::scope(|scope| {
        let checked: Vec<_> = documents.iter().map(|(name, text)| scope.spawn(move || check(name, text))).collect();
        checked.into_iter().flat_map(|document| document.join().expect("a document is wrong")).collect()
    });
    let not_run: Vec<_> = blocks.iter().filter_map(|block| Some((&block.place, block.no_run.as_ref()?))).collect();
    println!("{} blocks, of which {} are not run:", blocks.len(), not_run.len());
    not_run.iter().for_each(|(place, reason)| println!("  {place} {reason}"));
    assert!(not_run.len() * 3 < blocks.len(), "too much is not run: {not_run:?}");
}

#[test]
fn the_program_understands_every_command_of_the_text() {
    let scene = Scene::new("agent");
    let mut count = 0;
    for (name, text) in documents(&root()) {
        for command in commands_in_text(&text) {
            commands::check_words(&name, &command, &scene);
            count += 1;
        }
    }
    assert!(count > 20, "only {count} commands were found");
}
