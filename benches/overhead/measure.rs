//! Timing: medians over samples. The subjects alternate, so that other load on the machine affects all of them alike.

use std::time::{Duration, Instant};

use futures::future::join_all;
use tokio::runtime::Runtime;

use crate::cpu_time::cpu_time;
use crate::scenario::Scenario;
use crate::subject::{Ready, Subject};
use crate::world::Turns;

/// The minimum duration of a sample.
const SAMPLE: Duration = Duration::from_millis(60);

/// The number of turns compared at each end of a long run.
const END: usize = 50;

/// The cost of a subject in a scenario. Times are microseconds per turn.
#[derive(Clone, Debug)]
pub struct Row {
    pub scenario: &'static str,
    pub subject: &'static str,
    /// The duration of a run divided by its turns.
    pub wall: f64,
    /// The same for the fastest sample, which other load on the machine disturbed least.
    pub fastest: f64,
    /// CPU time of all threads of the process; `None` if the system does not report it.
    pub cpu: Option<f64>,
    /// The median time between two model calls, without the fixed cost of a run.
    pub turn: f64,
    /// A turn at the start and a turn at the end, for runs that are long enough.
    pub ends: Option<(f64, f64)>,
    pub runs_per_second: f64,
    /// Facts and spans that were not exported.
    pub dropped: u64,
}

impl Row {
    /// The cost ratio of a turn at the end.
    pub fn growth(&self) -> Option<f64> {
        self.ends.map(|(first, last)| last / first)
    }
}

struct Sample {
    wall: f64,
    cpu: Option<f64>,
    turn: f64,
    ends: Option<(f64, f64)>,
    runs_per_second: f64,
    dropped: u64,
}

/// Measures every subject in this scenario.
pub fn all(scenario: &Scenario, samples: usize) -> Vec<Row> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for subject in Subject::ALL {
        sample(&runtime, subject, scenario); // warms up
    }
    let mut taken: Vec<(Subject, Vec<Sample>)> = Subject::ALL.map(|subject| (subject, Vec::new())).into();
    for _ in 0..samples {
        for (subject, taken) in &mut taken {
            taken.push(sample(&runtime, *subject, scenario));
        }
    }
    taken.into_iter().map(|(subject, samples)| row(subject, scenario, &samples)).collect()
}

fn row(subject: Subject, scenario: &Scenario, samples: &[Sample]) -> Row {
    let over = |part: fn(&Sample) -> f64| median(samples.iter().map(part).collect());
    let cpu: Option<Vec<f64>> = samples.iter().map(|sample| sample.cpu).collect();
    let ends: Option<Vec<(f64, f64)>> = samples.iter().map(|sample| sample.ends).collect();
    let ends = ends.map(|ends| {
        let (first, last) = ends.into_iter().unzip();
        (median(first), median(last))
    });
    Row {
        scenario: scenario.name,
        subject: subject.name(),
        wall: over(|sample| sample.wall),
        fastest: samples.iter().map(|sample| sample.wall).fold(f64::INFINITY, f64::min),
        cpu: cpu.map(median),
        turn: over(|sample| sample.turn),
        ends,
        runs_per_second: over(|sample| sample.runs_per_second),
        dropped: samples.iter().map(|sample| sample.dropped).sum(),
    }
}

fn sample(runtime: &Runtime, subject: Subject, scenario: &Scenario) -> Sample {
    let turns = Turns::default();
    let ready = runtime.block_on(Ready::set_up(subject, scenario, turns.clone()));
    // The first run assembles the toolset, once for all runs.
    runtime.block_on(ready.run());
    turns.lock().unwrap().clear();
    let (begun, cpu_before) = (Instant::now(), cpu_time());
    let mut runs = 0;
    while begun.elapsed() < SAMPLE {
        runtime.block_on(join_all((0..scenario.at_once).map(|_| ready.run())));
        runs += scenario.at_once;
    }
    let (elapsed, cpu_after) = (begun.elapsed(), cpu_time());
    let dropped = runtime.block_on(ready.tear_down());

    let count = (runs * scenario.turns) as f64;
    let lengths = std::mem::take(&mut *turns.lock().unwrap());
    let cpu = cpu_before.zip(cpu_after).map(|(before, after)| micros(after.saturating_sub(before)) / count);
    Sample {
        wall: micros(elapsed) / count,
        cpu,
        turn: middle(lengths.iter().flatten()),
        ends: (scenario.turns > 2 * END).then(|| {
            let first = middle(lengths.iter().flat_map(|run| &run[..END]));
            let last = middle(lengths.iter().flat_map(|run| &run[run.len() - END..]));
            (first, last)
        }),
        runs_per_second: runs as f64 / elapsed.as_secs_f64(),
        dropped,
    }
}

fn middle<'a>(lengths: impl Iterator<Item = &'a Duration>) -> f64 {
    median(lengths.copied().map(micros).collect())
}

fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
