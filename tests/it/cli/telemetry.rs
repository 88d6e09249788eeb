//! Telemetry of the process, as its environment configures it.

use std::io::Read as _;
use std::net::TcpListener;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;

use super::desk::{Desk, Ended};
use super::run::{signal, until_second_turn};
use crate::telemetry::receiver::Receiver;

const ANSWER: &str = "turns: [{ say: done }]";

pub(super) const HANGS: &str = "
turns:
  - { calls: [{ name: mcp_shop_find_customer, arguments: { name: Ada } }] }
  - { hang: true }
";

pub(super) const NOTE: &str = "
turns:
  - { calls: [{ id: note, name: mcp_shop_add_note, arguments: { customer_id: C-1001, text: late } }] }
  - { say: done }
";

fn ran(desk: &Desk, arguments: &[&str], environment: &[(&str, &str)]) -> Ended {
    Ended::from(desk.command(arguments).envs(environment.iter().copied()).output().unwrap())
}

#[test]
fn a_header_of_the_configuration_wins_over_the_same_of_the_environment_for_each_signal_and_protocol() {
    for protocol in ["http/protobuf", "http/json", "grpc"] {
        let receiver = Receiver::start();
        let desk = Desk::playing(ANSWER);
        let configuration = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
        let headers = "telemetry: { headers: { x-key: of the file } }";
        desk.write("toolgate.yaml", &format!("{configuration}\n{headers}\n"));

        let environment = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url()),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", protocol.to_owned()),
            ("OTEL_EXPORTER_OTLP_HEADERS", "X-Key=of the environment,x-other=kept".to_owned()),
            ("OTEL_METRICS_EXPORTER", "otlp".to_owned()),
        ];
        Ended::from(desk.command(&["run", "Go"]).envs(environment).output().unwrap()).expect(0);

        let requests = receiver.requests();
        assert_eq!(requests.len(), 2, "spans and metrics over {protocol}");
        for request in requests {
            let keys: Vec<_> = request.headers.get_all("x-key").iter().collect();
            assert_eq!(keys, ["of the file"], "{protocol}");
            assert_eq!(request.headers["x-other"], "kept", "{protocol}");
        }
    }
}

#[test]
fn a_collector_that_is_not_there_costs_a_process_two_seconds_and_two_sentences() {
    let dead = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let desk = Desk::playing(ANSWER);
    let began = Instant::now();
    ran(&desk, &["run", "Go"], &[]).expect(0);
    let usual = began.elapsed();
    for protocol in ["http/protobuf", "grpc"] {
        let endpoint = format!("http://{dead}");
        let environment = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", protocol),
            ("OTEL_METRICS_EXPORTER", "otlp"),
        ];
        let began = Instant::now();
        let ended = ran(&desk, &["run", "Go"], &environment).expect(0);
        let longer = began.elapsed().saturating_sub(usual);
        assert!(longer < Duration::from_secs(3), "{protocol}: {longer:?} longer than {usual:?}");
        for (about, sentence) in
            [("spans", "warning: 3 spans were lost"), ("metrics", "warning: the last metrics may be")]
        {
            let told: Vec<&str> = ended.err.lines().filter(|line| line.contains(about)).collect();
            assert!(matches!(told[..], [line] if line.starts_with(sentence)), "{protocol}: {}", ended.err);
        }
    }
}

#[test]
fn row_2_56_log_records_of_a_run_are_exported_over_each_protocol() {
    for protocol in ["http/protobuf", "http/json", "grpc"] {
        let receiver = Receiver::start();
        let (endpoint, desk) = (receiver.url(), Desk::playing(NOTE));
        let environment = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", protocol),
            ("OTEL_TRACES_EXPORTER", "none"),
            ("OTEL_LOGS_EXPORTER", "otlp"),
        ];
        let ended = ran(&desk, &["run", "--policy", "bypass", "Note it"], &environment).expect(0);
        assert!(
            !ended.err.contains("Agent execution started"),
            "the log on standard error is as before: {}",
            ended.err
        );
        for point in [
            "Agent execution started",
            "Tool registration complete",
            "LLM requested tool calls",
            "Invoked MCP tools and prepared external tools",
            "LLM finalized response",
        ] {
            assert_eq!(receiver.occurrences(point), 1, "{point} over {protocol}");
        }
        if protocol == "http/json" {
            let sent: serde_json::Value = serde_json::from_slice(&receiver.requests()[0].body).unwrap();
            let run = &desk.journal("last")[0];
            let scopes = sent["resourceLogs"][0]["scopeLogs"].as_array().unwrap();
            let records = scopes.iter().flat_map(|scope| scope["logRecords"].as_array().unwrap());
            for record in records {
                assert_eq!(record["traceId"], run["trace"]["id"], "{record}");
                assert_eq!(record["spanId"].as_str().map(str::len), Some(16), "{record}");
                assert_eq!(record["severityText"], "INFO", "{record}");
            }
        }
    }
}

#[test]
fn row_2_56_an_exported_log_record_has_no_known_secret_and_a_lost_one_is_reported() {
    const KEY: &str = "canary-0123456789abcdef";
    let receiver = Receiver::start();
    let desk = Desk::playing(&format!("turns: [{{ fail: {{ code: provider_auth, message: {KEY} is refused }} }}]"));
    let configuration = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    desk.write("toolgate.yaml", &format!("{configuration}\ntelemetry: {{ headers: {{ x-key: {KEY} }} }}\n"));
    let dead = format!("http://{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    for (endpoint, lost) in [(receiver.url(), false), (dead, true)] {
        let environment = [
            ("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", format!("{endpoint}/v1/logs")),
            ("OTEL_LOGS_EXPORTER", "otlp".into()),
        ];
        let ended = Ended::from(desk.command(&["run", "Go"]).envs(environment).output().unwrap()).expect(1);
        assert_eq!(ended.err.contains("log records were lost on the way to"), lost, "{}", ended.err);
    }
    assert_eq!((receiver.occurrences("provider_auth"), receiver.occurrences("canary")), (2, 0));
}

#[test]
fn row_2_56_an_exporter_of_log_records_that_is_not_there_is_refused() {
    let desk = Desk::playing(ANSWER);
    let ended = ran(&desk, &["run", "Go"], &[("OTEL_LOGS_EXPORTER", "console")]).expect(2);
    assert!(ended.err.contains("OTEL_LOGS_EXPORTER is `console`: set it to `otlp` or `none`"), "{}", ended.err);
}

#[test]
fn a_rejected_secret_argument_and_its_echo_are_in_no_span_feedback_or_log_file() {
    let receiver = Receiver::start();
    let desk = Desk::playing(
        "
turns:
  - { calls: [{ id: in, name: ext_log_in, arguments: { password: hunter2-x, code: { pin: 47113 } } }] }
  - { say: 'Neither hunter2-x nor 47113 is long enough.' }
",
    );
    let long = json!({"type": "string", "minLength": 20});
    let schema = json!({"type": "object", "properties": {
        "password": long, "code": {"type": "object", "properties": {"pin": long}}}});
    desk.write("tools.json", &json!([{"name": "log_in", "description": "", "input_schema": schema}]).to_string());
    let configuration = std::fs::read_to_string(desk.path().join("toolgate.yaml")).unwrap();
    desk.write("toolgate.yaml", &format!("{configuration}\nlog_folder: logs\n"));

    let environment =
        [("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url()), ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json".to_owned())];
    let mut command = desk.command(&["run", "--external-tools", "tools.json", "--policy", "bypass", "Log in"]);
    Ended::from(command.envs(environment).output().unwrap()).expect(0);

    assert!(receiver.occurrences("Neither __REDACTED__ nor __REDACTED__ is long enough.") > 0);
    let journal = desk.journal("last");
    let checked = journal.iter().find(|event| event["type"] == "tool.checked").unwrap().to_string();
    assert!(checked.contains("minLength"), "{checked}");
    let log = std::fs::read_dir(desk.path().join("logs")).unwrap().next().unwrap().unwrap();
    let log = std::fs::read_to_string(log.path()).unwrap();
    let log: String = log.lines().filter(|line| !line.contains("long enough")).collect();
    assert!(log.contains("__REDACTED__"), "{log}");
    for secret in ["hunter2-x", "47113"] {
        assert_eq!(receiver.occurrences(secret), 0, "{secret} in spans");
        assert!(!checked.contains(secret) && !log.contains(secret), "{secret} in {checked} or {log}");
    }
}

/// Terminates a run in its second model call. Returns its standard error and how long it took to end.
fn terminated(endpoint: &str) -> (String, Duration) {
    let desk = Desk::playing(HANGS);
    let mut command = desk.command(&["run", "--json", "x"]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = until_second_turn(&mut child);
    let began = Instant::now();
    signal(&child, "-TERM");
    lines.read_to_end(&mut Vec::new()).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(143));
    (String::from_utf8(ended.stderr).unwrap(), began.elapsed())
}

#[test]
fn a_terminated_run_exports_all_of_its_spans() {
    let receiver = Receiver::start();
    let (told, _) = terminated(&receiver.url());
    assert!(!told.contains("lost"), "{told}");
    assert_eq!(receiver.spans(), 5, "with the model call that was cut, and the root");
    for (name, times) in [("chat played", 2), ("execute_tool mcp_shop_find_customer", 1), ("invoke_agent desk", 1)] {
        assert_eq!(receiver.occurrences(name), times, "{name}");
    }
}

#[test]
fn a_terminated_run_says_which_spans_it_lost_and_ends_soon() {
    let silent = Receiver::shut();
    let dead = format!("http://{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    for endpoint in [silent.url(), dead] {
        let (told, took) = terminated(&endpoint);
        assert!(told.contains("5 spans were lost on the way to"), "{told}");
        assert!(took < Duration::from_secs(9), "{took:?}");
    }
}

/// The value of a series whose line has this prefix and these labels.
fn value(text: &str, name: &str, labels: &[&str]) -> Option<f64> {
    let is_it = |line: &&str| {
        let rest = line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']));
        rest && labels.iter().all(|label| line.contains(label))
    };
    text.lines().find(is_it).map(|line| line.rsplit_once(' ').unwrap().1.parse().unwrap())
}

#[test]
fn a_run_that_resumes_in_another_process_is_measured_once() {
    let desk = Desk::playing(NOTE);
    let console = [("OTEL_METRICS_EXPORTER", "console")];

    let first = ran(&desk, &["run", "Note it"], &console).expect(10).err;
    let second = ran(&desk, &["approvals", "approve", "last", "note"], &console).expect(0).err;

    for (name, labels, of_first, of_second) in [
        ("toolgate_approvals_pending", &[][..], Some(1.0), Some(0.0)),
        ("toolgate_runs_pending", &[], Some(1.0), Some(0.0)),
        ("toolgate_approvals_requested_total", &["mcp_shop_add_note"], Some(1.0), None),
        ("toolgate_approvals_decided_total", &["toolgate_approval_answer=\"approve\""], None, Some(1.0)),
        ("toolgate_runs_total", &["toolgate_run_outcome=\"completed\""], None, Some(1.0)),
        ("toolgate_run_turns_sum", &[], None, Some(2.0)),
        ("gen_ai_client_operation_duration_seconds_count", &["model=\"played\""], Some(1.0), Some(1.0)),
        (
            "mcp_client_operation_duration_seconds_count",
            &["tools/call", "network_transport=\"pipe\"", "mcp_protocol_version="],
            None,
            Some(1.0),
        ),
        ("mcp_client_session_duration_seconds_count", &["toolgate_tool_server=\"shop\""], Some(1.0), Some(1.0)),
    ] {
        assert_eq!(value(&first, name, labels), of_first, "{name} of the first process: {first}");
        assert_eq!(value(&second, name, labels), of_second, "{name} of the second process: {second}");
    }
}

#[test]
fn invalid_telemetry_settings_are_found_before_a_run() {
    for (name, value) in [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http"),
        ("OTEL_TRACES_SAMPLER", "sometimes"),
        ("OTEL_METRICS_EXPORTER", "statsd"),
        ("OTEL_PROPAGATORS", "tracecontxt"),
        ("OPENINFERENCE_HIDE_INPUT", "true"),
    ] {
        let environment = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9"), (name, value)];
        let ended = ran(&Desk::playing(ANSWER), &["config", "check"], &environment).expect(2);
        assert!(ended.err.contains(name) || ended.err.contains(value), "{name}: {}", ended.err);
    }
}
