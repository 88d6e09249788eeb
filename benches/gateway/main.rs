//! Cost of HTTP. Increasing numbers of clients create runs of five turns with two calls each and wait for them, over
//! HTTP and in-process. Model and tools answer at once, so the rest is toolgate's own cost. Two further measurements:
//! from a resume to the model call, and from an event to a reader's socket.
//!
//! `cargo bench --bench gateway` prints tables and one line of JSON. Each number of clients has its own server process,
//! so that its memory is measured alone; the processes share the machine's cores. docs/performance.md explains the
//! figures.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::print_stdout)]
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
    // Without cargo's `--bench` this is `cargo test --benches`: one iteration is enough.
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
