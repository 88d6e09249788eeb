//! Spans of complete journals, and the laws that hold for all of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;
use toolgate::core::chat::{Message, Part, Reply, Usd};
use toolgate::core::run::{Event, JournalEntry, Run, ToolAccess, Trigger, labels};
use toolgate::core::tool::{Outcome, ToolCall, ToolOutput};
use toolgate::telemetry::spans::{IdentityOf, Kind, Projector, Span, SpanContent, Status, Value, project};

use super::journals::{self, Journal};
use super::review::Review;

pub(super) const START: Timestamp = Timestamp::UNIX_EPOCH;

pub(super) fn identities() -> IdentityOf {
    Arc::new(journals::identity)
}

pub(super) fn spans(journal: &Journal, content: SpanContent) -> Vec<Span> {
    project(&journal.run, &journal.events, content, identities())
}

pub(super) fn attribute<'a>(span: &'a Span, name: &str) -> Option<&'a Value> {
    span.attributes.iter().find(|(known, _)| **known == *name).map(|(_, value)| value)
}

pub(super) fn text<'a>(span: &'a Span, name: &str) -> &'a str {
    match attribute(span, name) {
        Some(Value::Text(text)) => text,
        other => panic!("{name} of {} is {other:?}", span.name),
    }
}

pub(super) fn named<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("no span {name}"))
}

#[test]
fn every_kind_of_run_has_its_spans() {
    let mut review = Review::default();
    for journal in journals::all(START) {
        let text: Vec<_> =
            spans(&journal, SpanContent::default()).iter().map(|span| review.text(&journal.run, span)).collect();
        insta::assert_snapshot!(format!("spans_{}", journal.run), text.join("\n"));
    }
}

#[test]
fn gen_ai_content_adds_the_messages_in_parts() {
    let content = SpanContent { gen_ai_content: true, ..SpanContent::default() };
    let told: BTreeMap<String, Value> = spans(&journals::parallel_calls(START), content)
        .into_iter()
        .flat_map(|span| span.attributes.into_iter().map(move |(name, value)| (format!("{} {name}", span.name), value)))
        .filter(|(name, _)| name.contains("messages") || name.contains("instructions") || name.contains("tool.call."))
        .filter(|(name, _)| name.contains(" gen_ai."))
        .collect();
    insta::assert_yaml_snapshot!(told);
}

#[test]
fn hidden_content_is_in_no_span() {
    let content = SpanContent { hide_inputs: true, hide_outputs: true, gen_ai_content: true, ..SpanContent::default() };
    for journal in journals::all(START) {
        let told = serde_json::to_string(&spans(&journal, content)).unwrap();
        for said in [
            "A question",
            "the provider says no",
            "Oslo",
            "/nowhere",
            "celsius",
            "sunny",
            "Tuesday",
            "Which day",
            "Graz",
            "Paris",
            "media://",
            "lunch",
        ] {
            assert!(!told.contains(said), "{said} in {told}");
        }
    }
}

#[test]
fn spans_can_show_only_the_last_turn() {
    let content = SpanContent { last_turn_only: true, ..SpanContent::default() };
    let mut shortened = 0;
    for journal in journals::all(START) {
        let (whole, spans) = (spans(&journal, SpanContent::default()), spans(&journal, content));
        for (whole, span) in whole.iter().zip(&spans).filter(|(span, _)| text(span, "openinference.span.kind") == "LLM")
        {
            let roles = |span: &Span| -> Vec<String> {
                let named = span.attributes.iter().filter(|(name, _)| name.starts_with("llm.input_messages."));
                let roles = named.filter(|(name, _)| name.ends_with(".message.role"));
                roles.map(|(name, _)| text(span, name).to_owned()).collect()
            };
            let (all, shown) = (roles(whole), roles(span));
            let last_turn = all.iter().rposition(|role| role == "assistant").unwrap_or(0);
            let expected: Vec<_> =
                all.iter().take(1).filter(|role| *role == "system").chain(&all[last_turn..]).collect();
            if last_turn > 0 {
                assert_eq!(shown.iter().collect::<Vec<_>>(), expected, "{}", span.name);
                assert!(attribute(span, "toolgate.llm.messages_left_out").is_some(), "{}", span.name);
                shortened += 1;
            } else {
                assert_eq!((&shown, attribute(span, "toolgate.llm.messages_left_out")), (&all, None));
            }
        }
    }
    assert!(shortened > 3, "{shortened}");
}

#[test]
fn attributes_are_unique_and_children_lie_inside_their_root() {
    for journal in journals::all(START) {
        let spans = spans(&journal, SpanContent { gen_ai_content: true, ..SpanContent::default() });
        for span in &spans {
            let names: std::collections::BTreeSet<&str> = span.attributes.iter().map(|(name, _)| &**name).collect();
            assert_eq!(names.len(), span.attributes.len(), "{}", span.name);
            let Some(parent) = span.parent else { continue };
            let root = spans.iter().find(|root| root.trace == span.trace && root.id == parent.id).expect("its root");
            assert!(root.start <= span.start && span.end <= root.end, "{} exceeds its root", span.name);
            assert!(span.events.iter().all(|event| span.start <= event.at && event.at <= span.end));
        }
    }
}

#[test]
fn live_spans_equal_those_of_the_journal() {
    for journal in journals::all(START) {
        let whole = spans(&journal, SpanContent::default());
        let mut live = Vec::new();
        let mut projector = Projector::new(journal.run.clone(), SpanContent::default(), identities());
        for (index, recorded) in journal.events.iter().enumerate() {
            live.extend(projector.observe(recorded));
            live.extend(projector.observe(recorded));
            let waits = journal.events.get(index + 1).is_some_and(|next| match &next.event {
                Event::Resumed { .. } => true,
                Event::CallCompleted { call, .. } => call.as_str() == "call_d",
                Event::ApprovalDecided { .. } => true,
                _ => false,
            });
            if waits && projector.is_executing() {
                live.extend(projector.pause());
            }
        }
        let different = live.iter().zip(&whole).find(|(live, whole)| live != whole);
        assert_eq!(different, None, "{}", journal.run);
        assert_eq!(live.len(), whole.len(), "{}", journal.run);
        assert!(!projector.is_executing());
    }
}

#[test]
fn a_process_that_catches_up_sends_only_its_own_execution() {
    let journal = journals::external_result(START);
    let resumed = journal.events.iter().position(|event| matches!(event.event, Event::Resumed { .. })).unwrap();
    let (past, own) = journal.events.split_at(resumed);
    let names: Vec<String> = told_after(&journal, past, own).into_iter().map(|span| span.name).collect();
    assert_eq!(names, ["execute_tool ext_ask_user", "chat gpt-5-mini", "invoke_agent assistant"]);
}

/// The spans of a process that resumes the run after `past`, whose spans were exported, and drives it through `own`.
fn told_after(journal: &Journal, past: &[JournalEntry], own: &[JournalEntry]) -> Vec<Span> {
    let projector = Projector::new(journal.run.clone(), SpanContent::default(), identities());
    let mut projector = projector.from(past.len() as u64);
    assert_eq!(past.iter().flat_map(|recorded| projector.observe(recorded)).collect::<Vec<_>>(), vec![]);
    let mut told: Vec<Span> = own.iter().flat_map(|recorded| projector.observe(recorded)).collect();
    if !own.is_empty() && projector.is_executing() {
        told.extend(projector.pause());
    }
    told
}

#[test]
fn a_run_resumed_by_several_processes_has_each_root_once() {
    let mut journal = Journal::start("partial", 11, START, |_| {});
    journal.lists_tools();
    journal.model_calls(["call_k", "call_l"].map(|id| ToolCall::new(id, "ext_ask_user", json!({}))));
    journal.selects(0, &["call_k", "call_l"], &[]);
    journal.allows("call_k");
    journal.allows("call_l");
    let first = journal.events.len();
    journal.resumes();
    journal.settles("call_k", Outcome::Returned(ToolOutput::text("yes")));
    let second = journal.events.len();
    journal.resumes();
    journal.settles("call_l", Outcome::Returned(ToolOutput::text("no")));
    journal.model_says("Yes and no.");
    journal.completes("Yes and no.");

    let events = &journal.events;
    let mut told = told_after(&journal, &[], &events[..first]);
    told.extend(told_after(&journal, &events[..first], &events[first..second]));
    told.extend(told_after(&journal, &events[..second], &events[second..]));
    let ids = |spans: &[Span]| spans.iter().map(|span| (span.trace, span.id)).collect::<Vec<_>>();
    assert_eq!(ids(&told), ids(&spans(&journal, SpanContent::default())));
    let outcomes = told.iter().filter(|span| span.parent.is_none()).map(|root| text(root, "toolgate.run.outcome"));
    assert_eq!(outcomes.collect::<Vec<_>>(), ["pending", "pending", "completed"]);
}

#[test]
fn recovery_sends_the_interrupted_spans_and_no_finished_ones() {
    let mut journal = Journal::start("died", 12, START, |_| {});
    journal.lists_tools();
    journal.model_calls([ToolCall::new("call_m", "mcp_weather_today", json!({ "city": "Oslo" }))]);
    journal.selects(0, &["call_m"], &[]);
    journal.allows("call_m");
    journal.sends(&["call_m"]);
    let died = journal.events.len();
    journal.resumes();
    journal.settles("call_m", Outcome::Unknown);
    journal.model_says("I do not know.");
    journal.completes("I do not know.");

    let (past, own) = journal.events.split_at(died);
    let told = told_after(&journal, past, own);
    let names: Vec<&str> = told.iter().map(|span| span.name.as_str()).collect();
    let [call, dead, _, alive] = &told[..] else { panic!("{names:?}") };
    assert_eq!((call.trace, call.parent.map(|parent| parent.id)), (dead.trace, Some(dead.id)));
    assert_eq!((text(call, "error.type"), text(dead, "toolgate.run.outcome")), ("interrupted", "interrupted"));
    assert!(matches!(call.status, Status::Error(_)), "the call has no outcome");
    assert_eq!((&dead.status, attribute(dead, "error.type")), (&Status::Ok, None), "the run goes on");
    assert_eq!((alive.links[0].trace, alive.links[0].span), (dead.trace, dead.id));

    let driver_that_gave_up = told_after(&journal, &[], past);
    assert_eq!(driver_that_gave_up.iter().filter(|span| span.parent.is_none()).count(), 0, "its successor sends it");
}

#[test]
fn a_fork_sends_only_its_own_spans_and_links_back() {
    let source = journals::plain_answer(START);
    let mut fork = journals::plain_answer(START);
    let at = 3;
    fork.events.truncate(at);
    let Event::Started(started) = &mut fork.events[0].event else { panic!("not started") };
    Arc::make_mut(started).trigger =
        Trigger::Fork { run: source.run.clone(), at: at as u64, authors: Default::default() };
    fork.resumes();
    fork.then(Event::MessageAdded { message: Message::user("In French, please.") });
    fork.asks_model("main", 2, ToolAccess::Enabled);
    fork.then(Event::ModelReplied { reply: Arc::new(Reply::text("Paris.")) });
    fork.completes("Paris.");

    let told = spans(&fork, SpanContent::default());
    let names: Vec<&str> = told.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["chat gpt-5-mini", "invoke_agent assistant"]);
    let copied = spans(&source, SpanContent::default());
    let copied = named(&copied, "invoke_agent assistant");
    assert_eq!((told[1].links[0].trace, told[1].links[0].span), (copied.trace, copied.id));
    assert_eq!(text(&told[1], "toolgate.run.forked_from"), "run_plain");
    assert_eq!(attribute(&told[1], "toolgate.run.resumed"), Some(&Value::Bool(false)), "its first execution");
    assert_eq!(text(&told[1], "input.value"), "In French, please.");
}

#[test]
fn a_resumed_root_has_as_input_what_was_given() {
    for (journal, given) in [
        (
            journals::external_result(START),
            json!({"answers": [{"call_id": "call_d", "tool": "ext_ask_user", "result": "Tuesday"}]}),
        ),
        (
            journals::approved_call(START),
            json!({"answers": [{"call_id": "call_e", "tool": "mcp_files_read", "decision": {
                "answer": "approve", "by": "ann", "scope": "once", "reason": null, "edited": false}}]}),
        ),
    ] {
        let spans = spans(&journal, SpanContent::default());
        let inputs = spans.iter().filter(|span| span.parent.is_none()).map(|root| text(root, "input.value"));
        assert_eq!(inputs.collect::<Vec<_>>(), ["A question.", &given.to_string()]);
    }
}

#[test]
fn a_pause_of_an_idle_run_is_on_the_root_that_follows() {
    let mut journal = Journal::start("paused_idle", 14, START, |_| {});
    journal.lists_tools();
    journal.model_calls([ToolCall::new("call_p", "ext_ask_user", json!({}))]);
    journal.selects(0, &["call_p"], &[]);
    journal.allows("call_p");
    journal.then(Event::Paused { by: "ann".into(), via: Default::default(), reason: None });
    journal.settles("call_p", Outcome::Returned(ToolOutput::text("yes")));
    journal.resumes();
    journal.then(Event::Unpaused { by: "ann".into(), via: Default::default(), limits: None });
    journal.model_says("Yes.");
    journal.completes("Yes.");
    let spans = spans(&journal, SpanContent::default());
    let roots = spans.iter().filter(|span| span.parent.is_none());
    let events = |root: &Span| root.events.iter().any(|event| event.name == "execution.paused");
    assert_eq!(roots.map(events).collect::<Vec<_>>(), [false, true]);
}

#[test]
fn failed_validations_say_why_unless_content_is_hidden() {
    let hidden = SpanContent { hide_outputs: true, ..SpanContent::default() };
    for (content, told) in [
        (
            SpanContent::default(),
            json!([{"path": "", "rule": "required", "message": "\"n\" is a required property", "received": {"m": 1}}]),
        ),
        (hidden, json!([{"path": "", "rule": "required"}])),
    ] {
        let spans = spans(&journals::mended_output(START), content);
        let root = spans.iter().find(|span| span.parent.is_none()).unwrap();
        let failed = root.events.iter().find(|event| event.name == "validation.failed").unwrap();
        let problems = failed.attributes.iter().find(|(name, _)| **name == *"toolgate.problems").unwrap();
        assert_eq!(problems.1, Value::Text(told.to_string().into()));
    }
}

#[test]
fn a_model_call_shows_the_messages_of_its_own_time() {
    for journal in journals::all(START) {
        let told = spans(&journal, SpanContent::default());
        for (index, recorded) in journal.events.iter().enumerate() {
            let Event::ModelReplied { .. } = &recorded.event else { continue };
            let before = journal.events[..index].iter().map(|recorded| &recorded.event);
            let run = Run::replay(before).unwrap().unwrap();
            let span = told.iter().find(|span| span.id == run.model_context().span).expect("its span");
            let chat: serde_json::Value = serde_json::from_str(text(span, "input.value")).unwrap();
            let shown = chat["messages"].as_array().unwrap().iter();
            let shown: Vec<&str> = shown.skip(1).filter_map(|message| message["content"].as_str()).collect();
            let parts = run.transcript().iter().flat_map(|message| &message.content);
            let sent: Vec<String> = parts.filter_map(said).collect();
            assert_eq!(shown.len(), sent.len(), "{}: {shown:?} {sent:?}", journal.run);
            for (shown, sent) in shown.iter().zip(&sent) {
                assert!(
                    shown.trim_start_matches("Error: ") == sent.replace('\0', ""),
                    "{}: {shown} {sent}",
                    journal.run
                );
            }
        }
    }
}

/// The text of a part that is a message of its own in a trace.
fn said(part: &Part) -> Option<String> {
    match part {
        Part::Text { text } => Some(text.clone()),
        Part::ToolResult { content, .. } => Some(content.iter().filter_map(Part::as_text).collect()),
        Part::Reasoning { .. } => Some(String::new()),
        _ => None,
    }
}

#[test]
fn span_ids_equal_those_that_the_driver_sends() {
    let journal = journals::parallel_calls(START);
    let Event::Started(started) = &journal.events[0].event else { panic!("not started") };
    let spans = spans(&journal, SpanContent::default());
    let trace = &started.trace;
    assert_eq!(named(&spans, "invoke_agent assistant").id, trace.span(&labels::execution(0)));
    assert_eq!(named(&spans, "chat gpt-5-mini").id, trace.span(&labels::model_call(2)));
    assert_eq!(named(&spans, "execute_tool mcp_weather_today").id, trace.span(&labels::tool_call(&"call_a".into(), 0)));
}

#[test]
fn each_sending_of_a_suspended_call_has_its_own_span() {
    let spans = spans(&journals::suspended(START), SpanContent::default());
    let sent: Vec<&Span> = spans.iter().filter(|span| span.name == "execute_tool mcp_weather_today").collect();
    let [asked, taken_on, done] = sent[..] else { panic!("{} spans of the call", sent.len()) };
    assert_eq!((text(asked, "toolgate.tool.suspended"), &asked.status), ("input_required", &Status::Ok));
    assert_eq!((text(taken_on, "toolgate.tool.suspended"), &taken_on.status), ("task", &Status::Ok));
    assert_eq!(text(done, "output.value"), "rain");
    let ids: std::collections::BTreeSet<String> =
        spans.iter().map(|span| format!("{:?}", (span.trace, span.id))).collect();
    assert_eq!(ids.len(), spans.len());
}

#[test]
fn a_failed_tool_is_an_error_with_the_models_text() {
    let spans = spans(&journals::parallel_calls(START), SpanContent::default());
    let failed = named(&spans, "execute_tool mcp_files_read");
    assert_eq!(failed.status, Status::Error("no such file: /nowhere".into()));
    assert_eq!(text(failed, "error.type"), "tool_error");
    assert_eq!(text(failed, "output.value"), "no such file: /nowhere");
    assert_eq!(failed.events[0].name, "exception");
    assert_eq!(named(&spans, "invoke_agent assistant").status, Status::Ok, "the run recovered");
}

#[test]
fn a_resumed_execution_is_a_trace_of_its_own_that_links_back() {
    let spans = spans(&journals::external_result(START), SpanContent::default());
    let roots: Vec<&Span> = spans.iter().filter(|span| span.parent.is_none()).collect();
    let [first, second] = roots[..] else { panic!("{} roots", roots.len()) };
    assert_ne!(first.trace, second.trace);
    assert_eq!((second.links[0].trace, second.links[0].span), (first.trace, first.id));
    assert_eq!(text(first, "toolgate.run.outcome"), "pending");
    assert_eq!(text(second, "toolgate.run.outcome"), "completed");
    let external = named(&spans, "execute_tool ext_ask_user");
    assert_eq!((external.trace, external.kind), (second.trace, Kind::Internal));
    assert_eq!(external.start, external.end);
}

#[test]
fn the_resumed_execution_sends_the_spans_of_the_pause() {
    let journal = journals::external_result(START);
    let resumed = journal.events.iter().position(|event| matches!(event.event, Event::Resumed { .. })).unwrap();
    let mut projector = Projector::new(journal.run.clone(), SpanContent::default(), identities());
    let mut first: Vec<Span> =
        journal.events[..resumed].iter().flat_map(|recorded| projector.observe(recorded)).collect();
    first.extend(projector.pause());
    let second: Vec<Span> = journal.events[resumed..].iter().flat_map(|recorded| projector.observe(recorded)).collect();
    let external = |spans: &[Span]| spans.iter().filter(|span| span.name == "execute_tool ext_ask_user").count();
    assert_eq!((external(&first), external(&second)), (0, 1));
    assert!(text(named(&first, "invoke_agent assistant"), "output.value").contains("call_d"), "it was pending then");
}

#[test]
fn retries_stay_inside_one_span_with_each_failure() {
    let spans = spans(&journals::retried(START), SpanContent::default());
    let calls: Vec<&Span> = spans.iter().filter(|span| span.name == "chat gpt-5-mini").collect();
    let [mended, failed] = calls[..] else { panic!("{} model calls", calls.len()) };
    let events: Vec<&str> = mended.events.iter().map(|event| event.name).collect();
    assert_eq!((events, &mended.status), (vec!["exception", "llm.call.retrying"], &Status::Ok));
    assert_eq!(failed.status, Status::Error("the provider says no".into()));
    assert_eq!(text(failed, "error.type"), "provider_auth");
}

#[test]
fn a_model_call_costs_the_sum_of_its_attempts_if_known() {
    let dollars = |amount| Usd::try_from(amount).ok();
    let cost_with = |failed: Option<f64>, replied: Option<f64>| {
        let mut journal = journals::retried(START);
        for recorded in &mut journal.events {
            match &mut recorded.event {
                Event::ModelFailed { usage, .. } => usage.cost_usd = failed.and_then(dollars),
                Event::ModelReplied { reply } => Arc::make_mut(reply).usage.cost_usd = replied.and_then(dollars),
                _ => {}
            }
        }
        let spans = spans(&journal, SpanContent::default());
        attribute(named(&spans, "chat gpt-5-mini"), "llm.cost.total").cloned()
    };
    assert_eq!(cost_with(Some(0.5), Some(0.25)), Some(Value::Float(0.75)));
    assert_eq!(cost_with(None, Some(0.25)), Some(Value::Float(0.25)));
    assert_eq!(cost_with(None, None), None);
}

#[test]
fn each_model_of_a_turn_has_a_span_of_its_own_under_its_own_name() {
    let journal = journals::fell_back(START);
    let spans = spans(&journal, SpanContent::default());
    let calls: Vec<&Span> = spans.iter().filter(|span| span.name.starts_with("chat ")).collect();
    let [refused, stood_in, went_on] = calls[..] else { panic!("{} model calls", calls.len()) };
    assert_eq!((refused.name.as_str(), text(refused, "error.type")), ("chat gpt-5-mini", "provider_auth"));
    for span in [stood_in, went_on] {
        assert_eq!((span.name.as_str(), &span.status), ("chat claude-haiku-4-5", &Status::Ok));
        assert_eq!(text(span, "gen_ai.provider.name"), "anthropic");
    }
    assert_eq!(text(stood_in, "toolgate.llm.instead_of"), "main");
    assert_eq!(attribute(went_on, "toolgate.llm.instead_of"), None, "no other model was called in that turn");
    assert!(refused.end <= stood_in.start);
    assert_eq!(attribute(stood_in, "toolgate.iteration"), Some(&Value::Int(1)));
}

#[test]
fn a_fallback_provider_gets_the_id_of_its_own_span() {
    let journal = journals::fell_back(START);
    let asked = journal
        .events
        .iter()
        .position(|recorded| matches!(&recorded.event, Event::ModelCalled { model, .. } if model.as_str() == "backup"));
    let run = Run::replay(journal.events[..=asked.unwrap()].iter().map(|recorded| &recorded.event)).unwrap().unwrap();
    let spans = spans(&journal, SpanContent::default());
    assert_eq!(named(&spans, "chat claude-haiku-4-5").id, run.model_context().span);
}

#[test]
fn a_run_that_is_not_sampled_has_no_spans() {
    let mut journal = journals::plain_answer(START);
    let Event::Started(started) = &mut journal.events[0].event else { panic!("not started") };
    Arc::make_mut(started).trace.sampled = false;
    assert_eq!(spans(&journal, SpanContent::default()), vec![]);
}

#[test]
fn a_model_call_lost_in_a_crash_is_interrupted() {
    let mut journal = Journal::start("crash", 10, START, |_| {});
    journal.lists_no_tools();
    journal.asks_model("main", 1, ToolAccess::Enabled);
    journal.resumes();
    journal.asks_model("main", 2, ToolAccess::Enabled);
    journal.then(Event::ModelReplied { reply: Arc::new(Reply::text("Hello.")) });
    journal.completes("Hello.");
    let spans = spans(&journal, SpanContent::default());
    let calls: Vec<&Span> = spans.iter().filter(|span| span.name == "chat gpt-5-mini").collect();
    let [lost, answered] = calls[..] else { panic!("{} model calls", calls.len()) };
    assert_eq!(text(lost, "error.type"), "interrupted");
    assert_eq!(answered.status, Status::Ok);
    assert_eq!(attribute(answered, "toolgate.iteration"), Some(&Value::Int(1)), "it is still the first turn");
}
