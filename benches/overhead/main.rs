//! Overhead of a run over the bare model and tool calls. Model and tools answer at once and in-process, so the rest is
//! toolgate's own cost. The floor is a hand-written loop around the same model and tools.
//!
//! `cargo bench --bench overhead` prints a table per scenario and one line of JSON; words after `--` select scenarios
//! by name. docs/performance.md explains the figures.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::print_stdout)]
#![allow(unreachable_pub)]

mod floor;
mod measure;
mod report;
mod scenario;
mod subject;
mod world;

use std::process::ExitCode;

use scenario::SCENARIOS;

/// The allowed cost ratio of a turn at the end of a run to a turn at its start, with the cheapest store.
const GROWTH_ALLOWED: f64 = 1.2;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with("--")).collect();
    // Without cargo's `--bench` this is `cargo test --benches`: one iteration is enough.
    let samples = if arguments.iter().any(|argument| argument == "--bench") { 7 } else { 1 };
    let chosen = SCENARIOS.iter().filter(|scenario| {
        let name = scenario.name;
        words.is_empty() || words.iter().any(|word| name.contains(word.as_str()))
    });

    let mut rows = Vec::new();
    for scenario in chosen {
        let measured = measure::all(scenario, samples);
        report::table(scenario, &measured);
        rows.extend(measured);
    }
    report::json(&rows);

    let grows = |row: &&measure::Row| row.subject == "memory" && row.growth().is_some_and(|by| by > GROWTH_ALLOWED);
    match rows.iter().find(grows) {
        Some(row) if samples > 1 => {
            println!("the cost of a turn grows with the run: {}, more than {GROWTH_ALLOWED} times", row.scenario);
            ExitCode::FAILURE
        }
        Some(_) | None => ExitCode::SUCCESS,
    }
}
