//! Readers of metrics: Prometheus, over HTTP and as text; an OTLP receiver.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use jiff::Timestamp;
use toolgate::core::id::ModelName;
use toolgate::ports::{EventSink, ModelIdentity, Update};
use toolgate::stores::MemoryStore;
use toolgate::telemetry::Destination;
use toolgate::telemetry::export::{ExportRuntime, Signal};
use toolgate::telemetry::metrics::{
    Listen, McpOperation, Metrics, MetricsBuilder, MetricsEndpoint, MetricsPlan, MetricsSettings, PROMETHEUS_TEXT,
};

use crate::telemetry::journals;

fn plan(env: &[(&str, &str)]) -> MetricsPlan {
    let settings = MetricsSettings::default();
    let env = |name: &str| env.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    settings.resolve(env).unwrap().expect("metrics are wanted")
}

pub(super) fn readable() -> Arc<Metrics> {
    Arc::new(MetricsBuilder::new(&plan(&[("OTEL_METRICS_EXPORTER", "prometheus")])).unwrap().start())
}

pub(super) fn tell_all(metrics: &Metrics) {
    let sink = metrics.sink(Arc::new(journals::identity));
    for journal in journals::all(Timestamp::UNIX_EPOCH) {
        for recorded in journal.events {
            sink.observe(&journal.run, &Update::JournalEntry(recorded));
        }
    }
}

/// Samples by name and labels. Rejects text that the format does not allow: samples of unknown families, unquoted
/// labels, a repeated series, histograms whose buckets fall or do not end with their count.
fn parsed(text: &str) -> BTreeMap<String, f64> {
    let (mut samples, mut types) = (BTreeMap::new(), BTreeMap::new());
    assert!(text.ends_with('\n'), "the last line has a line end");
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a type");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert!(types.insert(name.to_owned(), kind.to_owned()).is_none(), "repeated: {line}");
        } else if let Some(rest) = line.strip_prefix("# HELP ") {
            assert!(rest.split_once(' ').is_some_and(|(_, help)| !help.is_empty()), "{line}");
        } else {
            let (series, value) = line.rsplit_once(' ').expect("a sample");
            let name = series.split('{').next().unwrap();
            let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
            assert!(name.chars().all(legal) && !name.starts_with(|c: char| c.is_ascii_digit()), "{line}");
            let family = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| name.strip_suffix(suffix));
            let known = types.contains_key(name) || family.is_some_and(|family| types.contains_key(family));
            assert!(known, "no type for {line}");
            if let Some(labels) = series.strip_prefix(name).filter(|labels| !labels.is_empty()) {
                let inner = labels.strip_prefix('{').and_then(|labels| labels.strip_suffix("\"}")).expect("labels");
                let keys: Vec<&str> =
                    inner.split("\",").map(|pair| pair.split_once("=\"").expect("a label").0).collect();
                assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len(), "a repeated label: {line}");
            }
            let value: f64 = value.parse().expect("a number");
            assert!(samples.insert(series.to_owned(), value).is_none(), "a repeated series: {line}");
        }
    }
    check_histograms(&samples);
    samples
}

fn check_histograms(samples: &BTreeMap<String, f64>) {
    for (series, total) in samples.iter().filter(|(series, _)| series.contains("le=\"+Inf\"")) {
        let name = series.split("_bucket").next().unwrap();
        let own = |other: &str| other.split("_bucket").next() == Some(name) && labels(other) == labels(series);
        let buckets = samples.iter().filter(|(other, _)| other.contains("_bucket") && own(other));
        let mut buckets: Vec<(f64, f64)> = buckets.map(|(other, count)| (bound(other), *count)).collect();
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(buckets.windows(2).all(|pair| pair[0].1 <= pair[1].1), "{series}: {buckets:?}");
        assert_eq!(buckets.last().unwrap().1, *total, "{series}");
    }
}

fn bound(series: &str) -> f64 {
    let bound = series.split("le=\"").nth(1).unwrap().split('"').next().unwrap();
    if bound == "+Inf" { f64::INFINITY } else { bound.parse().unwrap() }
}

fn labels(series: &str) -> Vec<&str> {
    let inner = series.split_once('{').unwrap().1.trim_end_matches('}');
    inner.split("\",").filter(|label| !label.starts_with("le=")).map(|label| label.trim_end_matches('"')).collect()
}

#[test]
fn the_prometheus_text_is_valid_and_consistent() {
    let metrics = readable();
    tell_all(&metrics);
    metrics.mcp(&McpOperation {
        server: "files",
        method: None,
        took: Duration::from_secs(3),
        error: Some("disconnected"),
    });

    let samples = parsed(&metrics.prometheus());

    let sum = |family: &str| -> f64 {
        samples.iter().filter(|(series, _)| series.split('{').next() == Some(family)).map(|(_, value)| value).sum()
    };
    let journals = journals::all(Timestamp::UNIX_EPOCH).len() as f64;
    assert_eq!(sum("toolgate_runs_total"), journals);
    assert_eq!(sum("toolgate_run_duration_seconds_count"), journals);
    assert_eq!(sum("toolgate_approvals_decided_total"), 1.0);
    assert_eq!(sum("mcp_client_session_duration_seconds_sum"), 3.0);
    assert!(sum("gen_ai_client_token_usage_sum") > 1000.0 && sum("toolgate_cost_total") > 0.01);
    assert!(
        samples.keys().any(|series| series.starts_with("target_info{") && series.contains("service_name=\"toolgate\""))
    );
}

#[test]
fn foreign_names_are_escaped_and_limited_in_number() {
    let metrics = readable();
    for number in 0..2000 {
        let server = format!("s\"{number}\\\n{{}}");
        metrics.mcp(&McpOperation { server: &server, method: None, took: Default::default(), error: None });
    }
    let counts = metrics
        .prometheus()
        .lines()
        .filter(|line| line.starts_with("mcp_client_session_duration_seconds_count"))
        .count();
    assert_eq!(counts, 501, "500 names and `_other`");
    assert!(metrics.prometheus().contains(r#"s\"7\\\n{}"#));
}

#[tokio::test]
async fn store_gauges_are_read_from_the_stores_index() {
    let metrics = readable();
    assert!(!metrics.prometheus().contains("toolgate_approvals_pending"), "unknown is not zero");

    metrics.store_gauges().refresh(&MemoryStore::new()).await.unwrap();

    assert_eq!(parsed(&metrics.prometheus())["toolgate_approvals_pending"], 0.0);
}

#[tokio::test]
async fn prometheus_reads_over_http_on_loopback() {
    let metrics = readable();
    let endpoint = MetricsEndpoint::open(&Listen { host: "127.0.0.1".into(), port: 0 }, &metrics).unwrap();
    tell_all(&metrics);

    let url = format!("http://{}/metrics", endpoint.addresses()[0]);
    let response = reqwest::get(&url).await.unwrap();

    assert_eq!(
        (response.status().as_u16(), response.headers()["content-type"].to_str().unwrap()),
        (200, PROMETHEUS_TEXT)
    );
    assert_eq!(response.text().await.unwrap(), metrics.prometheus());
    let elsewhere = reqwest::get(url.replace("/metrics", "/")).await.unwrap();
    assert_eq!(elsewhere.status().as_u16(), 404);
}

#[tokio::test]
async fn a_port_in_use_is_an_error_that_names_the_fix() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();

    let error = MetricsEndpoint::open(&Listen { host: "127.0.0.1".into(), port }, &readable()).unwrap_err().to_string();

    assert!(error.contains(&format!("127.0.0.1:{port}")) && error.contains("OTEL_EXPORTER_PROMETHEUS_PORT"), "{error}");
}

#[test]
fn an_unknown_model_keeps_its_configured_name() {
    let metrics = readable();
    let unknown: fn(&ModelName) -> Option<ModelIdentity> = |_| None;
    let sink = metrics.sink(Arc::new(unknown));
    let journal = journals::plain_answer(Timestamp::UNIX_EPOCH);
    for recorded in journal.events {
        sink.observe(&journal.run, &Update::JournalEntry(recorded));
    }
    assert!(metrics.prometheus().contains(r#"gen_ai_provider_name="_other",gen_ai_request_model="main""#));
}

fn sent_to(endpoint: &str) -> Metrics {
    let destination = Destination { endpoint: Some(endpoint.to_owned()), ..Destination::default() };
    let transport = destination.resolve(Signal::Metrics, &|_| None).unwrap();
    let plan = plan(&[("OTEL_METRICS_EXPORTER", "otlp")]);
    let exporter = transport.metric_exporter(&ExportRuntime::start().unwrap(), plan.timeout).unwrap();
    let exit_signal = exporter.exit_signal();
    MetricsBuilder::new(&plan).unwrap().push(exporter, exit_signal).start()
}

async fn shut_down(metrics: Metrics) -> Result<(), String> {
    tokio::task::spawn_blocking(move || metrics.shutdown().map_err(|error| error.to_string())).await.unwrap()
}

#[tokio::test]
async fn a_receiver_gets_the_last_values_when_the_process_ends() {
    let received: Arc<Mutex<Vec<u8>>> = Arc::default();
    let taken = received.clone();
    let take = move |body: Bytes| async move { taken.lock().unwrap().extend_from_slice(&body) };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/v1/metrics", post(take))).await });
    let metrics = sent_to(&endpoint);
    tell_all(&metrics);

    shut_down(metrics).await.expect("delivered");

    let bytes = received.lock().unwrap().clone();
    let times = |text: &str| bytes.windows(text.len()).filter(|window| *window == text.as_bytes()).count();
    for name in ["gen_ai.client.token.usage", "mcp.client.operation.duration", "toolgate.run.turns", "service.name"] {
        assert_eq!(times(name), 1, "{name}");
    }
}

#[tokio::test]
async fn an_unreachable_receiver_delays_no_run_and_is_reported() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", closed.local_addr().unwrap());
    drop(closed);
    let metrics = sent_to(&endpoint);
    let began = Instant::now();
    tell_all(&metrics);
    assert!(began.elapsed() < Duration::from_secs(1), "observing took {:?}", began.elapsed());

    let error = shut_down(metrics).await.expect_err("there is no receiver");

    assert!(began.elapsed() < Duration::from_secs(6), "the end took {:?}", began.elapsed());
    assert!(error.contains("the last metrics may be lost"), "{error}");
}
