//! Clients that do nothing but create runs, one after the other, and wait for each.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::task::JoinSet;
use toolgate::core::run::Status;
use toolgate::runner::{AgentRunner, Request};

use crate::figures::{Figures, Row, memory_mib};
use crate::subject::{Kept, Ready, SCENARIO, Subject};
use crate::world::{Loquacious, Turns};

/// As many runs as so many clients get through in that time.
pub async fn create_and_complete(kept: Kept, subject: Subject, clients: usize, time: Duration) -> Row {
    let ready = Ready::set_up(kept, Arc::new(Loquacious::new(SCENARIO, Turns::default())), Vec::new()).await;
    let http = reqwest::Client::builder().pool_max_idle_per_host(clients).build().unwrap();
    let began = Instant::now();
    let mut working = JoinSet::new();
    for _ in 0..clients {
        let (runner, http, url) = (ready.runner.clone(), http.clone(), ready.url("/v1/runs"));
        working.spawn(async move {
            let mut times = Vec::new();
            while began.elapsed() < time {
                let asked = Instant::now();
                match subject {
                    Subject::InProcess => in_process(&runner).await,
                    Subject::Http => over_http(&http, &url).await,
                }
                times.push(asked.elapsed());
            }
            times
        });
    }
    let times: Vec<Duration> = working.join_all().await.into_iter().flatten().collect();
    let runs_a_second = times.len() as f64 / began.elapsed().as_secs_f64();
    let memory_mib = memory_mib();
    ready.tear_down().await;
    Row { kept, subject, clients, runs_a_second, took: Figures::of(times), memory_mib }
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
