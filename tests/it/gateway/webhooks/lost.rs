//! Processes that end between a run and its webhooks.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio_util::sync::CancellationToken;
use toolgate::gateway::{Caller, Gateway, Outbound};
use toolgate::ports::{EndpointSecrets, RunFilter, RunStore, WebhookEndpoint, WebhookEndpoints, WebhookSecret};
use toolgate::runner::{AgentRunner, Request};
use toolgate::stores::{Durability, SqliteStore};

use super::receiver::{Manner, Receiver};
use super::{HERE, Hooked, until};
use crate::runner::world::{Kept, given_an_agent, say};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const FILE: &str = "TOOLGATE_TEST_WEBHOOK_FILE";
const ENOUGH: usize = 40;

#[tokio::test]
async fn a_process_that_ends_between_taking_and_sending_loses_nothing() {
    let world = given_an_agent().whose_model_says(json!([say("Done.")])).kept(Kept::InAFile).await;
    let mut hooked = Hooked::quiet(world, HERE).await;
    let receiver = Receiver::that_answers([Manner::Never, Manner::Status(204)]).await;
    let id = hooked.add(&receiver, &[]).await;
    hooked.served.run(json!({"input": "Hello"})).await;
    hooked.dispatch();
    receiver.receives(1).await;
    // No goodbye: what it was about to write down is never written.
    hooked.dispatching.shutdown().await;
    hooked.dispatch();
    hooked.clock.by(61);
    let received = receiver.receives(2).await;
    assert_eq!(received[0].id, received[1].id, "whoever receives it twice can tell by its id");
    hooked.delivery(&id, |delivery| delivery["status"] == "delivered").await;
}

#[tokio::test]
async fn a_dispatcher_that_is_told_to_stop_finishes_what_is_on_its_way() {
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

/// `kill -9` while runs complete and nobody tells, or somebody was about to: the next process tells of each.
#[test]
fn a_killed_process_takes_no_webhook_with_it() {
    if let Some(file) = std::env::var_os(FILE) {
        return run_until_killed(Path::new(&file));
    }
    let directory = tempfile::TempDir::new().unwrap();
    let file = directory.path().join("runs.db");
    tell_the_rest(&file, &kill_in_the_middle(&file));
}

fn kill_in_the_middle(file: &Path) -> BTreeSet<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", "gateway::webhooks::lost::a_killed_process_takes_no_webhook_with_it"])
        .env(FILE, file)
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

fn gateway(store: &Arc<SqliteStore>) -> Gateway {
    let agent = given_an_agent().whose_model_says(json!([say("Done.")])).agent();
    let runner = AgentRunner::builder().store(store.clone()).agent(agent).build().unwrap();
    let outbound = Outbound::new(store.clone()).egress(HERE).look_every(Duration::from_millis(5));
    Gateway::builder(runner).anonymous(Caller::local()).webhooks(outbound).build()
}

#[tokio::main]
async fn run_until_killed(file: &Path) {
    let store = Arc::new(SqliteStore::open(file, Durability::ProcessCrash).await.unwrap());
    let endpoint = WebhookEndpoint {
        id: "we_1".into(),
        tenant: Default::default(),
        // Nobody is there: every message still waits when the next process comes.
        url: "http://127.0.0.1:9/hooks".into(),
        events: [].into(),
        description: None,
        secrets: EndpointSecrets { current: WebhookSecret::new(SECRET), previous: None },
        created_at: jiff::Timestamp::UNIX_EPOCH,
        configured: false,
        revision: 0,
        failing_since: None,
        disabled: None,
    };
    assert!(store.save(&endpoint).await.unwrap());
    let gateway = gateway(&store);
    tokio::spawn(gateway.dispatcher().unwrap().unwrap().run(CancellationToken::new()));
    let agent = given_an_agent().whose_model_says(json!([say("Done.")])).agent();
    let runner = AgentRunner::builder().store(store.clone()).agent(agent).build().unwrap();
    loop {
        let report = runner.execute(Request::new("clerk", "Hello")).await.unwrap();
        writeln!(std::io::stdout().lock(), "ack {}.", report.run_id).unwrap();
    }
}

#[tokio::main]
async fn tell_the_rest(file: &Path, acknowledged: &BTreeSet<String>) {
    let store = Arc::new(SqliteStore::open(file, Durability::ProcessCrash).await.unwrap());
    let receiver = Receiver::open().await;
    receiver.learn(SECRET);
    let endpoint = store.endpoints(&Default::default()).await.unwrap().remove(0);
    assert!(store.save(&WebhookEndpoint { url: receiver.url(), ..endpoint }).await.unwrap());
    let completed =
        RunFilter { status: Some(toolgate::core::run::Status::Completed), limit: usize::MAX, ..RunFilter::default() };
    let completed: BTreeSet<String> =
        store.list(&completed).await.unwrap().into_iter().map(|row| row.id.to_string()).collect();
    assert!(completed.is_superset(acknowledged));
    let stop = CancellationToken::new();
    let gateway = gateway(&store);
    let dispatching = tokio::spawn(gateway.dispatcher().unwrap().unwrap().run(stop.clone()));
    let told = until(async || {
        let of = |received: &super::receiver::Received| received.body["data"]["run_id"].as_str().unwrap().to_owned();
        let told: BTreeSet<String> = receiver.received().iter().map(of).collect();
        (told.len() >= completed.len()).then_some(told)
    })
    .await;
    assert_eq!(told, completed);
    stop.cancel();
    dispatching.await.unwrap();
    let ids: BTreeSet<String> = receiver.received().iter().map(|received| received.id.clone()).collect();
    assert_eq!(ids.len(), completed.len(), "each under one name");
}
