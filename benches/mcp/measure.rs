//! Timing: medians over samples. The subjects alternate, so that other load on the machine affects all of them alike.

use std::time::{Duration, Instant};

use futures::future::join_all;
use tokio::runtime::Runtime;

use crate::cpu_time::cpu_time;
use crate::path::{Path, Wire};
use crate::subject::{HttpServer, Subject};

/// The duration of a sample.
const SAMPLE: Duration = Duration::from_millis(250);

/// The cost of a call. Times are microseconds.
#[derive(Clone, Debug)]
pub struct Row {
    pub path: &'static str,
    pub subject: String,
    pub at_once: usize,
    /// The median.
    pub p50: f64,
    pub p99: f64,
    pub calls_per_second: f64,
    /// CPU time of this process per call; `None` if the system does not report it.
    pub cpu: Option<f64>,
}

struct Sample {
    p50: f64,
    p99: f64,
    rate: f64,
    cpu: Option<f64>,
}

/// The bare client and toolgate, with one server and with many.
pub fn all(path: &Path, samples: usize, crowd: usize) -> Vec<Row> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let http = (path.wire == Wire::Http).then(HttpServer::start);
    let url = http.as_ref().map_or("", |http| http.url.as_str());
    let subjects = runtime.block_on(async {
        [
            ("bare rmcp".to_owned(), Subject::bare(path, url, 1).await),
            ("toolgate".to_owned(), Subject::ours(path, url, 1).await),
            (format!("toolgate, {crowd} servers"), Subject::ours(path, url, crowd).await),
        ]
    });
    let mut rows = Vec::new();
    for at_once in [1, 8] {
        let mut taken: Vec<Vec<Sample>> = subjects.iter().map(|_| Vec::new()).collect();
        for (_, subject) in &subjects {
            sample(&runtime, subject, at_once); // warms up
        }
        for _ in 0..samples {
            for ((_, subject), taken) in subjects.iter().zip(&mut taken) {
                taken.push(sample(&runtime, subject, at_once));
            }
        }
        rows.extend(subjects.iter().zip(&taken).map(|((name, _), taken)| row(path, name, at_once, taken)));
    }
    runtime.block_on(join_all(subjects.into_iter().map(|(_, subject)| subject.close())));
    rows
}

fn row(path: &Path, subject: &str, at_once: usize, samples: &[Sample]) -> Row {
    let over = |part: fn(&Sample) -> f64| median(samples.iter().map(part).collect());
    let cpu: Option<Vec<f64>> = samples.iter().map(|sample| sample.cpu).collect();
    Row {
        path: path.name,
        subject: subject.to_owned(),
        at_once,
        p50: over(|sample| sample.p50),
        p99: over(|sample| sample.p99),
        calls_per_second: over(|sample| sample.rate),
        cpu: cpu.map(median),
    }
}

fn sample(runtime: &Runtime, subject: &Subject, at_once: usize) -> Sample {
    let (begun, cpu_before) = (Instant::now(), cpu_time());
    let callers = (0..at_once).map(|_| async {
        let mut took = Vec::new();
        while begun.elapsed() < SAMPLE {
            let called = Instant::now();
            subject.call().await;
            took.push(micros(called.elapsed()));
        }
        took
    });
    let mut took: Vec<f64> = runtime.block_on(join_all(callers)).into_iter().flatten().collect();
    let (elapsed, cpu_after) = (begun.elapsed(), cpu_time());
    took.sort_by(f64::total_cmp);
    let count = took.len();
    let cpu = cpu_before.zip(cpu_after).map(|(before, after)| micros(after.saturating_sub(before)) / count as f64);
    Sample { p50: took[count / 2], p99: took[count * 99 / 100], rate: count as f64 / elapsed.as_secs_f64(), cpu }
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
