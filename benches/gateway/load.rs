//! Load clients: each creates a run, waits for it, and repeats.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinSet;
use toolgate::core::run::Status;
use toolgate::runner::{AgentRunner, Request};

/// The target of the clients.
#[derive(Clone)]
pub enum Asked {
    InProcess(AgentRunner),
    Http(reqwest::Client, Arc<str>),
}

/// The duration of each run that this many clients complete in that time, and the runs per second.
pub async fn create_and_complete(asked: Asked, clients: usize, time: Duration) -> (Vec<Duration>, f64) {
    let began = Instant::now();
    let mut working = JoinSet::new();
    for _ in 0..clients {
        let asked = asked.clone();
        working.spawn(async move {
            let mut times = Vec::new();
            while began.elapsed() < time {
                let created = Instant::now();
                match &asked {
                    Asked::InProcess(runner) => in_process(runner).await,
                    Asked::Http(http, url) => over_http(http, url).await,
                }
                times.push(created.elapsed());
            }
            times
        });
    }
    let times: Vec<Duration> = working.join_all().await.into_iter().flatten().collect();
    let runs_a_second = times.len() as f64 / began.elapsed().as_secs_f64();
    (times, runs_a_second)
}

async fn in_process(runner: &AgentRunner) {
    let report = runner.execute(Request::new("bench", "read everything")).await.unwrap();
    assert_eq!(report.status, Status::Completed);
}

async fn over_http(http: &reqwest::Client, url: &str) {
    let answer = http.post(url).json(&json!({"input": "read everything"})).send().await.unwrap();
    let run: Value = answer.json().await.unwrap();
    assert_eq!(run["status"], "completed", "{run}");
}
