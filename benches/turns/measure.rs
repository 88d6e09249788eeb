//! CPU time per turn: medians over samples. The subjects alternate, so that other load on the machine affects all alike.

use std::time::{Duration, Instant};

use futures::future::join_all;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::cpu_time::cpu_time;
use crate::peers::Peers;
use crate::subject::{Ready, Subject};
use crate::workload::Workload;

/// The minimum duration of a sample.
const SAMPLE: Duration = Duration::from_millis(200);

/// The cost of a subject in a workload.
pub struct Row {
    workload: &'static str,
    subject: Subject,
    /// Microseconds of CPU per turn, over all threads of this process.
    cpu: f64,
    /// Microseconds from the start of a run to its end, divided by its turns.
    wall: f64,
    runs_per_second: f64,
}

pub fn all(workload: &Workload, peers: &Peers, samples: usize) -> Vec<Row> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut taken = Subject::ALL.map(|subject| (subject, Vec::new()));
    for _ in 0..samples {
        for (subject, taken) in &mut taken {
            taken.push(sample(&runtime, *subject, workload, peers));
        }
    }
    let rows = taken.map(|(subject, samples)| {
        let [cpu, wall, runs_per_second] = [0, 1, 2].map(|part| median(samples.iter().map(|sample| sample[part])));
        Row { workload: workload.name, subject, cpu, wall, runs_per_second }
    });
    table(&rows);
    rows.into()
}

fn sample(runtime: &Runtime, subject: Subject, workload: &Workload, peers: &Peers) -> [f64; 3] {
    let ready = runtime.block_on(Ready::set_up(subject, workload, peers));
    // The first run connects and assembles the toolset.
    runtime.block_on(ready.run());
    let (begun, cpu_before) = (Instant::now(), cpu_time().expect("Linux"));
    let mut runs = 0;
    while begun.elapsed() < SAMPLE {
        runtime.block_on(join_all((0..workload.at_once).map(|_| ready.run())));
        runs += workload.at_once;
    }
    let (elapsed, cpu_after) = (begun.elapsed(), cpu_time().expect("Linux"));
    for complaint in runtime.block_on(ready.tear_down()) {
        println!("{}: {complaint}", subject.name());
    }
    let turns = (runs * workload.turns) as f64;
    let micros = |duration: Duration| duration.as_secs_f64() * 1e6;
    [micros(cpu_after - cpu_before) / turns, micros(elapsed) / turns, runs as f64 / elapsed.as_secs_f64()]
}

fn table(rows: &[Row]) {
    let raw = &rows[0];
    println!("\n{:<32} {:>10} {:>8} {:>10} {:>8}", raw.workload, "cpu us", "x raw", "wall us", "runs/s");
    for row in rows {
        let name = row.subject.name();
        println!(
            "{name:<32} {:>10.0} {:>8.2} {:>10.0} {:>8.0}",
            row.cpu,
            row.cpu / raw.cpu,
            row.wall,
            row.runs_per_second
        );
    }
}

/// All results in one line.
pub fn report(rows: &[Row]) {
    let row = |row: &Row| {
        json!({
            "workload": row.workload,
            "subject": row.subject.name(),
            "cpu_us": row.cpu.round(),
            "wall_us": row.wall.round(),
            "runs_per_second": row.runs_per_second.round(),
        })
    };
    let rows: Vec<Value> = rows.iter().map(row).collect();
    println!("\n{}", json!({ "bench": "turns", "unit": "us a turn", "rows": rows }));
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
