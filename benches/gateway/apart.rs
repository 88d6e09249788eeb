//! Process isolation: each measurement runs in its own process, which is this program with another role.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::figures::{Figures, Row, peak_mib};
use crate::load::{Asked, create_and_complete};
use crate::subject::{Kept, Ready, SCENARIO, Subject};
use crate::world::{Loquacious, Turns};

const CALLED: &str = "TOOLGATE_BENCH_PART";

/// The role of the other process.
#[derive(Serialize, Deserialize)]
pub struct Part {
    kept: Kept,
    subject: Subject,
    clients: usize,
    time: Duration,
}

/// The result that the process reports when it ends.
#[derive(Default, Serialize, Deserialize)]
struct Outcome {
    times: Vec<Duration>,
    runs_a_second: f64,
    peak_mib: f64,
}

/// The role of this process; `None` for the process that measures.
pub fn part() -> Option<Part> {
    Some(serde_json::from_str(&std::env::var(CALLED).ok()?).unwrap())
}

/// Measures the throughput of this many clients in that time.
pub async fn measured(kept: Kept, subject: Subject, clients: usize, time: Duration) -> Row {
    let part = Part { kept, subject, clients, time };
    let mut child = Command::new(std::env::current_exe().unwrap())
        .env(CALLED, serde_json::to_string(&part).unwrap())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut says = BufReader::new(child.stdout.take().unwrap());
    let loaded = match subject {
        Subject::InProcess => None,
        Subject::Http => {
            let mut url = String::new();
            says.read_line(&mut url).unwrap();
            let http = reqwest::Client::builder().pool_max_idle_per_host(clients).build().unwrap();
            Some(create_and_complete(Asked::Http(http, url.trim().into()), clients, time).await)
        }
    };
    drop(child.stdin.take());
    let mut told = String::new();
    says.read_to_string(&mut told).unwrap();
    assert!(child.wait().unwrap().success());
    let outcome: Outcome = serde_json::from_str(&told).unwrap();
    let (times, runs_a_second) = loaded.unwrap_or((outcome.times, outcome.runs_a_second));
    Row { kept, subject, clients, runs_a_second, took: Figures::of(times), peak_mib: outcome.peak_mib }
}

impl Part {
    /// Runs the measurement, or serves until the parent process stops it.
    pub async fn play(self) {
        let ready = Ready::set_up(self.kept, Arc::new(Loquacious::new(SCENARIO, Turns::default())), Vec::new()).await;
        let mut outcome = Outcome::default();
        match self.subject {
            Subject::InProcess => {
                let asked = Asked::InProcess(ready.runner.clone());
                (outcome.times, outcome.runs_a_second) = create_and_complete(asked, self.clients, self.time).await;
            }
            Subject::Http => {
                println!("{}", ready.url("/v1/runs"));
                std::io::stdout().flush().unwrap();
                let mut rest = Vec::new();
                tokio::io::AsyncReadExt::read_to_end(&mut tokio::io::stdin(), &mut rest).await.unwrap();
            }
        }
        outcome.peak_mib = peak_mib();
        ready.tear_down().await;
        println!("{}", serde_json::to_string(&outcome).unwrap());
        // A detached thread still blocks on standard input.
        std::process::exit(0);
    }
}
