//! Whole runs: what is called, in which order, and what is told at the end.

use serde_json::{Value, json};

use crate::TIDES;
use crate::simulation::{Run, ask};

fn publish_schema() -> Value {
    json!({
        "properties": {"title": {"type": "string"}, "body": {"type": "string", "format": "artifact-name"}},
        "required": ["title", "body"],
    })
}

#[test]
fn a_run_reads_saves_marks_publishes_and_finishes() {
    let mut run = Run::new("what makes a spring tide", TIDES);
    run.offer("publish", publish_schema(), "published", false);
    run.offer("notify", json!({"properties": {"text": {"type": "string"}}}), "sent", false);
    run.finish();

    assert_eq!(run.citations()[0].0, "sea/tides.md");
    assert!(run.report().starts_with("# what makes a spring tide\n"), "{}", run.report());
    assert_eq!(run.reached["read"], "artifact report.md");
    assert!(!run.reached.contains_key("out"), "the runtime marks that one");
    assert_eq!(run.calls("publish")[0].0, json!({"title": run.topic, "body": "report.md"}));
    assert_eq!((run.calls("publish").len(), run.calls("notify").len()), (1, 1));
    assert!(run.calls("notify")[0].0["text"].as_str().is_some_and(|text| text.contains("1 citation")));
    let last: Vec<_> = run.history.iter().rev().take(3).rev().map(|(calls, _)| calls[0].name.as_str()).collect();
    assert_eq!(last, ["publish", "notify", "finish"], "one decision each");
    assert!(run.usage.iter().all(|usage| usage.input_tokens > 100 && usage.output_tokens > 10));
    assert!(run.history.iter().all(|(calls, _)| calls[0].id == "call-1"));
}

#[test]
fn the_same_request_brings_the_same_reply() {
    let mut run = Run::new("the moon", TIDES);
    for _ in 0..3 {
        assert_eq!(ask(&run.request()), ask(&run.request()));
        run.step();
    }
}

#[test]
fn a_denied_publication_is_not_tried_again_and_is_told() {
    let mut run = Run::new("the moon", TIDES);
    run.offer("publish", publish_schema(), "denied: not on a Friday", true);
    run.offer("page", json!({"properties": {"text": {"type": "string"}}}), "exit status 3", true);
    run.offer("invoice", json!({"properties": {"amount": {"type": "number"}}, "required": ["amount"]}), "", false);
    run.refusals = vec!["not yet: milestone out is open".into(), "not yet".into()];
    run.finish();
    let summary = run.summary.clone().unwrap_or_default();
    for told in [
        "publish did not go through (denied: not on a Friday)",
        "page did not go through (failed: exit status 3)",
        "`amount`",
    ] {
        assert!(summary.contains(told), "{summary}");
    }
    assert_eq!((run.calls("publish").len(), run.calls("page").len(), run.calls("invoice").len()), (1, 1, 0));
    assert_eq!(run.calls("finish").len(), 3);
}

#[test]
fn a_refused_finish_is_followed_by_what_can_be_done() {
    let mut run = Run::new("the moon", TIDES);
    while run.artifacts.is_empty() {
        run.step();
    }
    // The milestone is marked by the next decision; then it is taken back, as a person may do.
    run.step();
    run.reached.clear();
    run.refusals = vec!["milestone read is open".into()];
    run.finish();
    assert_eq!(run.calls("plan").len(), 2);
    assert_eq!(run.calls("finish").len(), 2);
}

#[test]
fn without_documents_or_an_answer_the_report_says_so() {
    for (topic, documents) in [("tides", &[] as &[_]), ("volcanoes", TIDES), ("what is it", TIDES)] {
        let mut run = Run::new(topic, documents);
        run.finish();
        assert_eq!(run.report(), format!("# {topic}\n\nNo sentence of the documents answers this.\n"));
    }
}

#[test]
fn an_unreadable_document_is_passed_over_and_told() {
    let mut run = Run::new("the moon", TIDES);
    run.unreadable = vec!["moon.md".into()];
    run.finish();
    assert!(run.summary.as_deref().is_some_and(|summary| summary.contains("1 document could not be read")));
}
