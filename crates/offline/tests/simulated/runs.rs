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
fn a_denied_publication_is_neither_got_round_nor_announced() {
    let mut run = Run::new("the moon", TIDES);
    run.offer("invoice", json!({"properties": {"amount": {"type": "number"}}, "required": ["amount"]}), "", false);
    run.offer("publish", publish_schema(), "denied: not on a Friday", true);
    run.offer("page", publish_schema(), "paged", false);
    run.offer("notify", json!({"properties": {"text": {"type": "string"}}}), "sent", false);
    run.refusals = vec!["not yet: milestone out is open".into(), "not yet".into()];
    run.finish();
    let summary = run.summary.clone().unwrap_or_default();
    for told in [
        "publish did not go through (denied: not on a Friday) and was not called again",
        "page was not called, since publish did not go through",
        "notify was not called, since publish did not go through",
        "`amount`",
    ] {
        assert!(summary.contains(told), "{summary}");
    }
    let calls = ["publish", "page", "notify", "invoice"].map(|tool| run.calls(tool).len());
    assert_eq!(calls, [1, 0, 0, 0]);
    assert_eq!(run.calls("finish").len(), 3);
    assert!(run.calls("finish").iter().all(|(said, _)| said["summary"] == json!(summary)), "it says so every time");
}

#[test]
fn a_failed_publication_is_not_announced() {
    let mut run = Run::new("the moon", TIDES);
    run.offer("publish", publish_schema(), "exit status 3", true);
    run.offer("notify", json!({"properties": {"text": {"type": "string"}}}), "sent", false);
    run.finish();
    assert_eq!((run.calls("publish").len(), run.calls("notify").len()), (1, 0));
    let summary = run.summary.clone().unwrap_or_default();
    assert!(summary.contains("publish did not go through (exit status 3)"), "{summary}");
}

#[test]
fn nothing_is_called_published_before_it_is() {
    let mut run = Run::new("the moon", TIDES);
    run.offer("notify", json!({"properties": {"text": {"type": "string"}}}), "sent", false);
    run.offer("publish", publish_schema(), "published", false);
    run.offer("tell", json!({"properties": {"text": {"type": "string"}}}), "told", false);
    run.finish();
    let said = |tool: &str| run.calls(tool)[0].0["text"].as_str().map(str::to_owned).unwrap_or_default();
    assert!(said("notify").contains("is saved as report.md"), "{}", said("notify"));
    assert!(said("tell").contains("is published"), "{}", said("tell"));
}

#[test]
fn with_nothing_to_read_it_gives_up_and_looks_once_more_after_each_refusal() {
    let mut run = Run::new("tides", &[]);
    run.refusals = vec!["not complete yet: artifact report.md".into()];
    run.finish();
    assert!(run.artifacts.is_empty() && run.reached.is_empty(), "no report, no milestone");
    assert_eq!((run.calls("documents_list").len(), run.calls("finish").len()), (2, 2));
    let summary = run.summary.clone().unwrap_or_default();
    assert!(summary.contains("nothing to read") && summary.contains("lists no document"), "{summary}");

    let mut run = Run::new("tides", TIDES);
    run.unlisted = Some("the folder /gone is not there".into());
    run.refusals = vec!["not complete yet: artifact report.md".into()];
    run.step();
    run.step();
    assert!(run.calls("finish")[0].0["summary"].as_str().is_some_and(|said| said.contains("/gone is not there")));
    assert!(run.artifacts.is_empty() && run.reached.is_empty());
    // The folder is there again, and the run was told to go on.
    run.unlisted = None;
    run.finish();
    assert!(run.artifacts.contains_key("report.md"));

    let mut run = Run::new("tides", TIDES);
    run.unreadable = TIDES.iter().map(|(name, _)| (*name).into()).collect();
    run.finish();
    assert!(run.artifacts.is_empty() && run.reached.is_empty());
    let summary = run.summary.clone().unwrap_or_default();
    assert!(summary.contains("nothing to read") && summary.contains("3 documents could not be read"), "{summary}");
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
fn without_an_answer_the_report_says_so() {
    for topic in ["volcanoes", "what is it"] {
        let mut run = Run::new(topic, TIDES);
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

#[test]
fn a_word_after_a_no_has_it_asked_once_more() {
    let mut run = Run::new("the moon", TIDES);
    run.offer("publish", publish_schema(), "denied: not on a Friday", true);
    run.refusals = vec!["not yet: milestone out is open".into(), "not yet".into(), "not yet".into()];
    while run.refusals.len() > 1 {
        run.step();
    }
    assert_eq!(run.calls("publish").len(), 1);
    run.guidance = Some("- ada: it is Monday\n".into());
    run.answers.insert("publish".into(), ("published".into(), false));
    run.step();
    assert_eq!(run.calls("publish").len(), 2, "a person has spoken since");
    run.refusals.clear();
    run.finish();
    assert_eq!(run.calls("publish").len(), 2);
    assert!(!run.summary.clone().unwrap_or_default().contains("did not go through"), "{:?}", run.summary);
}

#[test]
fn a_word_has_nothing_sent_again_that_failed() {
    let mut run = Run::new("the moon", TIDES);
    run.offer("publish", publish_schema(), "exit status 3", true);
    run.refusals = vec!["not yet: milestone out is open".into(), "not yet".into()];
    while run.refusals.len() > 1 {
        run.step();
    }
    run.guidance = Some("- ada: go on\n".into());
    run.finish();
    assert_eq!(run.calls("publish").len(), 1);
}

#[test]
fn what_waits_is_no_publishing_tool() {
    let mut run = Run::new("the moon", TIDES);
    run.offer("wait", json!({"properties": {"seconds": {"type": "integer"}, "until": {"type": "string"}}}), "", false);
    let signal = json!({"properties": {"name": {"type": "string"}, "timeout_seconds": {"type": "integer"}}, "required": ["name"]});
    run.offer("wait_for_signal", signal, "", false);
    run.finish();
    let summary = run.summary.clone().unwrap_or_default();
    assert!(!summary.contains("wait") && run.calls("wait").is_empty(), "{summary}");
}
