//! Span export over OTLP: the data that receivers get, and the effect of an unavailable receiver on a run.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use toolgate::core::run::{Event, JournalEntry};
use toolgate::ports::{Append, ClaimedSpans, EventSink, RunStore, SpanClaim, Update};
use toolgate::stores::MemoryStore;
use toolgate::telemetry::spans::project;
use toolgate::telemetry::{
    BackgroundSink, Destination, ExportError, ExportSettings, SampledSink, SpanContent, SpanCounts, SpanSink,
};

use super::journals::{self, Journal};
use super::receiver::Receiver;
use crate::stores::journals::append;

pub(super) const PROTOCOLS: [&str; 3] = ["http/protobuf", "http/json", "grpc"];

type Set<'a> = &'a [(&'a str, &'a str)];

fn try_sink(endpoint: &str, environment: Set<'_>, store: Option<Arc<dyn RunStore>>) -> Result<SpanSink, ExportError> {
    let destination = Destination { endpoint: Some(endpoint.to_owned()), ..Destination::default() };
    let settings = ExportSettings { destination, ..ExportSettings::default() };
    let env = |name: &str| environment.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    let export = settings.resolve(env).unwrap().expect("an endpoint is set");
    SpanSink::start(&export, Arc::new(journals::identity), store)
}

pub(super) fn sink(endpoint: &str, environment: Set<'_>) -> SpanSink {
    try_sink(endpoint, environment, None).unwrap()
}

fn speaking(protocol: &str, endpoint: &str) -> SpanSink {
    sink(endpoint, &[("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)])
}

pub(super) fn tell(sink: &dyn EventSink, journal: &Journal) {
    tell_from(sink, journal, 0);
}

fn tell_from(sink: &dyn EventSink, journal: &Journal, from: usize) {
    for recorded in &journal.events[from..] {
        sink.observe(&journal.run, &Update::JournalEntry(recorded.clone()));
    }
}

/// Sends the facts of `count` runs as if they all ended together; each has six spans.
fn tell_runs(sink: &dyn EventSink, count: usize) {
    let mut journal = journals::parallel_calls(Timestamp::UNIX_EPOCH);
    for run in 0..count {
        journal.run = format!("run_{run}").into();
        tell(sink, &journal);
    }
}

/// The result of a request to a store.
fn waited<T>(request: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(request)
}

/// An address without a listener.
fn closed_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// Executions decide for themselves whether they are sampled: the caller of each may have decided.
#[test]
fn a_run_with_one_sampled_execution_has_the_spans_of_that_one() {
    for sampled in [[false, true], [true, false], [false, false]] {
        let mut journal = journals::approved_call(Timestamp::UNIX_EPOCH);
        let mut decisions = sampled.into_iter();
        for recorded in &mut journal.events {
            match &mut recorded.event {
                Event::Started(started) => Arc::make_mut(started).trace.sampled = decisions.next().unwrap(),
                Event::Resumed { trace, .. } => trace.sampled = decisions.next().unwrap(),
                _ => {}
            }
        }
        assert_eq!(decisions.next(), None, "the journal has two executions");
        let resumed = journal.events.iter().position(|recorded| matches!(recorded.event, Event::Resumed { .. }));
        let (first, second) = journal.events.split_at(resumed.unwrap());
        let (content, identity) = (SpanContent::default(), Arc::new(journals::identity));
        let expected = project(&journal.run, &journal.events, content, identity).len();
        assert_eq!(expected > 0, sampled.contains(&true), "{sampled:?}");
        for withholds in [false, true] {
            let receiver = Receiver::start();
            let spans = Arc::new(sink(&receiver.url(), &[]));
            let sink: Arc<dyn EventSink> =
                if withholds { Arc::new(SampledSink::new(spans.clone())) } else { spans.clone() };
            let tell = |facts: &[JournalEntry]| {
                facts.iter().for_each(|recorded| sink.observe(&journal.run, &Update::JournalEntry(recorded.clone())));
            };
            tell(first);
            sink.released(&journal.run, first.last().unwrap().at);
            sink.claimed(&journal.run, first);
            tell(second);
            spans.shutdown().expect("delivered");
            assert_eq!(receiver.spans(), expected, "{sampled:?}, {withholds}");
        }
    }
}

#[test]
fn a_receiver_gets_the_spans_of_a_run_in_each_protocol() {
    for (protocol, content_type) in
        PROTOCOLS.into_iter().zip(["application/x-protobuf", "application/json", "application/grpc"])
    {
        let receiver = Receiver::start();
        let sink = speaking(protocol, &receiver.url());
        tell(&sink, &journals::parallel_calls(Timestamp::UNIX_EPOCH));
        sink.shutdown().expect("delivered");

        assert_eq!(receiver.requests()[0].content_type, content_type);
        for (name, count) in [
            ("invoke_agent assistant", 1),
            ("chat gpt-5-mini", 2),
            ("execute_tool mcp_weather_today", 1),
            ("execute_tool mcp_files_read", 1),
            ("service.name", 1),
            ("tools/list", 4),
            ("openinference.span.kind", 7),
        ] {
            assert_eq!(receiver.occurrences(name), count, "{name} over {protocol}");
        }
        assert_eq!(sink.span_counts(), SpanCounts { exported: 7, ..SpanCounts::default() });
    }
}

#[test]
fn headers_of_the_configuration_reach_the_receiver_in_each_protocol() {
    for protocol in PROTOCOLS {
        let receiver = Receiver::start();
        let headers = [("x-key".to_owned(), "open sesame".to_owned().into())].into();
        let destination = Destination { endpoint: Some(receiver.url()), headers, ..Destination::default() };
        let settings = ExportSettings { destination, ..ExportSettings::default() };
        let env = |name: &str| (name == "OTEL_EXPORTER_OTLP_PROTOCOL").then(|| protocol.to_owned());
        let export = settings.resolve(env).unwrap().expect("wanted");
        let sink = SpanSink::start(&export, Arc::new(journals::identity), None).unwrap();
        tell(&sink, &journals::plain_answer(Timestamp::UNIX_EPOCH));
        sink.shutdown().expect("delivered");
        assert_eq!(receiver.requests()[0].headers["x-key"], "open sesame", "{protocol}");
    }
}

#[test]
fn compressed_requests_say_so() {
    for (protocol, header) in PROTOCOLS.into_iter().zip(["content-encoding", "content-encoding", "grpc-encoding"]) {
        let receiver = Receiver::start();
        let environment = [("OTEL_EXPORTER_OTLP_PROTOCOL", protocol), ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")];
        let sink = sink(&receiver.url(), &environment);
        tell(&sink, &journals::plain_answer(Timestamp::UNIX_EPOCH));
        sink.shutdown().expect("delivered");
        assert_eq!(receiver.requests()[0].headers[header], "gzip", "{protocol}");
        assert_eq!(receiver.spans(), 0, "no text is readable");
    }
}

#[test]
fn a_run_resumed_in_another_process_is_exported_once() {
    let receiver = Receiver::start();
    let journal = journals::approved_call(Timestamp::UNIX_EPOCH);
    let resumed = journal.events.iter().position(|event| matches!(event.event, Event::Resumed { .. })).unwrap();
    let decided = resumed - 1;

    let first = sink(&receiver.url(), &[]);
    for recorded in &journal.events[..decided] {
        first.observe(&journal.run, &Update::JournalEntry(recorded.clone()));
    }
    first.released(&journal.run, journal.events[decided - 1].at);
    first.shutdown().expect("delivered");

    let second = sink(&receiver.url(), &[]);
    second.claimed(&journal.run, &journal.events[..resumed]);
    for recorded in &journal.events[resumed..] {
        second.observe(&journal.run, &Update::JournalEntry(recorded.clone()));
    }
    second.shutdown().expect("delivered");

    for (name, count) in [
        ("invoke_agent assistant", 2),
        ("chat gpt-5-mini", 2),
        ("execute_tool mcp_files_read", 1),
        ("toolgate.guardrail", 1),
    ] {
        assert_eq!(receiver.occurrences(name), count, "{name}");
    }
}

#[test]
fn a_process_leaves_spans_to_the_exporter_that_has_the_lease() {
    let journal = journals::approved_call(Timestamp::UNIX_EPOCH);
    let resumed = journal.events.iter().position(|event| matches!(event.event, Event::Resumed { .. })).unwrap();
    let (store, waits) = (Arc::new(MemoryStore::new()), resumed - 1);
    let created = Append { spans_sent: Some(0), ..append(journal.run.clone(), 0, waits as u64) };
    waited(store.append(created)).unwrap();
    let exporter = |receiver: &Receiver| try_sink(&receiver.url(), &[], Some(store.clone())).unwrap();
    let resumes = |receiver: &Receiver| {
        let sink = exporter(receiver);
        sink.claimed(&journal.run, &journal.events[..resumed]);
        tell_from(&sink, &journal, resumed);
        sink.shutdown().expect("delivered");
        sink.left()
    };
    let (slow, receiver) = (Receiver::shut(), Receiver::start());
    let first = exporter(&slow);
    first.claimed(&journal.run, &[]);
    for recorded in &journal.events[..waits] {
        first.observe(&journal.run, &Update::JournalEntry(recorded.clone()));
    }
    first.released(&journal.run, journal.events[waits].at);

    assert_eq!(resumes(&receiver), std::slice::from_ref(&journal.run));
    assert_eq!(receiver.spans(), 0);

    slow.open();
    first.shutdown().expect("delivered");
    assert_eq!(resumes(&receiver), []);
    assert_eq!((slow.occurrences("invoke_agent assistant"), receiver.occurrences("invoke_agent assistant")), (1, 1));
    assert_eq!((slow.occurrences("chat gpt-5-mini"), receiver.occurrences("chat gpt-5-mini")), (1, 1));
}

#[test]
fn facts_that_were_dropped_stop_the_mark_of_their_run() {
    let (receiver, store) = (Receiver::start(), Arc::new(MemoryStore::new()));
    let journal = journals::parallel_calls(Timestamp::UNIX_EPOCH);
    let end = journal.events.len();
    let created = Append { spans_sent: Some(0), ..append(journal.run.clone(), 0, end as u64) };
    waited(store.append(created)).unwrap();
    let sink = try_sink(&receiver.url(), &[], Some(store.clone())).unwrap();
    sink.claimed(&journal.run, &[]);
    let model = journal.events.iter().position(|event| event.event.name() == "llm.call.completed").unwrap();
    for recorded in journal.events.iter().filter(|recorded| recorded.seq != model as u64) {
        sink.observe(&journal.run, &Update::JournalEntry(recorded.clone()));
    }
    sink.shutdown().expect("delivered");

    let claim = SpanClaim { run: journal.run.clone(), at: end as u64, is_abandoned: false, lease: Duration::ZERO };
    let claimed = waited(store.claim_spans(&claim)).unwrap();
    assert_eq!(claimed, ClaimedSpans::From(model as u64));
    let (sent, next) = (receiver.spans(), try_sink(&receiver.url(), &[], Some(store)).unwrap());
    assert_eq!((sent, next.send_from(&journal.run, &journal.events, model as u64)), (2, 5));
}

#[test]
fn two_thousand_runs_that_end_together_lose_no_span_with_default_settings() {
    let receiver = Receiver::start();
    let sink = Arc::new(sink(&receiver.url(), &[]));
    let aside = BackgroundSink::new(sink.clone()).unwrap();
    tell_runs(&aside, 2_000);
    assert_eq!(aside.finish(), 0, "dropped facts");

    sink.shutdown().expect("delivered");

    assert_eq!(sink.span_counts(), SpanCounts { exported: 14_000, ..SpanCounts::default() });
    assert_eq!(receiver.spans(), 14_000);
}

#[test]
fn spans_beyond_a_short_queue_are_counted_and_reported() {
    let receiver = Receiver::shut();
    let patient = [("OTEL_EXPORTER_OTLP_TIMEOUT", "600000"), ("OTEL_BSP_EXPORT_TIMEOUT", "600000")];
    let sink = sink(&receiver.url(), &[patient.as_slice(), &[("OTEL_BSP_MAX_QUEUE_SIZE", "2048")]].concat());
    tell_runs(&sink, 2_000);
    receiver.open();

    let complaint = sink.shutdown().expect_err("lost").to_string();

    assert_eq!(sink.span_counts(), SpanCounts { exported: 2_048, dropped: 11_952, ..SpanCounts::default() });
    assert_eq!(receiver.spans(), 2_048);
    assert!(complaint.contains("11952 spans were lost"), "{complaint}");
}

/// How long a collector is unavailable.
const GONE: Duration = Duration::from_secs(5);
/// How long its address is closed while it restarts: well below the time that the export is retried for.
const RESTARTS: Duration = Duration::from_secs(3);

/// A receiver that starts on that address after a while; the test is about this delay.
fn back_at(address: SocketAddr) -> Receiver {
    std::thread::sleep(RESTARTS);
    Receiver::at(address)
}

/// Waits until that many spans were exported.
fn await_exported(sink: &SpanSink, spans: u64) {
    let began = Instant::now();
    while sink.span_counts().exported < spans {
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", sink.span_counts());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_collector_unavailable_for_five_seconds_loses_no_span() {
    std::thread::scope(|scope| {
        for protocol in PROTOCOLS {
            scope.spawn(move || {
                let unwell = Receiver::down_for(GONE);
                let sink = speaking(protocol, &unwell.url());
                tell_runs(&sink, 300);
                sink.shutdown().unwrap_or_else(|error| panic!("{protocol}: {error}"));
                assert_eq!(unwell.spans(), 2_100, "{protocol}");
            });
        }
    });
}

#[test]
fn a_collector_that_takes_two_seconds_for_a_request_loses_no_span() {
    std::thread::scope(|scope| {
        for protocol in PROTOCOLS {
            scope.spawn(move || {
                let slow = Receiver::slow(Duration::from_secs(2));
                let sink = speaking(protocol, &slow.url());
                tell_runs(&sink, 1_200);
                sink.shutdown().unwrap_or_else(|error| panic!("{protocol}: {error}"));
                assert_eq!(slow.spans(), 8_400, "{protocol}");
                // One after the other, the 15 requests would take the whole time that a process has.
                assert!(slow.most_at_once() > 1, "{protocol}");
            });
        }
    });
}

#[test]
fn a_collector_that_starts_five_seconds_late_loses_no_span() {
    std::thread::scope(|scope| {
        for protocol in PROTOCOLS {
            scope.spawn(move || {
                let address = closed_address();
                let sink = speaking(protocol, &format!("http://{address}"));
                tell_runs(&sink, 300);
                let back = back_at(address);
                await_exported(&sink, 2_100);
                sink.shutdown().unwrap_or_else(|error| panic!("{protocol}: {error}"));
                assert_eq!(back.spans(), 2_100, "{protocol}");
            });
        }
    });
}

#[test]
fn a_collector_restarting_at_the_end_loses_no_span() {
    std::thread::scope(|scope| {
        for protocol in PROTOCOLS {
            scope.spawn(move || {
                let before = Receiver::start();
                let address = before.address;
                let sink = speaking(protocol, &before.url());
                tell_runs(&sink, 100);
                await_exported(&sink, 700);
                drop(before);
                tell_runs(&sink, 300);
                let back = scope.spawn(move || back_at(address));
                sink.shutdown().unwrap_or_else(|error| panic!("{protocol}: {error}"));
                assert_eq!(back.join().unwrap().spans(), 2_100, "{protocol}");
            });
        }
    });
}

#[test]
fn an_unreachable_receiver_delays_only_the_end_by_two_seconds() {
    std::thread::scope(|scope| {
        for protocol in PROTOCOLS {
            scope.spawn(move || {
                let endpoint = format!("http://{}", closed_address());
                for (opening, patience) in [("first", 2_000), ("second", 500)] {
                    let sink = speaking(protocol, &endpoint);
                    let began = Instant::now();
                    for journal in journals::all(Timestamp::UNIX_EPOCH) {
                        tell(&sink, &journal);
                    }
                    assert!(began.elapsed() < Duration::from_secs(1), "observing took {:?}", began.elapsed());
                    let ending = Instant::now();
                    let error = sink.shutdown().expect_err("there is no receiver");
                    let took = ending.elapsed();
                    assert!(took < Duration::from_millis(patience), "{protocol}, {opening} end: {took:?}");
                    assert!(error.to_string().contains("spans were lost on the way to http://127.0.0.1"), "{error}");
                }
            });
        }
    });
}

#[test]
fn rejected_spans_are_counted_and_the_reason_is_reported() {
    for protocol in PROTOCOLS {
        let receiver = Receiver::rejecting(2, "over\nquota \u{1b}[2J");
        let sink = speaking(protocol, &receiver.url());
        tell(&sink, &journals::parallel_calls(Timestamp::UNIX_EPOCH));

        let complaint = sink.shutdown().expect_err(protocol).to_string();

        assert_eq!(sink.span_counts(), SpanCounts { exported: 5, failed: 2, ..SpanCounts::default() }, "{protocol}");
        assert!(complaint.starts_with("2 spans were lost") && complaint.contains("over quota"), "{complaint}");
        assert!(!complaint.contains(char::is_control), "{protocol}: {complaint:?}");
    }
}

/// The runtime of a test has one thread, and `shutdown` blocks it.
#[tokio::test]
async fn thirty_megabytes_are_sent_at_the_end_on_one_thread() {
    let text = "x".repeat(100_000);
    for protocol in PROTOCOLS {
        let receiver = Receiver::start();
        let sink = speaking(protocol, &receiver.url());
        for run in 0..160 {
            let mut journal = journals::long_answer(Timestamp::UNIX_EPOCH, &text);
            journal.run = format!("run_{run}").into();
            tell(&sink, &journal);
        }
        sink.shutdown().expect("delivered");

        let bytes: usize = receiver.requests().iter().map(|request| request.body.len()).sum();
        assert!(bytes > 30_000_000, "{bytes} bytes over {protocol}");
        assert_eq!(sink.span_counts(), SpanCounts { exported: 640, ..SpanCounts::default() }, "{protocol}");
    }
}

#[test]
fn a_span_limit_is_applied_and_counted_on_the_span() {
    let receiver = Receiver::start();
    let environment = [("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"), ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "5")];
    let sink = sink(&receiver.url(), &environment);
    tell(&sink, &journals::plain_answer(Timestamp::UNIX_EPOCH));
    sink.shutdown().expect("delivered");

    let sent: serde_json::Value = serde_json::from_slice(&receiver.requests()[0].body).unwrap();
    for span in sent["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap() {
        assert_eq!(span["attributes"].as_array().unwrap().len(), 5);
        assert!(span["droppedAttributesCount"].as_u64().unwrap() > 0, "{span}");
    }
}

#[test]
fn an_invalid_certificate_is_rejected_by_its_variable() {
    let folder = tempfile::tempdir().unwrap();
    let rubbish = folder.path().join("rubbish.pem");
    std::fs::write(&rubbish, "rubbish").unwrap();
    let missing = folder.path().join("missing.pem");
    for protocol in PROTOCOLS {
        for file in [&rubbish, &missing] {
            let variable = "OTEL_EXPORTER_OTLP_CERTIFICATE";
            let environment = [("OTEL_EXPORTER_OTLP_PROTOCOL", protocol), (variable, file.to_str().unwrap())];
            let error =
                try_sink("https://localhost:4318", &environment, None).map(drop).expect_err("refused").to_string();
            assert!(error.contains(variable), "{protocol}: {error}");
        }
        let sound = try_sink("https://localhost:4318", &[("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)], None);
        assert!(sound.is_ok(), "{protocol}: {:?}", sound.map(drop).expect_err("refused"));
    }
}
