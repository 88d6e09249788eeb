//! Overhead of a run over the bare model and tool calls. Model and tools answer at once and in-process, so the rest is
//! toolgate's own cost. The floor is a hand-written loop around the same model and tools.
//!
//! `cargo bench --bench overhead` prints a table per scenario and one line of JSON; words after `--` select scenarios
//! by name. docs/performance.md explains the figures.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::print_stdout)]
#![allow(unreachable_pub)]

mod cpu_time;
mod floor;
mod measure;
mod report;
mod scenario;
mod subject;
mod world;

use std::process::ExitCode;

use measure::Row;
use scenario::{MANY_TOOLS, PLAIN, SCENARIOS};

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The allowed cost ratio of a turn at the end of a run to a turn at its start, with the cheapest store.
const GROWTH_ALLOWED: f64 = 1.2;
/// The allowed cost ratio of a turn with 300 tools to one with 8, with and without a file.
const TOOLS_ALLOWED: f64 = 1.3;

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

    match regression(&rows) {
        Some(regression) if samples > 1 => {
            println!("{regression}");
            ExitCode::FAILURE
        }
        Some(_) | None => ExitCode::SUCCESS,
    }
}

/// A ratio that is too high to be noise.
fn regression(rows: &[Row]) -> Option<String> {
    let grows = |row: &&Row| row.subject == "memory" && row.growth().is_some_and(|by| by > GROWTH_ALLOWED);
    if let Some(row) = rows.iter().find(grows) {
        return Some(format!(
            "the cost of a turn grows with the run: {}, more than {GROWTH_ALLOWED} times",
            row.scenario
        ));
    }
    let fastest = |scenario: &str, subject: &str| {
        rows.iter().find(|row| (row.scenario, row.subject) == (scenario, subject)).map(|row| row.fastest)
    };
    ["memory", "sqlite, process crash"].into_iter().find_map(|subject| {
        let ratio = fastest(MANY_TOOLS, subject)? / fastest(PLAIN.name, subject)?;
        (ratio > TOOLS_ALLOWED).then(|| {
            format!("{subject}: a turn with 300 tools costs {ratio:.2} times one with 8, more than {TOOLS_ALLOWED}")
        })
    })
}
