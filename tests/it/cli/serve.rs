//! `toolgate serve` as whoever operates it meets it: a process with a port, a log, and signals.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::desk::Desk;

/// A server that runs, and everything it said on standard error.
struct Server {
    child: Child,
    said: Arc<Mutex<Vec<String>>>,
    url: String,
    client: reqwest::Client,
}

impl Server {
    async fn at(desk: &Desk) -> Self {
        let mut command = desk.command(&["serve", "--listen", "127.0.0.1:0", "--log-format", "json"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let (said, lines) = (Arc::<Mutex<Vec<String>>>::default(), BufReader::new(child.stderr.take().unwrap()));
        let heard = said.clone();
        std::thread::spawn(move || {
            lines.lines().map_while(Result::ok).for_each(|line| heard.lock().unwrap().push(line));
        });
        let mut server = Self { child, said, url: String::new(), client: reqwest::Client::new() };
        let listening = server.line("listening at ").await;
        server.url = listening.split_once("listening at ").unwrap().1.trim().to_owned();
        server
    }

    /// The first line with that in it, when it is there.
    async fn line(&mut self, with: &str) -> String {
        let began = Instant::now();
        loop {
            let found = self.said.lock().unwrap().iter().find(|line| line.contains(with)).cloned();
            if let Some(line) = found {
                return line;
            }
            let is_late = began.elapsed() > Duration::from_secs(20) || self.child.try_wait().unwrap().is_some();
            assert!(!is_late, "`{with}` is not among {:#?}", self.said.lock().unwrap());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn post(&self, path: &str, prefer: &str, body: Value) -> (u16, Value) {
        let request = self.client.post(format!("{}{path}", self.url)).header("prefer", prefer).json(&body);
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        let response = self.client.get(format!("{}{path}", self.url)).send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }

    fn send(&self, signal: Signal) {
        kill_process(Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap(), signal).unwrap();
    }

    /// The exit code, when it has ended.
    async fn ended(mut self) -> Option<i32> {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            assert!(began.elapsed() < Duration::from_secs(30), "it never ends: {:#?}", self.said.lock().unwrap());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const GATEWAY: &str = "gateway: { drain_s: 0.05 }\nlease_s: 600\n";

fn desk(config: &str, turns: &str) -> Desk {
    let desk = Desk::empty();
    desk.write("toolgate.yaml", config);
    desk.write("conversation.yaml", turns);
    desk
}

fn with_agents(agents: &str) -> String {
    format!("{GATEWAY}models: {{ played: {{ scripted: {{ file: conversation.yaml }} }} }}\nagents: {{ {agents} }}\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_is_logged_in_one_line_without_what_only_two_should_know() {
    let desk = desk(&with_agents("desk: {}"), "turns: [{ say: Hello. }]");
    let mut server = Server::at(&desk).await;

    let (status, run) = server.post("/v1/runs?token=hunter2", "wait=20", json!({"input": "my secret"})).await;

    assert_eq!((status, &run["status"]), (201, &json!("completed")), "{run}");
    let line: Value = serde_json::from_str(&server.line("\"route\":\"/v1/runs\"").await).unwrap();
    assert_eq!((&line["method"], &line["status"], &line["caller"]), (&json!("POST"), &json!(201), &json!("local")));
    assert!(line["duration_ms"].is_u64() && line["request"].as_str().unwrap().starts_with("req_"), "{line}");
    let serving: Value = serde_json::from_str(&server.line("\"serving\"").await).unwrap();
    assert_eq!(serving["pid"], server.child.id());
    assert!(serving["store"].as_str().unwrap().ends_with("toolgate.db"), "{serving}");
    let said = server.said.lock().unwrap().join("\n");
    assert!(!said.contains("hunter2") && !said.contains("my secret"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_stopped_ends_well_and_another_one_goes_on_with_its_runs_at_once() {
    let turns = "turns: [{ latency_ms: 400, calls: [{ name: nothing_of_that_name }] }, { say: Done. }]";
    let desk = desk(&with_agents("desk: {}"), turns);
    let server = Server::at(&desk).await;
    let (status, run) = server.post("/v1/runs", "respond-async", json!({"input": "Hello"})).await;
    assert_eq!(status, 202, "{run}");

    server.send(Signal::TERM);

    assert_eq!(server.ended().await, Some(0));
    let server = Server::at(&desk).await;
    let began = Instant::now();
    let path = format!("/v1/runs/{}", run["id"].as_str().unwrap());
    while server.get(&path).await.1["status"] != "completed" {
        assert!(began.elapsed() < Duration::from_secs(20), "the lease of ten minutes is not waited for");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let events = desk.command(&["runs", "export", run["id"].as_str().unwrap()]).output().unwrap();
    let exported = String::from_utf8(events.stdout).unwrap();
    assert_eq!(exported.matches("\"llm.call.completed\"").count(), 2, "nothing was asked twice: {exported}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_the_server_at_once() {
    let desk = desk(&with_agents("desk: {}").replace("drain_s: 0.05", "drain_s: 600"), "turns: [{ hang: true }]");
    let mut server = Server::at(&desk).await;
    server.post("/v1/runs", "respond-async", json!({"input": "Hello"})).await;
    server.send(Signal::TERM);
    server.line("nothing new is begun").await;
    server.send(Signal::TERM);
    assert_eq!(server.ended().await, Some(130));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_configuration_is_taken_for_what_begins_and_a_wrong_one_is_not_taken() {
    let desk = desk(&with_agents("desk: {}"), "turns: [{ latency_ms: 1500, say: Hello. }]");
    let mut server = Server::at(&desk).await;
    let (_, under_way) = server.post("/v1/runs", "respond-async", json!({"input": "Hello"})).await;
    let new_run = |agent: &str| json!({"agent": agent, "input": "Hello"});
    assert_eq!(server.post("/v1/runs", "respond-async", new_run("other")).await.0, 422);

    desk.write("toolgate.yaml", &with_agents("desk: { model: nobody }"));
    server.send(Signal::HUP);
    server.line("the old one holds").await;
    assert_eq!(server.post("/v1/runs", "respond-async", new_run("desk")).await.0, 202);

    desk.write("toolgate.yaml", &with_agents("other: {}").replace("lease_s: 600", "lease_s: 5"));
    server.send(Signal::HUP);
    let taken: Value = serde_json::from_str(&server.line("was read again").await).unwrap();
    assert_eq!(taken["not_taken"], "lease_s");
    assert_eq!(server.post("/v1/runs", "respond-async", new_run("other")).await.0, 202);
    assert_eq!(server.post("/v1/runs", "respond-async", new_run("desk")).await.0, 422);
    let path = format!("/v1/runs/{}", under_way["id"].as_str().unwrap());
    let began = Instant::now();
    while server.get(&path).await.1["status"] != "completed" {
        assert!(began.elapsed() < Duration::from_secs(20), "what is under way goes on with its agent");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
