//! Processes that end between a run and its webhooks.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;
use tokio_util::sync::CancellationToken;
use toolgate::core::run::Status;
use toolgate::ports::{EndpointFilter, EndpointSaved, RunFilter, RunStore, WebhookEndpoint, WebhookEndpoints};
use toolgate::runner::Request;

use super::process::{Process, SECRET, endpoint};
use super::receiver::{Manner, Received, Receiver};
use super::{HERE, Hooked, until};
use crate::runner::world::{Kept, given_an_agent, say};

/// The directory of the child, which is this test in another process.
const DIRECTORY: &str = "TOOLGATE_TEST_WEBHOOK_DIRECTORY";
const ENOUGH: usize = 40;

#[tokio::test]
async fn a_process_that_ends_between_claim_and_attempt_loses_nothing() {
    let world = given_an_agent().whose_model_says(json!([say("Done.")])).kept(Kept::InAFile).await;
    let mut hooked = Hooked::quiet(world, HERE).await;
    let receiver = Receiver::that_answers([Manner::Never, Manner::Status(204)]).await;
    let id = hooked.add(&receiver, &[]).await;
    hooked.served.run(json!({"input": "Hello"})).await;
    hooked.dispatch();
    receiver.receives(1).await;
    // No shutdown: writes that were about to happen never do.
    hooked.dispatching.shutdown().await;
    hooked.dispatch();
    hooked.clock.by(61);
    let received = receiver.receives(2).await;
    assert_eq!(received[0].id, received[1].id, "a duplicate has the same id");
    hooked.delivery(&id, |delivery| delivery["status"] == "delivered").await;
}

#[tokio::test]
async fn a_dispatcher_that_stops_finishes_its_attempts() {
    let world = given_an_agent().whose_model_says(json!([say("Done.")])).ready().await;
    let mut hooked = Hooked::with(world).await;
    let receiver = Receiver::that_answers([Manner::Never]).await;
    let id = hooked.add(&receiver, &[]).await;
    hooked.served.run(json!({"input": "Hello"})).await;
    receiver.receives(1).await;
    hooked.stop.cancel();
    hooked.dispatching.join_next().await.unwrap().unwrap();
    let tried = hooked.deliveries(&id).await.remove(0);
    assert_eq!(tried["attempts"].as_array().unwrap().len(), 1, "{tried:#}");
}

/// `kill -9` while runs complete, before or during their announcement: the next process announces each of them.
#[test]
fn a_killed_process_loses_no_webhook() {
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        return run_until_killed(Path::new(&directory));
    }
    let directory = tempfile::TempDir::new().unwrap();
    tell_the_rest(directory.path(), &kill_in_the_middle(directory.path()));
}

fn kill_in_the_middle(directory: &Path) -> BTreeSet<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", "gateway::webhooks::process_crash::a_killed_process_loses_no_webhook"])
        .env(DIRECTORY, directory)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut completed = BTreeSet::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        let Some(run) = line.strip_prefix("ack ").and_then(|ack| ack.strip_suffix('.')) else { continue };
        completed.insert(run.to_owned());
        if completed.len() == ENOUGH {
            child.kill().unwrap();
        }
    }
    assert!(!child.wait().unwrap().success());
    assert!(completed.len() >= ENOUGH, "the child stopped by itself after {} runs", completed.len());
    completed
}

#[tokio::main]
async fn run_until_killed(directory: &Path) {
    let process = Process::on(directory).await;
    // There is no receiver: every message still waits when the next process starts.
    assert_eq!(process.store.save(&endpoint("http://127.0.0.1:9/hooks".into())).await.unwrap(), EndpointSaved::Saved);
    tokio::spawn(process.dispatcher().run(CancellationToken::new()));
    loop {
        let report = process.runner.execute(Request::new("clerk", "Hello")).await.unwrap();
        writeln!(std::io::stdout().lock(), "ack {}.", report.run_id).unwrap();
    }
}

#[tokio::main]
async fn tell_the_rest(directory: &Path, acknowledged: &BTreeSet<String>) {
    let process = Process::on(directory).await;
    let receiver = Receiver::open().await;
    receiver.learn(SECRET);
    let endpoint = process.store.endpoints(&EndpointFilter::default()).await.unwrap().remove(0);
    assert_eq!(
        process.store.save(&WebhookEndpoint { url: receiver.url(), ..endpoint }).await.unwrap(),
        EndpointSaved::Saved
    );
    let completed = RunFilter { statuses: vec![Status::Completed], limit: usize::MAX, ..RunFilter::default() };
    let completed = process.store.list(&completed).await.unwrap().into_iter().map(|row| row.id.to_string());
    let completed: BTreeSet<String> = completed.collect();
    assert!(completed.is_superset(acknowledged));

    let stop = CancellationToken::new();
    let dispatching = tokio::spawn(process.dispatcher().run(stop.clone()));
    let told = until(async || {
        let of = |received: &Received| received.body["data"]["run_id"].as_str().unwrap().to_owned();
        let told: BTreeSet<String> = receiver.received().iter().map(of).collect();
        (told.len() >= completed.len()).then_some(told)
    })
    .await;

    assert_eq!(told, completed);
    stop.cancel();
    dispatching.await.unwrap();
    let ids: BTreeSet<String> = receiver.received().iter().map(|received| received.id.clone()).collect();
    assert_eq!(ids.len(), completed.len(), "each has one id");
}
