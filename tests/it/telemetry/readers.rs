//! What those who read traces look for, each in its own vocabulary: a span that lacks it is shown empty, as of no known
//! kind, or not at all. Every span of every journal is looked at as each of them does it.

use jiff::Timestamp;
use serde_json::Value as Json;
use toolgate::telemetry::spans::{Span, SpanContent, Status, Value};

use super::journals;
use super::spans::{attribute, spans, text};

/// The spans of all journals.
fn told(content: SpanContent) -> Vec<Span> {
    let journals = journals::all(Timestamp::UNIX_EPOCH);
    journals.iter().flat_map(|journal| spans(journal, content)).collect()
}

fn kind(span: &Span) -> &str {
    text(span, "openinference.span.kind")
}

fn of_kind<'a>(told: &'a [Span], wanted: &str) -> Vec<&'a Span> {
    let found: Vec<_> = told.iter().filter(|span| kind(span) == wanted).collect();
    assert!(!found.is_empty(), "no journal has a span of kind {wanted}");
    found
}

/// A text that readers parse.
fn parsed(span: &Span, name: &str) -> Json {
    serde_json::from_str(text(span, name)).unwrap_or_else(|error| panic!("{name} of {}: {error}", span.name))
}

fn list<'a>(json: &'a Json, name: &str) -> &'a [Json] {
    json[name].as_array().unwrap_or_else(|| panic!("no list {name} in {json}"))
}

fn int(span: &Span, name: &str) -> Option<i64> {
    match attribute(span, name)? {
        Value::Int(number) => Some(*number),
        other => panic!("{name} of {} is {other:?}", span.name),
    }
}

/// Phoenix and Arize go by OpenInference's kind, and draw a span by its input and output.
#[test]
fn phoenix_knows_the_kind_of_every_span_and_shows_what_went_in_and_what_came_of_it() {
    for span in told(SpanContent::default()) {
        assert!(["AGENT", "LLM", "TOOL", "GUARDRAIL", "CHAIN"].contains(&kind(&span)), "{}", span.name);
        assert!(!text(&span, "input.value").is_empty(), "{} has an input", span.name);
        if span.status == Status::Ok {
            assert!(attribute(&span, "output.value").is_some(), "{} has an output", span.name);
        }
        for side in ["input", "output"] {
            let (value, mime) = (format!("{side}.value"), format!("{side}.mime_type"));
            assert_eq!(attribute(&span, &value).is_some(), attribute(&span, &mime).is_some(), "{} {side}", span.name);
        }
    }
}

/// It prices a call by the name of the model and the tokens of each kind, of which cached ones are a part of the prompt.
#[test]
fn phoenix_can_price_every_answer_of_a_model() {
    let mut priced = 0;
    for span in of_kind(&told(SpanContent::default()), "LLM") {
        assert!(!text(span, "llm.system").is_empty() && !text(span, "llm.provider").is_empty());
        assert!(!text(span, "llm.model_name").is_empty());
        let tokens = |name| int(span, name);
        let Some(prompt) = tokens("llm.token_count.prompt") else { continue };
        let completion = tokens("llm.token_count.completion").expect("both are known");
        assert_eq!(tokens("llm.token_count.total"), Some(prompt + completion));
        assert!(tokens("llm.token_count.prompt_details.cache_read").is_some_and(|cached| cached <= prompt));
        assert!(tokens("llm.token_count.completion_details.reasoning").is_some_and(|thought| thought <= completion));
        priced += 1;
    }
    assert!(priced > 10, "{priced}");
}

/// Langfuse takes input and output of a trace from its root, and lists traces by them.
#[test]
fn langfuse_finds_input_and_output_of_a_trace_on_its_root_however_the_run_ended() {
    let told = told(SpanContent::default());
    for root in of_kind(&told, "AGENT") {
        assert!(!text(root, "input.value").is_empty());
        assert!(!text(root, "output.value").is_empty(), "{}", text(root, "toolgate.run.outcome"));
    }
    let ended = |outcome| move |root: &&&Span| text(root, "toolgate.run.outcome") == outcome;
    for (outcome, code) in [("failed", "provider_auth"), ("cancelled", "cancelled")] {
        let roots = of_kind(&told, "AGENT");
        let output = parsed(roots.iter().find(ended(outcome)).expect(outcome), "output.value");
        assert_eq!((&output["status"], &output["error"]["code"]), (&outcome.into(), &code.into()));
    }
}

/// It renders a conversation from `input.value` alone, which wins over the messages one by one.
#[test]
fn langfuse_draws_the_input_of_a_model_as_a_conversation_with_its_tools() {
    for span in of_kind(&told(SpanContent::default()), "LLM") {
        let input = parsed(span, "input.value");
        for message in list(&input, "messages") {
            let role = message["role"].as_str().expect("a role");
            assert!(["system", "user", "assistant", "tool"].contains(&role), "{role}");
            assert_eq!(role == "tool", message["tool_call_id"].is_string(), "{message}");
            assert!(message["content"].is_string() || message["content"].is_null(), "{message}");
        }
        for tool in list(&input, "tools") {
            assert_eq!(tool["type"], "function");
            assert!(tool["function"]["name"].is_string() && tool["function"]["parameters"].is_object(), "{tool}");
        }
        assert_eq!(text(span, "input.mime_type"), "application/json");
    }
}

/// It reads usage once, from either vocabulary, and the cost as it is told.
#[test]
fn langfuse_reads_the_same_usage_in_both_vocabularies_and_the_cost_beside_it() {
    for span in of_kind(&told(SpanContent::default()), "LLM") {
        for (open_inference, gen_ai) in [
            ("prompt", "input_tokens"),
            ("completion", "output_tokens"),
            ("prompt_details.cache_read", "cache_read.input_tokens"),
            ("prompt_details.cache_write", "cache_creation.input_tokens"),
            ("completion_details.reasoning", "reasoning.output_tokens"),
        ] {
            let (one, other) = (format!("llm.token_count.{open_inference}"), format!("gen_ai.usage.{gen_ai}"));
            assert_eq!(int(span, &one), int(span, &other), "{one} and {other} of {}", span.name);
        }
        if int(span, "gen_ai.usage.input_tokens").is_some() {
            assert!(matches!(attribute(span, "llm.cost.total"), Some(Value::Float(cost)) if *cost > 0.0));
        }
    }
}

/// All of them put runs together by the session, some by one name of it and some by the other.
#[test]
fn every_span_names_its_session_for_every_reader() {
    for span in told(SpanContent::default()) {
        assert_eq!(text(&span, "session.id"), "session_1", "{}", span.name);
        assert_eq!(text(&span, "gen_ai.conversation.id"), "session_1", "{}", span.name);
    }
}

/// PostHog, Logfire, Grafana, SigNoz and Datadog go by the GenAI conventions; without an operation they show nothing. The
/// conventions have none for a guardrail or a listing, and a made-up one would be counted as a call of a model.
#[test]
fn readers_of_the_gen_ai_conventions_know_every_operation_that_these_have_a_name_for() {
    for span in told(SpanContent::default()) {
        let operation = match kind(&span) {
            "AGENT" => Some("invoke_agent"),
            "LLM" => Some("chat"),
            "TOOL" => Some("execute_tool"),
            _ => None,
        };
        let said = attribute(&span, "gen_ai.operation.name").map(|_| text(&span, "gen_ai.operation.name"));
        assert_eq!(said, operation, "{}", span.name);
        let subject = match kind(&span) {
            "AGENT" => "gen_ai.agent.name",
            "LLM" => "gen_ai.request.model",
            "TOOL" => "gen_ai.tool.name",
            _ => continue,
        };
        assert_eq!(span.name, format!("{} {}", operation.expect("one of the three"), text(&span, subject)));
        if kind(&span) != "TOOL" {
            assert!(!text(&span, "gen_ai.provider.name").is_empty(), "{}", span.name);
        }
    }
}

/// Every reader adds up what it finds, so the same tokens on a call and on its agent are counted twice.
#[test]
fn tokens_and_cost_stand_on_calls_of_models_alone() {
    for span in told(SpanContent { gen_ai_content: true, ..SpanContent::default() }) {
        let is_counted = |name: &str| {
            ["llm.token_count.", "llm.cost.", "gen_ai.usage."].iter().any(|prefix| name.starts_with(prefix))
        };
        let counted: Vec<&str> =
            span.attributes.iter().map(|(name, _)| &**name).filter(|name| is_counted(name)).collect();
        assert!(kind(&span) == "LLM" || counted.is_empty(), "{} has {counted:?}", span.name);
    }
}

/// Readers that know no OpenInference take contents from here, if they are told at all.
#[test]
fn gen_ai_contents_have_the_form_of_the_conventions() {
    let told = told(SpanContent { gen_ai_content: true, ..SpanContent::default() });
    for span in of_kind(&told, "LLM") {
        let mut messages = parsed(span, "gen_ai.input.messages").as_array().expect("a list").clone();
        if attribute(span, "gen_ai.output.messages").is_some() {
            let said = parsed(span, "gen_ai.output.messages").as_array().expect("a list").clone();
            assert!(said.iter().all(|message| message["finish_reason"].is_string()), "{said:?}");
            messages.extend(said);
        }
        for message in &messages {
            assert!(message["role"].is_string(), "{message}");
            for part in list(message, "parts") {
                let kind = part["type"].as_str().expect("a type");
                let needed: &[&str] = match kind {
                    "text" | "reasoning" => &["content"],
                    "tool_call" => &["id", "name", "arguments"],
                    "tool_call_response" => &["id", "response"],
                    "uri" => &["modality", "uri"],
                    other => panic!("a part of type {other}"),
                };
                assert!(needed.iter().all(|field| !part[field].is_null()), "{part}");
            }
        }
        assert!(parsed(span, "gen_ai.tool.definitions").is_array());
        assert_eq!(parsed(span, "gen_ai.system_instructions")[0]["type"], "text");
    }
    for span in of_kind(&told, "TOOL") {
        assert!(parsed(span, "gen_ai.tool.call.arguments").is_object(), "{}", span.name);
    }
}
