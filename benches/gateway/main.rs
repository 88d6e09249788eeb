//! What HTTP costs. Runs of five turns with two calls each are created and waited for by more and more clients, over HTTP and, in
//! one process, without it: model and tools answer at once, so that all that is left to measure is ours. Then how long
//! a resume takes to reach the model, and how long an event takes to a reader's socket.
//!
//! `cargo bench --bench gateway` prints tables and one line of JSON. What runs, or serves, so many clients is a process of its
//! own, so that its memory is its own; they share the machine's cores. docs/performance.md says what the figures mean.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::print_stdout)]
#![allow(unreachable_pub, dead_code)]

#[path = "../overhead/scenario.rs"]
mod scenario;
#[path = "../overhead/world.rs"]
mod world;

mod apart;
mod figures;
mod latency;
mod load;
mod subject;

use std::time::Duration;

use figures::{Figures, report};
use subject::{Kept, Subject};

const CLIENTS: [usize; 4] = [1, 16, 64, 256];

fn main() {
    // Without cargo's `--bench` this is `cargo test --benches`: once through is enough.
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let (clients, time): (&[usize], _) =
        if is_bench { (&CLIENTS, Duration::from_secs(5)) } else { (&[2], Duration::from_millis(200)) };
    let repetitions = if is_bench { 300 } else { 5 };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    if let Some(part) = apart::part() {
        return runtime.block_on(part.play());
    }
    let mut rows = Vec::new();
    for kept in [Kept::Memory, Kept::Sqlite] {
        for subject in [Subject::InProcess, Subject::Http] {
            for at_once in clients {
                rows.push(runtime.block_on(apart::measured(kept, subject, *at_once, time)));
            }
        }
    }
    figures::table(&rows);
    let latencies = runtime.block_on(latencies(repetitions));
    figures::latencies(&latencies);
    report(&rows, &latencies);
}

async fn latencies(repetitions: usize) -> Vec<(&'static str, Figures)> {
    vec![
        ("resume to model call, in-process", latency::resume(Subject::InProcess, repetitions).await),
        ("resume to model call, http", latency::resume(Subject::Http, repetitions).await),
        ("fact to the socket of its one reader", latency::events(1, repetitions).await),
        ("fact to the sockets of 100 readers", latency::events(100, repetitions / 10 + 1).await),
    ]
}
