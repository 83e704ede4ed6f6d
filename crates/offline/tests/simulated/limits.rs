//! Many documents, long ones, shortened results, small notes, few calls.

use crate::simulation::Run;

#[test]
fn two_hundred_documents_fit_into_the_note() {
    let texts: Vec<(String, String)> = (0..200)
        .map(|n| {
            let line = format!("Village {n} has a mill that grinds rye number {n} for the valley and its people.\n\n");
            let rare = if n == 137 { "Only here does the mill also saw timber for ships.\n" } else { "" };
            (format!("d/{n:03}.md"), format!("# Village {n}\n\n{}{rare}", line.repeat(3 + n % 7)))
        })
        .collect();
    let documents: Vec<_> = texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let mut run = Run::new("which mill saws timber", &documents);
    run.finish();
    assert_eq!(run.citations()[0].0, "d/137.md");
    assert!(run.longest_note <= 6 * 1024, "{} bytes", run.longest_note);
    assert_eq!(run.calls("documents_read").len(), 200, "each is read once");
    assert!(run.history.len() < 50, "{} decisions", run.history.len());
    assert!(run.summary.as_deref().is_some_and(|summary| summary.contains("200 documents read")));
}

#[test]
fn a_long_document_is_read_to_its_end() {
    let mut text = "Filler about nothing much that goes\non over two lines and stops.\n\n".repeat(1_700);
    text.push_str("At the very end the heron waits for the flood to fall.\n");
    let mut run = Run::new("why the heron waits", &[("long.md", &text)]);
    run.finish();
    assert_eq!(run.citations(), [("long.md".to_owned(), 1)]);
    assert!(run.calls("documents_read").len() <= 15, "{}", run.calls("documents_read").len());
}

#[test]
fn shortened_results_are_read_on_from_the_gap() {
    let text: String = (0..300).map(|n| format!("Row {n} of the long table of herons is a sentence.\n\n")).collect();
    let mut run = Run::new("herons of row 299", &[("a.md", &text)]);
    run.shown_bytes = 3_000;
    run.finish();
    assert!(run.report().contains("Row 299 of"), "{}", run.report());
    run.citations();
}

#[test]
fn long_lines_are_cited_only_where_they_are_whole() {
    let text = format!(
        "{} The heron is here at the start of what was cut.",
        "The heron stands in the reeds the whole day. ".repeat(60)
    );
    let mut run = Run::new("heron", &[("a.md", &text), ("b.md", "Nothing about birds at all is in here.")]);
    run.finish();
    assert_eq!(run.citations(), [("a.md".to_owned(), 1)]);
}

#[test]
fn a_refused_note_is_made_smaller() {
    let texts: Vec<(String, String)> = (0..40)
        .map(|n| (format!("{n:02}.md"), format!("The moon over port{n} pulls boat{n} from quay{n} to isle{n}.\n")))
        .collect();
    let documents: Vec<_> = texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let mut run = Run::new("the moon", &documents);
    run.note_bytes = 2_500;
    run.finish();
    assert!(run.citations().len() >= 3, "{}", run.report());
    let mut run = Run::new("the moon", &documents);
    run.note_bytes = 0;
    run.finish();
    assert!(run.artifacts.is_empty(), "nothing was read");
    assert!(run.summary.as_deref().is_some_and(|summary| summary.contains("no note could be kept")));
}

#[test]
fn reading_stops_when_few_calls_are_left() {
    let text = "The heron stands in the reeds and waits.\n\n".repeat(4_000);
    let mut run = Run::new("heron", &[("a.md", &text), ("b.md", &text)]);
    run.calls_left = 10;
    run.finish();
    assert!(run.summary.as_deref().is_some_and(|summary| summary.contains("Reading was stopped")));
    assert_eq!(run.citations().len(), 1);
}
