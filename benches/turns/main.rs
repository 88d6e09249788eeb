//! Cost of a turn as users have it: a model and an MCP server over HTTP, each in a process of its own, and toolgate as a
//! configuration file composes it. The floor is a hand-written loop of reqwest, the SDK `rmcp` and one growing request body.
//!
//! `cargo bench --bench turns` prints CPU time of this process per turn, as a ratio to the floor, and one line of JSON; words
//! after `--` select workloads by name. docs/performance.md explains the figures.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::print_stdout)]
#![allow(unreachable_pub)]

#[path = "../overhead/cpu_time.rs"]
mod cpu_time;
mod measure;
mod peers;
mod raw;
mod subject;
mod workload;

use peers::Peers;
use workload::WORKLOADS;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(role) = arguments.first().filter(|role| role.starts_with("serve-")) {
        return peers::serve(role);
    }
    // Without cargo's `--bench` this is `cargo test --benches`: one iteration is enough.
    let is_bench = arguments.iter().any(|argument| argument == "--bench");
    let samples = if is_bench { 5 } else { 1 };
    let words: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with("--")).collect();
    let chosen = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));

    let peers = Peers::start();
    let workloads = WORKLOADS.iter().take(if is_bench { WORKLOADS.len() } else { 1 });
    let workloads = workloads.filter(|workload| chosen(workload.name));
    let rows: Vec<measure::Row> = workloads.flat_map(|workload| measure::all(workload, &peers, samples)).collect();
    measure::report(&rows);
}
