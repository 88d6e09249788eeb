//! Metrics: the measurements of each fact, that each is counted once, and how readers get them.

mod counted;
mod measurements;
mod observability_files;
mod read;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use toolgate::telemetry::metrics::{Measurement, MetricSink, Shape};

use super::journals;

/// The measurements of one process.
#[derive(Clone, Default)]
struct Records(Arc<Mutex<Vec<Measurement>>>);

impl Records {
    fn sink(&self) -> Arc<MetricSink> {
        let records = self.0.clone();
        let record = move |measurement: &Measurement| records.lock().unwrap().push(measurement.clone());
        Arc::new(MetricSink::recording(Arc::new(journals::identity), record))
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().iter().map(Measurement::to_string).collect()
    }

    /// The measurements by metric and attributes: the sum of counters, the number of samples of distributions.
    fn counts(&self) -> BTreeMap<String, f64> {
        let mut counts = BTreeMap::new();
        for measurement in self.0.lock().unwrap().iter() {
            let what = Measurement { value: 0.0, ..measurement.clone() }.to_string();
            let what = what.strip_suffix(" 0").unwrap().to_owned();
            *counts.entry(what).or_default() += match measurement.metric.definition().shape {
                Shape::Count | Shape::Amount => measurement.value,
                Shape::Distribution | Shape::Sizes | Shape::ObservedCount | Shape::Level => 1.0,
            };
        }
        counts
    }

    /// The count of one metric over all attributes.
    fn count(&self, metric: &str) -> f64 {
        let of_metric = |what: &String| what.split('{').next() == Some(metric);
        self.counts().iter().filter(|(what, _)| of_metric(what)).map(|(_, count)| count).sum()
    }
}
