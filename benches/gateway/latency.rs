//! Latencies: from a resume to the model call, and from an event to a reader's socket.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::StreamExt;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use toolgate::core::chat::{Reply, Stop};
use toolgate::core::id::RunId;
use toolgate::core::tool::{ExternalTool, ToolCall};
use toolgate::ports::{Conversation, DeltaSink, EventSink, Model, ModelFailure, ModelIdentity, ModelRequest, Update};
use toolgate::runner::{Answer, Request, Resume};

use crate::figures::Figures;
use crate::subject::{Kept, Ready, Subject};

/// Requests an external tool, and answers when its result arrives. Reports the time of each request.
struct Patient {
    identity: ModelIdentity,
    asked: mpsc::UnboundedSender<Instant>,
}

struct Talk {
    asked: mpsc::UnboundedSender<Instant>,
}

impl Model for Patient {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    fn converse(&self) -> Box<dyn Conversation> {
        Box::new(Talk { asked: self.asked.clone() })
    }
}

#[async_trait]
impl Conversation for Talk {
    async fn reply(&mut self, request: &ModelRequest<'_>, _deltas: DeltaSink<'_>) -> Result<Reply, ModelFailure> {
        let _ = self.asked.send(Instant::now());
        if request.messages.len() > 1 {
            return Ok(Reply::text("Thank you."));
        }
        let call = ToolCall::new("call_1", "ext_look", json!({})).into_part();
        Ok(Reply { content: vec![call], stop: Stop::ToolCalls, ..Reply::empty() })
    }
}

fn patient() -> (Arc<dyn Model>, mpsc::UnboundedReceiver<Instant>) {
    let [system, provider, model] = ["bench"; 3].map(str::to_owned);
    let (asked, told) = mpsc::unbounded_channel();
    (Arc::new(Patient { identity: ModelIdentity { system, provider, model, settings: Value::Null }, asked }), told)
}

fn look() -> ExternalTool {
    serde_json::from_value(json!({"name": "look"})).unwrap()
}

/// The time from the resume request to the model call.
pub async fn resume(subject: Subject, repetitions: usize) -> Figures {
    let (model, mut told) = patient();
    let ready = Ready::set_up(Kept::Sqlite, model, Vec::new()).await;
    let http = reqwest::Client::new();
    let mut times = Vec::new();
    for _ in 0..repetitions {
        let report = ready.runner.execute(Request::new("bench", "look").external_tool(look())).await.unwrap();
        let call = report.pending[0].call_id().unwrap().clone();
        told.recv().await.unwrap();
        let sent = Instant::now();
        match subject {
            Subject::InProcess => {
                let resume = Resume::default().with(call, Answer::output(json!("seen")));
                ready.runner.resume(&report.run_id, resume).await.unwrap();
            }
            Subject::Http => {
                let body = json!({"results": [{"call_id": call, "output": "seen"}]});
                let url = ready.url(&format!("/v1/runs/{}/resume", report.run_id));
                assert!(http.post(url).json(&body).send().await.unwrap().status().is_success());
            }
        }
        times.push(told.recv().await.unwrap() - sent);
    }
    ready.tear_down().await;
    Figures::of(times)
}

/// The time when watchers received each event.
#[derive(Default)]
struct Noted(Mutex<BTreeMap<(RunId, u64), Instant>>);

impl EventSink for Noted {
    fn observe(&self, run: &RunId, update: &Update) {
        if let Update::JournalEntry(recorded) = update {
            self.0.lock().unwrap().insert((run.clone(), recorded.seq), Instant::now());
        }
    }
}

/// The time from a durable event to its arrival at the socket, for this many readers of one run.
pub async fn events(readers: usize, repetitions: usize) -> Figures {
    let (model, _told) = patient();
    let noted = Arc::new(Noted::default());
    let ready = Ready::set_up(Kept::Sqlite, model, vec![noted.clone()]).await;
    let http = reqwest::Client::new();
    let mut times = Vec::new();
    for _ in 0..repetitions {
        let report = ready.runner.execute(Request::new("bench", "look").external_tool(look())).await.unwrap();
        let (run, seen) = (report.run_id, report.version);
        let mut reading = tokio::task::JoinSet::new();
        for _ in 0..readers {
            let url = ready.url(&format!("/v1/runs/{run}/events"));
            let asked = http.get(url).header("accept", "text/event-stream").header("last-event-id", seen - 1);
            let answer = asked.send().await.unwrap();
            assert_eq!(answer.status(), 200);
            reading.spawn(read(answer));
        }
        // Every reader has caught up when it receives the pending event.
        tokio::time::sleep(Duration::from_millis(20)).await;
        let resume = Resume::default().with(report.pending[0].call_id().unwrap().clone(), Answer::output("seen"));
        ready.runner.resume(&run, resume).await.unwrap();
        let read: Vec<(u64, Instant)> = reading.join_all().await.into_iter().flatten().collect();
        let noted = noted.0.lock().unwrap();
        times.extend(read.into_iter().filter_map(|(seq, at)| Some(at - *noted.get(&(run.clone(), seq))?)));
    }
    ready.tear_down().await;
    Figures::of(times)
}

/// The position of each event, and the time when the reader received its id.
async fn read(answer: reqwest::Response) -> Vec<(u64, Instant)> {
    let mut stream = answer.bytes_stream();
    let (mut rest, mut read) = (String::new(), Vec::new());
    while let Some(Ok(bytes)) = stream.next().await {
        let now = Instant::now();
        rest.push_str(&String::from_utf8_lossy(&bytes));
        while let Some((line, more)) = rest.split_once('\n') {
            if let Some(id) = line.strip_prefix("id:") {
                let position = id.trim().split('.').next().unwrap().parse().unwrap();
                read.push((position, now));
            }
            rest = more.to_owned();
        }
    }
    read
}
