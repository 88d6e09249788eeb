//! OpenTelemetry instruments: one for each metric that is recorded as it happens.

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram, Meter};

use super::cardinality::CardinalityLimit;
use super::measurement::Measurement;
use super::names::{self, Metric, Shape};

/// The instruments of all metrics.
pub(super) struct Instruments {
    /// By the position of the metric in the table.
    instruments: Vec<Instrument>,
    cardinality: CardinalityLimit,
}

enum Instrument {
    Count(Counter<u64>),
    Amount(Counter<f64>),
    Distribution(Histogram<f64>),
    Sizes(Histogram<u64>),
    /// Read by a callback.
    Observed,
}

impl Instruments {
    pub(super) fn new(meter: &Meter) -> Self {
        let instruments = Metric::ALL.iter().map(|metric| Instrument::new(*metric, meter)).collect();
        Self { instruments, cardinality: CardinalityLimit::default() }
    }

    /// Records a measurement.
    pub(super) fn record(&self, measurement: &Measurement) {
        let attributes = measurement.attributes.iter();
        let attributes: Vec<KeyValue> = attributes.map(|(key, word)| self.cardinality.attribute(key, word)).collect();
        let value = measurement.value;
        match self.instruments.get(measurement.metric as usize) {
            Some(Instrument::Count(counter)) => counter.add(value as u64, &attributes),
            Some(Instrument::Amount(counter)) => counter.add(value, &attributes),
            Some(Instrument::Distribution(histogram)) => histogram.record(value, &attributes),
            Some(Instrument::Sizes(histogram)) => histogram.record(value as u64, &attributes),
            Some(Instrument::Observed) | None => {}
        }
    }
}

impl Instrument {
    fn new(metric: Metric, meter: &Meter) -> Self {
        let definition = metric.definition();
        let (name, unit, description) = (definition.name, definition.unit, definition.description);
        let buckets = definition.buckets.to_vec();
        match definition.shape {
            Shape::Count => Self::Count(meter.u64_counter(name).with_unit(unit).with_description(description).build()),
            Shape::Amount => {
                Self::Amount(meter.f64_counter(name).with_unit(unit).with_description(description).build())
            }
            Shape::Distribution => {
                let histogram = meter.f64_histogram(name).with_unit(unit).with_description(description);
                Self::Distribution(histogram.with_boundaries(buckets).build())
            }
            Shape::Sizes => {
                let histogram = meter.u64_histogram(name).with_unit(unit).with_description(description);
                Self::Sizes(histogram.with_boundaries(buckets).build())
            }
            Shape::ObservedCount | Shape::Level => Self::Observed,
        }
    }
}

/// Registers a callback that reads a metric; it returns `None` while the value is unknown.
pub(super) fn observe(meter: &Meter, metric: Metric, look_up: impl Fn() -> Option<u64> + Send + Sync + 'static) {
    observe_all(meter, metric, move |see| look_up().into_iter().for_each(|value| see(value, &[])));
}

/// Registers a callback that reads a metric for each MCP server.
pub(super) fn observe_servers(
    meter: &Meter,
    metric: Metric,
    look_up: impl Fn() -> Vec<(String, u64)> + Send + Sync + 'static,
) {
    observe_all(meter, metric, move |see| {
        look_up().into_iter().for_each(|(server, value)| see(value, &[KeyValue::new(names::SERVER, server)]));
    });
}

fn observe_all(
    meter: &Meter,
    metric: Metric,
    look_up: impl Fn(&mut dyn FnMut(u64, &[KeyValue])) + Send + Sync + 'static,
) {
    let definition = metric.definition();
    let (name, unit, description) = (definition.name, definition.unit, definition.description);
    match definition.shape {
        Shape::ObservedCount => {
            let counter = meter.u64_observable_counter(name).with_unit(unit).with_description(description);
            counter
                .with_callback(move |observer| look_up(&mut |value, labels| observer.observe(value, labels)))
                .build();
        }
        Shape::Level => {
            let gauge = meter.u64_observable_gauge(name).with_unit(unit).with_description(description);
            gauge.with_callback(move |observer| look_up(&mut |value, labels| observer.observe(value, labels))).build();
        }
        Shape::Count | Shape::Amount | Shape::Distribution | Shape::Sizes => {}
    }
}
