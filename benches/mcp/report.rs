//! Reports for people and programs.

use serde_json::{Value, json};

use crate::idle::Idle;
use crate::measure::Row;

/// A table of one path: microseconds per call, and the ratio to the bare client.
pub fn table(rows: &[Row]) {
    let path = rows.first().map_or("", |row| row.path);
    println!(
        "\n{path:<16} {:<24} {:>7} {:>9} {:>9} {:>9} {:>9} {:>8} {:>9}",
        "", "at once", "p50 us", "p99 us", "cpu us", "calls/s", "x bare", "cpu x"
    );
    for row in rows {
        let bare = bare(rows, row);
        println!(
            "{:<16} {:<24} {:>7} {:>9.1} {:>9.1} {:>9.1} {:>9.0} {:>8.2} {:>9.2}",
            "",
            row.subject,
            row.at_once,
            row.p50,
            row.p99,
            row.cpu.unwrap_or(f64::NAN),
            row.calls_per_second,
            bare.calls_per_second / row.calls_per_second,
            row.cpu.unwrap_or(f64::NAN) / bare.cpu.unwrap_or(f64::NAN),
        );
    }
}

pub fn memory(idle: &[Idle], servers: usize) {
    println!("\nmemory of an idle server in this process (of {servers})");
    for row in idle {
        let kib = row.bytes.map_or("unknown".to_owned(), |bytes| format!("{:.1} KiB", bytes as f64 / 1024.0));
        println!("{:<16} {:<24} {kib:>12}", row.path, row.subject);
    }
}

/// All results in one line.
pub fn json(rows: &[Row], idle: &[Idle], servers: usize) {
    let calls: Vec<Value> = rows
        .iter()
        .map(|row| {
            json!({
                "path": row.path, "subject": row.subject, "at_once": row.at_once, "p50_us": rounded(row.p50),
                "p99_us": rounded(row.p99), "cpu_us": row.cpu.map(rounded), "calls_per_second": row.calls_per_second.round(),
                "times_bare": rounded(bare(rows, row).calls_per_second / row.calls_per_second * 10.0) / 10.0,
            })
        })
        .collect();
    let idle: Vec<Value> =
        idle.iter().map(|row| json!({"path": row.path, "subject": row.subject, "bytes": row.bytes})).collect();
    println!(
        "\n{}",
        json!({"bench": "mcp", "unit": "us a call", "crowd": servers, "calls": calls, "idle_server": idle})
    );
}

fn bare<'a>(rows: &'a [Row], row: &'a Row) -> &'a Row {
    let same = |other: &&Row| other.path == row.path && other.at_once == row.at_once && other.subject == "bare rmcp";
    rows.iter().find(same).unwrap_or(row)
}

fn rounded(micros: f64) -> f64 {
    (micros * 10.0).round() / 10.0
}
