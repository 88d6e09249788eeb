//! Span marks: each span of a run reaches the collector once, whichever processes execute the run and send its spans.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::desk::{Desk, Ended};
use super::run::{database, let_leases_run_out, until_second_turn};
use super::telemetry::{HANGS, NOTE};
use crate::telemetry::receiver::Receiver;

/// The trace and the id of each span, sorted.
pub(super) type SpanIds = Vec<(String, String)>;

/// The spans that the collector received over HTTP as JSON, each as often as it came.
pub(super) fn spans_received(receiver: &Receiver) -> Vec<Value> {
    let requests =
        receiver.requests().into_iter().filter_map(|request| serde_json::from_slice::<Value>(&request.body).ok());
    let scopes = requests.flat_map(|request| list(&request, "resourceSpans"));
    let scopes = scopes.flat_map(|resource| list(&resource, "scopeSpans"));
    scopes.flat_map(|scope| list(&scope, "spans")).collect()
}

/// The members of a list, which may be missing.
pub(super) fn list(value: &Value, name: &str) -> Vec<Value> {
    value[name].as_array().cloned().unwrap_or_default()
}

/// The ids of these spans.
pub(super) fn received(receiver: &Receiver) -> SpanIds {
    let mut ids: SpanIds =
        spans_received(receiver).iter().map(|span| pair(&span["traceId"], &span["spanId"])).collect();
    ids.sort();
    ids
}

/// The spans of runs that follow from their journals.
pub(super) fn of_journals(desk: &Desk, runs: &[&str]) -> SpanIds {
    let spans = runs.iter().flat_map(|run| desk.toolgate(&["runs", "trace", run, "--json"]).expect(0).json_lines());
    let mut ids: SpanIds = spans.map(|span| pair(&span["trace"], &span["id"])).collect();
    ids.sort();
    ids
}

fn pair(trace: &Value, id: &Value) -> (String, String) {
    (trace.as_str().unwrap().to_owned(), id.as_str().unwrap().to_owned())
}

/// Whether the mark of the only run is the end of its journal.
fn is_marked(desk: &Desk) -> bool {
    database(desk).query_row("SELECT spans_sent = version FROM run", [], |row| row.get(0)).unwrap()
}

/// Runs the program, which exports as JSON to that address.
fn ran(desk: &Desk, arguments: &[&str], url: &str) -> Ended {
    Ended::from(desk.command(arguments).envs(environment(url)).output().unwrap())
}

pub(super) fn environment(url: &str) -> [(&'static str, String); 2] {
    [("OTEL_EXPORTER_OTLP_ENDPOINT", url.to_owned()), ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json".to_owned())]
}

#[test]
fn each_span_of_a_killed_execution_arrives_once_after_recovery() {
    // Nothing was sent, or all that was finished.
    for (delay, sent) in [("60000", 0), ("50", 3)] {
        let (receiver, desk) = (Receiver::start(), Desk::playing(HANGS));
        let mut command = desk.command(&["run", "--json", "Find Ada"]);
        command.envs(environment(&receiver.url())).env("OTEL_BSP_SCHEDULE_DELAY", delay);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let _lines = until_second_turn(&mut child);
        // The mark follows the answer of the collector.
        let began = Instant::now();
        while received(&receiver).len() < sent || (sent > 0 && !is_marked(&desk)) {
            assert!(began.elapsed() < Duration::from_secs(20), "the finished spans never arrive");
            std::thread::sleep(Duration::from_millis(20));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(received(&receiver).len(), sent);

        desk.write("conversation.yaml", &HANGS.replace("hang: true", "say: done"));
        let_leases_run_out(&desk);
        ran(&desk, &["runs", "recover"], &receiver.url()).expect(0);

        assert_eq!(received(&receiver), of_journals(&desk, &["last"]), "delay of {delay}");
        assert!(received(&receiver).len() >= 6, "two executions");
    }
}

#[test]
fn what_the_collector_has_is_not_sent_again() {
    let (receiver, desk) = (Receiver::start(), Desk::playing(NOTE));
    ran(&desk, &["run", "Note it"], &receiver.url()).expect(10);
    let first = received(&receiver);
    assert_eq!(first, of_journals(&desk, &["last"]));
    let again = ran(&desk, &["runs", "trace", "last", "--send"], &receiver.url()).expect(0);
    assert!(again.out.starts_with("no spans to send of run_"), "{}", again.out);
    assert_eq!(received(&receiver), first);

    // The second execution exports nothing.
    desk.toolgate(&["approvals", "approve", "last", "note"]).expect(0);
    let rest = ran(&desk, &["runs", "trace", "last", "--send"], &receiver.url()).expect(0);

    let whole = of_journals(&desk, &["last"]);
    assert_eq!(received(&receiver), whole);
    assert!(rest.out.starts_with(&format!("{} spans of run_", whole.len() - first.len())), "{}", rest.out);
    let again = ran(&desk, &["runs", "trace", "last", "--send"], &receiver.url()).expect(0);
    assert!(again.out.starts_with("no spans to send of run_"), "{}", again.out);

    let all = ran(&desk, &["runs", "trace", "last", "--send", "--all"], &receiver.url()).expect(0);
    assert!(all.out.starts_with(&format!("{} spans of run_", whole.len())), "{}", all.out);
    assert_eq!(received(&receiver).len(), 2 * whole.len());
}

#[test]
fn a_resume_sends_what_an_unavailable_collector_did_not_get() {
    let desk = Desk::playing(NOTE);
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let lost = ran(&desk, &["run", "Note it"], &format!("http://{address}")).expect(10);
    assert!(lost.err.contains("spans were lost"), "{}", lost.err);

    let receiver = Receiver::at(address);
    ran(&desk, &["approvals", "approve", "last", "note"], &receiver.url()).expect(0);

    assert_eq!(received(&receiver), of_journals(&desk, &["last"]));
}

#[test]
fn a_run_that_began_without_export_is_sent_once_it_has_ended() {
    let (receiver, desk) = (Receiver::start(), Desk::playing("turns: [{ say: done }]"));
    desk.toolgate(&["run", "Go"]).expect(0);
    for expected in ["3 spans of run_", "no spans to send of run_"] {
        let sent = ran(&desk, &["runs", "trace", "last", "--send"], &receiver.url()).expect(0);
        assert!(sent.out.starts_with(expected), "{}", sent.out);
        assert_eq!(received(&receiver), of_journals(&desk, &["last"]));
    }
}

#[test]
fn a_run_that_was_not_sampled_is_sent_with_all() {
    let (receiver, desk) = (Receiver::start(), Desk::playing("turns: [{ say: done }]"));
    let mut unsampled = desk.command(&["run", "Go"]);
    unsampled.envs(environment(&receiver.url())).env("OTEL_TRACES_SAMPLER", "always_off");
    Ended::from(unsampled.output().unwrap()).expect(0);
    ran(&desk, &["runs", "trace", "last", "--send"], &receiver.url()).expect(0);
    assert_eq!(received(&receiver), []);

    ran(&desk, &["runs", "trace", "last", "--send", "--all"], &receiver.url()).expect(0);

    assert_eq!(received(&receiver), of_journals(&desk, &["last"]));
}
