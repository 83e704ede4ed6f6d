//! Which sentences win, over small corpora of one sentence a line.

use super::*;
use crate::memory::NOTE_BYTES;
use crate::page::Entry;

/// Takes in documents of one sentence a line.
fn read(topic: &str, documents: &[(&str, &[&str])]) -> Memory {
    let mut memory = Memory::new(terms::topic_terms(topic));
    for (name, lines) in documents {
        let entry = Entry { name: (*name).to_owned(), lines: lines.len() as u64, bytes: 1 };
        memory.queue.push_back(entry);
        let mut sentences = vec![];
        for (line, text) in (1..).zip(*lines) {
            let stems = terms::stems(text);
            memory.current.sentences += 1;
            memory.current.words += stems.len() as u64;
            let counts = terms::counts(&memory.terms, &stems);
            memory.current.counts.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
            sentences.push(Sentence { from: line, to: line, text: (*text).to_owned() });
        }
        add(&mut memory, sentences);
        fit(&mut memory);
        memory.finish_document();
    }
    memory
}

fn cited(topic: &str, documents: &[(&str, &[&str])]) -> Vec<(String, Vec<u64>)> {
    let lines = |sentences: Vec<Sentence>| sentences.iter().map(|s| s.from).collect();
    let chosen = choose(&read(topic, documents));
    chosen.into_iter().map(|(name, sentences)| (name, lines(sentences))).collect()
}

const HARBOUR: &[(&str, &[&str])] = &[
    ("boats.md", &["A boat needs a harbour.", "Every boat is moored with two lines.", "Paint dries."]),
    ("birds.md", &["Gulls nest in the harbour.", "Gulls eat what a boat throws out.", "Terns dive."]),
    ("trade.md", &["A harbour lives from trade.", "The boat brings salt.", "Salt keeps fish."]),
];

#[test]
fn the_rare_term_of_the_topic_decides() {
    assert_eq!(cited("gulls of the harbour", HARBOUR)[0], ("birds.md".into(), vec![1, 2]));
    assert_eq!(cited("mooring in the harbour", HARBOUR)[0].0, "boats.md");
    assert_eq!(cited("salt in the harbour", HARBOUR)[0], ("trade.md".to_owned(), vec![2, 3]));
}

#[test]
fn no_term_no_sentence() {
    assert_eq!(cited("volcanoes", HARBOUR), []);
    assert_eq!(cited("", HARBOUR), []);
}

#[test]
fn what_says_the_same_is_cited_once() {
    let same: &[(&str, &[&str])] = &[
        ("a.md", &["The old lighthouse guides every ship.", "Fog hides it."]),
        ("b.md", &["The old lighthouse guides every ships!", "Nobody lives there."]),
        ("c.md", &["Nothing else.", "Nothing at all."]),
    ];
    let cited = cited("lighthouse", same);
    assert_eq!(cited.iter().map(|(_, lines)| lines.len()).sum::<usize>(), 1);
}

#[test]
fn the_name_of_a_document_lifts_its_sentences() {
    let mut memory = read("tides", &[("a.md", &["Tides rise."]), ("b.md", &["Tides fall."])]);
    memory.documents[1].titled = 1;
    assert_eq!(choose(&memory)[0].0, "b.md");
    memory.documents[1].titled = 0;
    assert_eq!(choose(&memory)[0].0, "a.md", "with all else equal the order of names decides");
}

#[test]
fn one_document_does_not_crowd_out_the_rest() {
    let long: Vec<String> =
        (0..200).map(|n| format!("Tide{n} mark{n} is tide number{n} of the tide, as w{n} of x{n} saw.")).collect();
    let long: Vec<&str> = long.iter().map(String::as_str).collect();
    let memory = read("tide", &[("a.md", &long), ("b.md", &["One tide is low and one is high."])]);
    assert!(note::write(&memory).len() <= NOTE_BYTES);
    assert!(memory.documents[0].kept.len() > 5);
    assert_eq!(memory.documents[1].name, "b.md");
}
