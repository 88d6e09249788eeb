//! Overhead per MCP call: toolgate's `Servers` next to a bare rmcp client of the same server, in the same run, over
//! stdio and HTTP, with both protocol versions, sequentially and eight at once, with one connected server and with
//! fifty. Also the memory of an idle server.
//!
//! `cargo bench --bench mcp` prints a table and one line of JSON; words after `--` select paths by name.
//! docs/performance.md explains the figures.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::print_stdout)]
#![allow(unreachable_pub)]

#[path = "../overhead/cpu_time.rs"]
mod cpu_time;
mod idle;
mod measure;
mod path;
mod report;
mod server;
mod subject;

use path::PATHS;

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("serve-stdio") => return server::stdio(),
        Some("serve-http") => return server::http(),
        Some("idle") => return idle::child(&arguments[1], arguments[2].parse().unwrap()),
        Some(_) | None => {}
    }
    let words: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with("--")).collect();
    // Without cargo's `--bench` this is `cargo test --benches`: one iteration is enough.
    let is_bench = arguments.iter().any(|argument| argument == "--bench");
    let (samples, crowd) = if is_bench { (7, 50) } else { (1, 3) };

    let mut rows = Vec::new();
    for path in
        PATHS.iter().filter(|path| words.is_empty() || words.iter().any(|word| path.name.contains(word.as_str())))
    {
        let measured = measure::all(path, samples, crowd);
        report::table(&measured);
        rows.extend(measured);
    }
    let idle = idle::measure(crowd);
    report::memory(&idle, crowd);
    report::json(&rows, &idle, crowd);
}
