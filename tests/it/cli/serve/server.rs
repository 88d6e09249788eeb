//! Test driver for a server process: starts it in a folder, sends requests, and sends signals.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::cli::desk::Desk;
use crate::gateway::streamed::Stream;

/// The time limit of a wait.
const PATIENCE: Duration = Duration::from_secs(40);

/// A running server, with everything that it wrote to standard error.
pub(super) struct Server {
    pub(super) child: Child,
    pub(super) said: Arc<Mutex<Vec<String>>>,
    pub(super) url: String,
    pub(super) client: reqwest::Client,
}

impl Server {
    pub(super) async fn at(desk: &Desk) -> Self {
        Self::with(desk, &[]).await
    }

    /// A server with these variables in its environment.
    pub(super) async fn with(desk: &Desk, environment: &[(&str, String)]) -> Self {
        let mut command = desk.command(&["serve", "--listen", "127.0.0.1:0", "--log-format", "json"]);
        command.envs(environment.iter().map(|(name, value)| (name, value)));
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

    /// Waits for the first line that contains the text.
    pub(super) async fn line(&mut self, with: &str) -> String {
        self.lines(with, 1).await.swap_remove(0)
    }

    /// Waits for this number of lines that contain the text.
    pub(super) async fn lines(&mut self, with: &str, count: usize) -> Vec<String> {
        let began = Instant::now();
        loop {
            let said = self.said.lock().unwrap().clone();
            let found: Vec<String> = said.iter().filter(|line| line.contains(with)).take(count).cloned().collect();
            if found.len() == count {
                return found;
            }
            let is_late = began.elapsed() > PATIENCE || self.child.try_wait().unwrap().is_some();
            assert!(!is_late, "`{with}` is not there {count} times: {said:#?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub(super) async fn post(&self, path: &str, prefer: &str, body: Value) -> (u16, Value) {
        let request = self.client.post(format!("{}{path}", self.url)).header("prefer", prefer).json(&body);
        let response = request.send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }

    pub(super) async fn get(&self, path: &str) -> (u16, Value) {
        let response = self.client.get(format!("{}{path}", self.url)).send().await.unwrap();
        (response.status().as_u16(), response.json().await.unwrap())
    }

    pub(super) fn send(&self, signal: Signal) {
        kill_process(Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap(), signal).unwrap();
    }

    /// Starts a run in the background.
    pub(super) async fn start(&self, body: Value) -> String {
        let (status, run) = self.post("/v1/runs", "respond-async", body).await;
        assert_eq!(status, 202, "{run}");
        run["id"].as_str().unwrap().to_owned()
    }

    /// Waits until the run matches.
    pub(super) async fn sees(&self, run: &str, status: &str) -> Value {
        let path = format!("/v1/runs/{run}");
        until(async || Some(self.get(&path).await.1).filter(|run| run["status"] == status)).await
    }

    /// The event stream of a run after an event.
    pub(super) async fn watch(&self, run: &str, after: Option<&str>) -> Stream {
        let request = self.client.get(format!("{}/v1/runs/{run}/events", self.url));
        Stream::of(after.into_iter().fold(request, |request, id| request.header("last-event-id", id))).await
    }

    /// The exit code, once the server has ended.
    pub(super) async fn ended(mut self) -> Option<i32> {
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

/// A folder with that configuration and a scripted model.
pub(super) fn desk(config: &str, turns: &str) -> Desk {
    let desk = Desk::empty();
    desk.write("toolgate.yaml", config);
    desk.write("conversation.yaml", turns);
    desk
}

/// Waits for a value. Fails after the time limit.
pub(super) async fn until<T>(found: impl AsyncFnMut() -> Option<T>) -> T {
    until_within(PATIENCE, found).await
}

/// The same with another time limit.
pub(super) async fn until_within<T>(patience: Duration, mut found: impl AsyncFnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = found().await {
            return found;
        }
        assert!(began.elapsed() < patience, "timed out");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
