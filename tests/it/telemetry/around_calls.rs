//! Spans around the calls of a run: transport and tool discovery of their servers, policy decisions, and waiting times.

use std::sync::Arc;

use serde_json::json;
use toolgate::core::policy::{OnTimeout, Policy};
use toolgate::core::redact::SecretsBuilder;
use toolgate::core::run::{Authorization, CallVerdict, Ending, Event, Rejection, Run, Trigger};
use toolgate::core::tool::{
    CallTransport, Difference, ExternalTool, FailureKind, LeftOut, Outcome, ServerTools, ToolCall, ToolOutput, Toolset,
    ToolsetRules, Transport,
};
use toolgate::telemetry::spans::{Kind, Projector, Redaction, Span, SpanContent, Status, USUAL_NAMES, Value};

use super::journals::{self, Journal};
use super::spans::{START, attribute, named, spans, text};

/// A run that discovers tools, makes one call with this outcome and transport, and ends.
fn one_call(outcome: Outcome, wire: Option<CallTransport>) -> Vec<Span> {
    let mut journal = Journal::start("wired", 14, START, |_| {});
    journal.lists_tools();
    journal.model_calls([ToolCall::new("call_o", "mcp_weather_today", json!({ "city": "Oslo" }))]);
    journal.selects(0, &["call_o"], &[]);
    journal.allows("call_o");
    journal.sends(&["call_o"]);
    let (call, outcome, wire) = ("call_o".into(), Arc::new(outcome), wire.map(Box::new));
    journal.then(Event::CallCompleted { call, outcome, stderr: Vec::new(), wire });
    journal.model_says("So it is.");
    journal.completes("So it is.");
    spans(&journal, SpanContent::default())
}

#[test]
fn a_call_span_has_the_transport_and_error_code_of_its_server() {
    let http = Transport::Http { address: Some("mcp.example".into()), port: Some(8443) };
    let wire = |transport, error_code| {
        let (protocol_version, request_id) = (Some("2026-07-28".to_owned()), Some("7".to_owned()));
        Some(CallTransport { transport, protocol_version, request_id, error_code })
    };
    let told = one_call(Outcome::failed(FailureKind::Refused, "no such city"), wire(http, Some(-32602)));
    let refused = named(&told, "execute_tool mcp_weather_today");
    for (name, value) in [
        ("mcp.protocol.version", "2026-07-28"),
        ("jsonrpc.request.id", "7"),
        ("network.transport", "tcp"),
        ("network.protocol.name", "http"),
        ("server.address", "mcp.example"),
        ("error.type", "-32602"),
        ("rpc.response.status_code", "-32602"),
    ] {
        assert_eq!(text(refused, name), value, "{name}");
    }
    assert_eq!(attribute(refused, "server.port"), Some(&Value::Int(8443)));

    let told = one_call(Outcome::Returned(ToolOutput::error("rain")), wire(Transport::Pipe, None));
    let piped = named(&told, "execute_tool mcp_weather_today");
    assert_eq!((text(piped, "network.transport"), text(piped, "error.type")), ("pipe", "tool_error"));
    assert_eq!(attribute(piped, "network.protocol.name"), None);
    let told = one_call(Outcome::failed(FailureKind::Unavailable, "it is away"), None);
    assert_eq!(attribute(named(&told, "execute_tool mcp_weather_today"), "network.transport"), None);
}

/// A tool discovery in which each of these servers failed.
fn listed_without(servers: &[&str]) -> Event {
    let failed = |server: &&str| ServerTools {
        server: (*server).into(),
        trusted: false,
        endpoint: None,
        tools: Arc::default(),
        left_out: vec![LeftOut { server: Some((*server).into()), tool: None, reason: format!("{server} is away") }],
        stale: None,
        authorization: None,
    };
    let offers: Vec<ServerTools> = servers.iter().map(failed).collect();
    Event::ToolsListed { toolset: Arc::new(Toolset::assemble(&[], &offers, &ToolsetRules::default())) }
}

#[test]
fn a_listing_is_an_error_if_a_server_could_not_be_listed() {
    let listing = |fact: Event| {
        let mut journal = Journal::start("listing", 15, START, |_| {});
        let parent = Run::replay(journal.events.iter().map(|recorded| &recorded.event)).unwrap().unwrap();
        journal.then(fact);
        journal.model_says("Hello.");
        journal.completes("Hello.");
        let told = spans(&journal, SpanContent::default());
        let span = named(&told, "tools/list files").clone();
        assert_eq!(span.id, parent.listing_context(&"files".into()).span, "the server gets its span id");
        assert_eq!((span.kind, text(&span, "openinference.span.kind")), (Kind::Client, "CHAIN"));
        span
    };
    let failed = listing(listed_without(&["weather", "files"]));
    assert_eq!(failed.status, Status::Error("files is away".into()));
    assert_eq!((text(&failed, "error.type"), failed.events[0].name), ("unavailable", "exception"));
    assert_eq!(listing(listed_without(&["weather"])).status, Status::Ok);
    assert_eq!(listing(listed_without(&[])).status, Status::Ok);
}

#[test]
fn only_a_listing_of_servers_has_a_span_even_if_cut_short() {
    let mut journal = Journal::start("cut", 16, START, |_| {});
    journal.then(Event::Ended { ending: Ending::Cancelled { reason: None, partial_reply: None } });
    let told = spans(&journal, SpanContent::default());
    assert_eq!(text(named(&told, "tools/list files"), "error.type"), "cancelled");

    let mut alone = Journal::start("alone", 17, START, |spec| spec.servers = Vec::new());
    alone.lists_no_tools();
    alone.model_says("Hello.");
    alone.completes("Hello.");
    assert!(spans(&alone, SpanContent::default()).iter().all(|span| !span.name.starts_with("tools/list")));
}

#[test]
fn an_approval_span_has_the_waiting_time_as_a_number() {
    let told = spans(&journals::approved_call(START), SpanContent::default());
    let approval = named(&told, "approval");
    assert_eq!(attribute(approval, "toolgate.wait_ms"), Some(&Value::Int(10)));
    assert_eq!(approval.start, approval.end, "it was decided before the resumed execution started");
    let resumed = told.iter().filter(|span| span.parent.is_none()).nth(1).expect("a second root");
    assert_eq!(attribute(resumed, "toolgate.wait_ms"), Some(&Value::Int(1020)));
    let said = |name| text(approval, name);
    assert_eq!((said("toolgate.approval.answer"), said("toolgate.approval.by")), ("approve", "ann"));
    assert_eq!((said("toolgate.approval.rule"), said("toolgate.approval.scope")), ("files", "once"));
}

#[test]
fn expired_items_have_spans_of_their_kind() {
    let ended_late = |tool: &str, verdict: CallVerdict| {
        let mut journal = Journal::start("late", 18, START, |_| {});
        journal.lists_tools();
        journal.model_calls([ToolCall::new("call_p", tool, json!({}))]);
        journal.selects(0, &["call_p"], &[]);
        journal.then(Event::CallChecked { call: "call_p".into(), verdict, advisory: Vec::new() });
        journal.then(Event::Expired { call: "call_p".into() });
        journal.resumes();
        journal.model_says("There was no answer.");
        journal.completes("There was no answer.");
        spans(&journal, SpanContent::default())
    };
    let ask = CallVerdict::Ask {
        rule: None,
        reason: "private".into(),
        policy: None,
        answer_timeout_s: Some(1),
        on_timeout: OnTimeout::Expire,
        may_be_denied: false,
    };
    let told = ended_late("mcp_files_read", ask);
    let expired = named(&told, "approval");
    assert_eq!((text(expired, "output.value"), &expired.status), ("{\"answer\":\"expired\"}", &Status::Ok));

    let told = ended_late("ext_ask_user", CallVerdict::Run { by: Authorization::Policy { rule: None, policy: None } });
    let external = named(&told, "execute_tool ext_ask_user");
    assert_eq!((text(external, "error.type"), external.start), ("expired", external.end));
    assert_eq!(attribute(external, "toolgate.wait_ms"), Some(&Value::Int(10)));
    assert!(text(external, "output.value").starts_with("The application gave no result in time"));
}

#[test]
fn denied_and_drifted_calls_have_guardrail_spans() {
    let mut journal = Journal::start("guarded", 19, START, |_| {});
    journal.lists_tools();
    journal.model_calls([
        ToolCall::new("call_q", "mcp_files_read", json!({ "path": "/secret" })),
        ToolCall::new("call_r", "mcp_weather_today", json!({ "city": "Oslo" })),
    ]);
    journal.selects(0, &["call_q", "call_r"], &[]);
    let verdict =
        CallVerdict::Rejected { reason: Rejection::Denied, message: "files are private".into(), problems: Vec::new() };
    journal.then(Event::CallChecked { call: "call_q".into(), verdict, advisory: Vec::new() });
    journal.allows("call_r");
    let differences = vec![Difference::new("description", "Today's weather.", "Today's secrets.")];
    journal.then(Event::CallDrifted { call: "call_r".into(), differences, tool: None });
    let told = spans(&journal, SpanContent::default());
    let denied = named(&told, "policy");
    assert_eq!((text(denied, "toolgate.approval.answer"), &denied.status), ("deny", &Status::Ok));
    assert!(text(denied, "output.value").contains("files are private"));
    let drift = named(&told, "drift");
    assert!(text(drift, "output.value").contains("secrets"));
    let hidden = spans(&journal, SpanContent { hide_outputs: true, ..SpanContent::default() });
    assert_eq!(text(named(&hidden, "drift"), "output.value"), "__REDACTED__");
}

#[test]
fn a_secret_argument_stays_hidden_after_its_tool_is_gone() {
    let schema = json!({"type": "object", "properties": {"pin": {"type": "string", "writeOnly": true}}});
    let log_in = ExternalTool {
        name: "log_in".into(),
        description: "Logs in.".into(),
        input_schema: schema,
        result_schema: None,
        priority: 0,
        deadline_s: None,
    };
    let lists = |tools: &[ExternalTool]| {
        let rules = ToolsetRules { policy: Arc::new(Policy::allow_always()), ..ToolsetRules::default() };
        Event::ToolsListed { toolset: Arc::new(Toolset::assemble(tools, &[], &rules)) }
    };
    let mut journal = Journal::start("marked", 16, START, |_| {});
    journal.then(lists(&[log_in]));
    journal.model_calls([ToolCall::new("call_in", "ext_log_in", json!({ "pin": "4711-marked" }))]);
    journal.selects(0, &["call_in"], &[]);
    journal.allows("call_in");
    journal.settles("call_in", Outcome::Returned(ToolOutput::text("Welcome.")));
    journal.resumes();
    journal.then(lists(&[]));
    journal.model_says("You are in.");
    journal.completes("You are in.");

    let content = SpanContent { gen_ai_content: true, ..SpanContent::default() };
    let mut projector = Projector::new(journal.run.clone(), content, Arc::new(journals::identity));
    let told: Vec<Span> = journal.events.iter().flat_map(|recorded| projector.observe(recorded)).collect();

    assert_eq!(told.iter().filter(|span| span.name.starts_with("chat ")).count(), 2);
    let told = serde_json::to_string(&told).unwrap();
    assert!(told.contains("__REDACTED__") && !told.contains("4711-marked"), "{told}");
}

#[test]
fn the_root_of_a_compaction_is_marked_as_one() {
    let mut journal = journals::plain_answer(START);
    let Event::Started(started) = &mut journal.events[0].event else { panic!("not started") };
    Arc::make_mut(started).trigger = Trigger::Compaction;
    let spans = spans(&journal, SpanContent::default());
    assert_eq!(text(named(&spans, "invoke_agent assistant"), "toolgate.operation"), "compaction");
}

#[test]
fn the_principal_of_a_run_is_the_user_of_its_spans() {
    let mut journal = Journal::start("principal", 19, START, |spec| spec.principal = Some("ada".into()));
    journal.lists_no_tools();
    journal.model_says("Hello.");
    journal.completes("Hello.");
    let spans = spans(&journal, SpanContent::default());
    assert!(spans.iter().all(|span| text(span, "user.id") == "ada"));
}

#[test]
fn the_echo_of_a_secret_argument_is_in_no_span() {
    let redaction = Redaction::new(USUAL_NAMES, SecretsBuilder::default()).unwrap();
    let content = SpanContent { gen_ai_content: true, ..SpanContent::default() };
    let mut journal = Journal::start("echo", 18, START, |_| {});
    journal.lists_tools();
    let arguments = json!({ "city": "Oslo", "password": "hunter2", "login": { "pin": 4711, "api_key": "k-12345678" } });
    journal.model_calls([ToolCall::new("call_e", "mcp_weather_today", arguments)]);
    journal.selects(0, &["call_e"], &[]);
    journal.allows("call_e");
    journal.sends(&["call_e"]);
    journal.settles("call_e", Outcome::Returned(ToolOutput::error("hunter2 with 4711 and k-12345678 is wrong")));
    journal.model_says("Neither hunter2 nor 4711 is right.");
    journal.completes("Neither hunter2 nor 4711 is right.");

    let mut projector = Projector::new(journal.run.clone(), content, Arc::new(journals::identity)).redacting(redaction);
    let told: Vec<Span> = journal.events.iter().flat_map(|recorded| projector.observe(recorded)).collect();

    let told = serde_json::to_string(&told).unwrap();
    assert!(told.contains("Neither __REDACTED__ nor __REDACTED__ is right."), "{told}");
    for secret in ["hunter2", "4711", "k-12345678"] {
        assert!(!told.contains(secret), "{secret} in {told}");
    }
}

#[test]
fn a_spoken_secret_is_in_no_span() {
    let redaction = || Redaction::new(USUAL_NAMES, SecretsBuilder::of_values(["Oslo-and-Graz"])).unwrap();
    let content = SpanContent { gen_ai_content: true, ..SpanContent::default() };
    let mut journal = Journal::start("secret", 17, START, |_| {});
    journal.lists_tools();
    let cities = ["first Oslo-and-Graz", "password: Oslo-and-Graz", "{\"api_key\": \"hunter2\"}"];
    for (turn, city) in cities.into_iter().enumerate() {
        let id = format!("call_{turn}");
        journal.model_calls([ToolCall::new(id.as_str(), "mcp_weather_today", json!({ "city": city }))]);
        journal.selects(0, &[&id], &[]);
        journal.allows(&id);
        journal.sends(&[&id]);
        journal.settles(&id, Outcome::Returned(ToolOutput::text(city)));
    }
    journal.model_says("Oslo-and-Graz");
    journal.completes("Oslo-and-Graz");
    let mut projector =
        Projector::new(journal.run.clone(), content, Arc::new(journals::identity)).redacting(redaction());
    let told: Vec<Span> = journal.events.iter().flat_map(|recorded| projector.observe(recorded)).collect();
    let told = serde_json::to_string(&told).unwrap();
    assert!(told.matches("__REDACTED__").count() > 20, "{told}");
    assert!(!told.contains("Oslo-and-Graz") && !told.contains("hunter2"), "{told}");
}
