//! Metrics: what each fact is worth, that none is counted twice, and how others read what was counted.

mod counted;
mod read;
mod worth;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use toolgate::telemetry::metrics::{Measurement, MetricSink, Shape};

use super::journals;

/// What a process recorded.
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

    /// What was counted, by metric and attributes: sums added up, and how often something was measured.
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

    /// What was counted of one metric, without attributes.
    fn count(&self, metric: &str) -> f64 {
        let of_metric = |what: &String| what.split('{').next() == Some(metric);
        self.counts().iter().filter(|(what, _)| of_metric(what)).map(|(_, count)| count).sum()
    }
}
