//! Listings: runs by status, agent and id, requests by name.

use std::sync::Arc;

use lodestep_core::event::{Ending, Event, RunEnded};
use lodestep_core::rules::standing::Status;
use lodestep_core::{RunId, RunKey};

use super::script::{Held, RELEASE, begin, cancel, key, labelled, start_of};
use super::{Checked, Subject, ensure, ensure_equal};
use crate::store::{Filter, RunRow};

/// A label: name and value.
type Pair = (&'static str, &'static str);

fn ids(rows: &[RunRow]) -> Vec<&str> {
    rows.iter().map(|row| row.run.key.run.as_str()).collect()
}

pub(super) async fn runs_are_listed_newest_first(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    ensure_equal!(store.list("default", &Filter::default()).await?.len(), 0);
    for id in ["b", "c", "a"] {
        begin(&*store, id).await?;
    }
    let rows = subject.reopen().list("default", &Filter::default()).await?;
    ensure_equal!(ids(&rows), ["a", "c", "b"]);
    for row in &rows {
        ensure_equal!(*row, store.load(&row.run.key).await?.row);
    }
    let limited = Filter { limit: Some(2), ..Filter::default() };
    ensure_equal!(ids(&store.list("default", &limited).await?), ["a", "c"]);
    Ok(())
}

pub(super) async fn a_listing_shows_only_what_its_filter_names(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let theirs = RunKey { namespace: "theirs".to_owned(), run: RunId::parse("x")? };
    store.start(start_of(&*store, theirs, "agent", "{}")?).await?;
    for (id, agent) in [("r1", "a"), ("r2", "b"), ("r3", "a"), ("r4", "b")] {
        store.start(start_of(&*store, key(id)?, agent, "{}")?).await?;
    }
    let worker = store.enlist().await?;
    let mut waiting = Held::take(&store, "r3", worker.clone()).await?;
    waiting.ask(RELEASE).await?;
    let mut ended = Held::take(&store, "r2", worker).await?;
    let draft = ended.end()?;
    ended.commit(draft, RELEASE).await?;
    let list = async |statuses: &[Status], agent: Option<&str>, limit: Option<usize>| {
        let filter =
            Filter { statuses: statuses.to_vec(), agent: agent.map(str::to_owned), limit, ..Filter::default() };
        let rows = store.list("default", &filter).await?;
        Ok::<_, super::Failed>(rows.iter().map(|row| row.run.key.run.to_string()).collect::<Vec<_>>())
    };
    ensure_equal!(list(&[], None, None).await?, ["r4", "r3", "r2", "r1"]);
    ensure_equal!(list(&[], Some("a"), None).await?, ["r3", "r1"]);
    ensure_equal!(list(&[], Some("a"), Some(1)).await?, ["r3"]);
    ensure_equal!(list(&[], Some("none"), None).await?, [""; 0]);
    ensure_equal!(list(&[Status::Ready], None, None).await?, ["r4", "r1"]);
    ensure_equal!(list(&[Status::Ready, Status::Ready], None, None).await?, ["r4", "r1"]);
    ensure_equal!(list(&[Status::Waiting, Status::Completed], None, None).await?, ["r3", "r2"]);
    ensure_equal!(list(&[Status::Waiting, Status::Completed], None, Some(1)).await?, ["r3"]);
    ensure_equal!(list(&[Status::Ready], Some("b"), None).await?, ["r4"]);
    ensure_equal!(list(&[Status::Failed], Some("b"), None).await?, [""; 0]);
    ensure_equal!(ids(&store.list("theirs", &Filter::default()).await?), ["x"]);
    Ok(())
}

pub(super) async fn who_is_in_doubt_is_listed_whether_or_not_it_is_over(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    for id in ["doubt", "over", "plain", "ready"] {
        begin(&*store, id).await?;
    }
    let worker = store.enlist().await?;
    for id in ["doubt", "over", "plain"] {
        let mut run = Held::take(&store, id, worker.clone()).await?;
        if id != "plain" {
            run.doubt().await?;
        }
        if id != "doubt" {
            store.send(&run.key(), "enough", &cancel()).await?;
            let mut draft = run.reading().await?;
            let text = draft.put("cancelled");
            draft.push(Event::RunEnded(RunEnded { ending: Ending::Cancelled, text }))?;
            run.commit(draft, RELEASE).await?;
        }
    }
    let in_doubt = |statuses: &[Status]| Filter { statuses: statuses.to_vec(), in_doubt: true, ..Filter::default() };
    let all = [Status::InDoubt, Status::Completed, Status::Failed, Status::Cancelled];
    for (statuses, wanted) in [(&all[..], &["over", "doubt"][..]), (&[Status::Cancelled], &["over"])] {
        ensure_equal!(ids(&store.list("default", &in_doubt(statuses)).await?), wanted);
        ensure_equal!(store.count("default", &in_doubt(statuses), 9).await?, wanted.len());
    }
    ensure_equal!(ids(&store.list("default", &in_doubt(&[])).await?), ["over", "doubt"]);
    Ok(())
}

pub(super) async fn a_listing_goes_by_labels_and_by_when_a_run_began(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let runs: [(&str, &str, &[Pair]); 5] = [
        ("r1", "a", &[("team", "billing"), ("month", "11")]),
        ("r2", "b", &[("team", "billing")]),
        ("r3", "a", &[("team", "billing = 2")]),
        ("r4", "a", &[("month", "11")]),
        ("r5", "b", &[]),
    ];
    let mut began = Vec::new();
    for (id, agent, labels) in runs {
        subject.clock().advance_ms(7_200_000);
        began.push(store.now());
        store.start(labelled(&*store, key(id)?, agent, labels)?).await?;
    }
    let worker = store.enlist().await?;
    Held::take(&store, "r2", worker).await?.ask(RELEASE).await?;
    let labels = |names: &[(&str, &str)]| {
        names.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect::<Vec<_>>()
    };
    let list = async |filter: Filter| {
        let rows = subject.reopen().list("default", &filter).await?;
        ensure_equal!(store.count("default", &filter, 9).await?, rows.len());
        ensure_equal!(store.count("default", &filter, 1).await?, rows.len().min(2));
        for row in &rows {
            let (_, _, given) = runs.iter().find(|(id, ..)| *id == row.run.key.run.as_str()).ok_or("it was started")?;
            ensure_equal!(row.labels.clone().into_iter().collect::<Vec<_>>().len(), given.len());
            ensure!(given.iter().all(|(name, value)| row.labels[*name] == *value), "{row:?} has its labels");
        }
        Ok::<_, super::Failed>(rows.iter().map(|row| row.run.key.run.to_string()).collect::<Vec<_>>())
    };
    let by = |names: &[(&str, &str)]| Filter { labels: labels(names), ..Filter::default() };
    ensure_equal!(list(by(&[("team", "billing")])).await?, ["r2", "r1"]);
    ensure_equal!(list(by(&[("team", "billing"), ("month", "11")])).await?, ["r1"]);
    ensure_equal!(list(by(&[("month", "11"), ("team", "billing")])).await?, ["r1"]);
    ensure_equal!(list(by(&[("team", "billing = 2")])).await?, ["r3"]);
    ensure_equal!(list(by(&[("team", "")])).await?, [""; 0]);
    ensure_equal!(list(Filter { agent: Some("a".to_owned()), ..by(&[("month", "11")]) }).await?, ["r4", "r1"]);
    ensure_equal!(list(Filter { statuses: vec![Status::Waiting], ..by(&[("team", "billing")]) }).await?, ["r2"]);
    ensure_equal!(list(Filter { statuses: vec![Status::Ready], ..Filter::default() }).await?.len(), 4);
    ensure_equal!(list(Filter { since: Some(began[2]), ..Filter::default() }).await?, ["r5", "r4", "r3"]);
    ensure_equal!(list(Filter { since: Some(began[3]), ..by(&[("month", "11")]) }).await?, ["r4"]);
    ensure_equal!(list(Filter { since: Some(began[4].plus_ms(1)), ..Filter::default() }).await?, [""; 0]);
    Ok(())
}

pub(super) async fn a_run_is_found_by_the_end_of_its_id(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    for id in ["7k2m", "a-7k2m", "b-7k2m", "c-9x"] {
        begin(&*store, id).await?;
    }
    let theirs = RunKey { namespace: "theirs".to_owned(), run: RunId::parse("d-9x")? };
    store.start(start_of(&*store, theirs, "agent", "{}")?).await?;
    let find = async |end: &str, limit: usize| {
        let rows = subject.reopen().find("default", end, limit).await?;
        let mut found: Vec<String> = rows.iter().map(|row| row.run.key.run.to_string()).collect();
        found.sort();
        Ok::<_, super::Failed>(found)
    };
    ensure_equal!(find("9x", 9).await?, ["c-9x"]);
    ensure_equal!(find("7k2m", 9).await?, ["7k2m"]);
    ensure_equal!(find("k2m", 9).await?, ["7k2m", "a-7k2m", "b-7k2m"]);
    ensure_equal!(find("-7k2m", 9).await?, ["a-7k2m", "b-7k2m"]);
    ensure_equal!(find("k2m", 2).await?.len(), 2);
    ensure_equal!(find("", 9).await?.len(), 4);
    for none in ["K2M", "%", "_", "7k", "c-9x-", "é", "\0"] {
        ensure_equal!(find(none, 9).await?, [""; 0]);
    }
    Ok(())
}

pub(super) async fn requests_are_found_by_the_start_of_their_name(subject: Arc<dyn Subject>) -> Checked {
    let store = subject.store();
    let mut names = Vec::new();
    for id in ["one", "two", "three"] {
        let mut held = Held::begin(&store, id).await?;
        names.push(held.ask(RELEASE).await?);
    }
    for name in &names {
        let hex = name.to_hex();
        for len in [64, 63, 13, 8] {
            let found = subject.reopen().find_requests("default", &hex[..len]).await?;
            ensure_equal!(found.iter().map(|row| row.name).collect::<Vec<_>>(), [*name]);
        }
        ensure_equal!(store.find_requests("theirs", &hex).await?.len(), 0);
    }
    ensure_equal!(store.find_requests("default", "").await?.len(), 3);
    let wanted = names.iter().filter(|name| name.to_hex().starts_with(&names[0].to_hex()[..1])).count();
    ensure_equal!(store.find_requests("default", &names[0].to_hex()[..1]).await?.len(), wanted);
    for none in
        ["xyz", "é", &"0".repeat(65), &names[0].to_hex().to_uppercase().replace(|c: char| c.is_ascii_digit(), "A")]
    {
        ensure_equal!(store.find_requests("default", none).await?.len(), 0);
    }
    Ok(())
}
