//! Access log: one line per request, with details that the client does not receive.

use std::io::Write;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use toolgate::runner::AgentRunner;
use tracing::Dispatch;
use tracing::subscriber::DefaultGuard;

use super::connections::Panicking;
use super::queueing::agent;
use super::served::Served;
use super::test_site::{Site, until};
use crate::fakes::Fault;
use crate::runner::world::{Kept, given_an_agent, say};

/// With only one subscriber, a thread without any could decide for all threads that a line is disabled, if it reaches
/// the line first.
static ANOTHER: LazyLock<Dispatch> =
    LazyLock::new(|| Dispatch::new(tracing_subscriber::fmt().with_writer(std::io::sink).finish()));

/// The log of a test.
#[derive(Clone, Default)]
pub(super) struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    /// The log of this thread, while the guard lives.
    pub(super) fn begun() -> (Self, DefaultGuard) {
        LazyLock::force(&ANOTHER);
        let log = Self::default();
        let writer = log.clone();
        let lines = tracing_subscriber::fmt().json().flatten_event(true).with_writer(move || writer.clone());
        (log, tracing::subscriber::set_default(lines.finish()))
    }

    /// All lines.
    pub(super) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }

    /// The lines about requests.
    fn requests(&self) -> Vec<Value> {
        let text = self.text();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|line| line["target"] == "toolgate::http").collect()
    }
}

#[tokio::test]
async fn a_request_is_logged_in_one_line_with_its_refusal() {
    let (log, _logging) = Log::begun();
    let served =
        Served::to_all(given_an_agent().whose_model_says(json!([say("Hi.")])).kept(Kept::InMemory).await).await;
    served.get("/v1/runs").await;
    let refused = served.get("/v1/runs/run_unknown").await;
    let lines = log.requests();
    let told: Vec<Value> = lines.iter().map(|line| json!([line["level"], line["status"], line["code"]])).collect();
    assert_eq!(told, [json!(["INFO", 200, null]), json!(["INFO", 404, "not_found"])]);
    assert_eq!(lines[1]["request"], refused.header("x-request-id"));
    assert_eq!(lines[1]["detail"], refused.text("detail"));
}

#[tokio::test]
async fn a_panic_is_logged_under_the_id_of_its_request() {
    let (log, _logging) = Log::begun();
    let runner = AgentRunner::builder().store(Arc::new(Panicking)).agent(agent(&json!([]))).build().unwrap();
    let mut site = Site::over(runner).await;
    // It reads the same store.
    site.rest = None;
    let refused = site.get("/v1/runs").await;
    let [line] = &log.requests()[..] else { panic!("one line") };
    assert_eq!((&line["level"], &line["code"]), (&json!("ERROR"), &json!("internal")));
    assert_eq!(line["request"], refused.header("x-request-id"));
    assert_eq!(line["cause"], "a panic: the disk said hunter2");
}

#[tokio::test]
async fn store_errors_are_logged_and_not_returned() {
    let (log, _logging) = Log::begun();
    let served =
        Served::to_all(given_an_agent().whose_model_says(json!([say("Hi.")])).kept(Kept::InMemory).await).await;
    served.world.store.fail_next(Fault::Refused);
    let refused = served.post("/v1/runs", json!({"input": "Hello"})).await;
    let [line] = &log.requests()[..] else { panic!("one line") };
    let cause = line["cause"].as_str().unwrap();
    let said = cause.strip_prefix("the store cannot be used: ").unwrap_or_else(|| panic!("{cause}"));
    assert_eq!((refused.problem(), &line["level"]), ("store_unavailable", &json!("ERROR")));
    assert!(!refused.body.to_string().contains(said), "{refused:?}");
}

#[tokio::test]
async fn a_request_whose_client_disconnects_is_logged_too() {
    let (log, _logging) = Log::begun();
    let given = given_an_agent()
        .with_tools("files", &["read"])
        .where_servers(|servers| servers.hang_in("read"))
        .whose_model_says(json!([{"calls": [{"name": "mcp_files_read"}]}]));
    let served = Served::to_all(given.kept(Kept::InMemory).await).await;
    let request = served.request(Method::POST, "/v1/runs").json(&json!({"input": "Read"}));
    assert!(request.timeout(Duration::from_millis(100)).send().await.is_err(), "the client has disconnected");
    until(async || !log.requests().is_empty()).await;
    let [line] = &log.requests()[..] else { panic!("one line") };
    assert_eq!((&line["status"], &line["route"]), (&json!(499), &json!("/v1/runs")));
}
