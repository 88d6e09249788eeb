//! Sorted timings and their display.

use std::time::Duration;

use serde_json::json;

use crate::subject::{Kept, Subject};

/// The measurement of one number of clients.
pub struct Row {
    pub kept: Kept,
    pub subject: Subject,
    pub clients: usize,
    pub runs_a_second: f64,
    pub took: Figures,
    /// The peak memory of the process that executed or served the runs, in MiB.
    pub peak_mib: f64,
}

/// Repeated timings of one operation.
pub struct Figures {
    sorted: Vec<Duration>,
}

impl Figures {
    pub fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self { sorted: times }
    }

    pub fn count(&self) -> usize {
        self.sorted.len()
    }

    /// The percentile in milliseconds.
    pub fn percentile(&self, percent: usize) -> f64 {
        let at = (self.sorted.len() * percent / 100).min(self.sorted.len().saturating_sub(1));
        self.sorted.get(at).map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
    }
}

pub fn table(rows: &[Row]) {
    println!("create and complete a run of 5 turns with 2 calls each");
    println!(
        "{:10} {:11} {:>7} {:>8} {:>9} {:>9} {:>9} {:>11}",
        "store", "", "clients", "runs/s", "p50 ms", "p99 ms", "peak MiB", "of in-proc."
    );
    for row in rows {
        let floor = rows
            .iter()
            .find(|other| (other.kept, other.subject, other.clients) == (row.kept, Subject::InProcess, row.clients));
        let share = floor.map_or(f64::NAN, |floor| row.runs_a_second / floor.runs_a_second);
        println!(
            "{:10} {:11} {:>7} {:>8.0} {:>9.2} {:>9.2} {:>9.1} {:>10.2}x",
            row.kept.name(),
            row.subject.name(),
            row.clients,
            row.runs_a_second,
            row.took.percentile(50),
            row.took.percentile(99),
            row.peak_mib,
            share,
        );
    }
}

pub fn latencies(all: &[(&str, Figures)]) {
    println!("\n{:40} {:>8} {:>9} {:>9}", "", "times", "p50 ms", "p99 ms");
    for (name, took) in all {
        println!("{name:40} {:>8} {:>9.3} {:>9.3}", took.count(), took.percentile(50), took.percentile(99));
    }
}

pub fn report(rows: &[Row], all: &[(&str, Figures)]) {
    let rows: Vec<_> = rows
        .iter()
        .map(|row| {
            json!({
                "store": row.kept.name(), "subject": row.subject.name(), "clients": row.clients,
                "runs_per_second": row.runs_a_second, "p50_ms": row.took.percentile(50),
                "p99_ms": row.took.percentile(99), "peak_mib": row.peak_mib,
            })
        })
        .collect();
    let latencies: Vec<_> = all
        .iter()
        .map(|(name, took)| json!({"what": name, "p50_ms": took.percentile(50), "p99_ms": took.percentile(99)}))
        .collect();
    println!("\n{}", json!({"create_and_complete": rows, "latencies": latencies}));
}

/// The peak memory of this process, in MiB.
pub fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    let kib: f64 = line.trim().trim_end_matches(" kB").parse().unwrap_or(f64::NAN);
    kib / 1024.0
}
