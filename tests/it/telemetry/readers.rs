//! Trace readers: the attributes that each backend needs, in its own vocabulary. A span that lacks them is shown as
//! empty, as of unknown kind, or not at all. The tests check every span of every journal as each backend reads it.

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

/// Phoenix and Arize use OpenInference's kind, and show a span by its input and output.
#[test]
fn phoenix_knows_every_kind_and_shows_input_and_output() {
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

/// Phoenix prices a call by the model name and the tokens of each kind; cached tokens are a part of the prompt.
#[test]
fn phoenix_can_price_every_answer_of_a_model() {
    let mut priced = 0;
    for span in of_kind(&told(SpanContent::default()), "LLM") {
        assert!(!text(span, "llm.system").is_empty() && !text(span, "llm.provider").is_empty());
        assert!(!text(span, "llm.model_name").is_empty());
        let tokens = |name| int(span, name);
        let Some(prompt) = tokens("llm.token_count.prompt") else { continue };
        let completion = tokens("llm.token_count.completion").expect("both counts are known");
        assert_eq!(tokens("llm.token_count.total"), Some(prompt + completion));
        assert!(tokens("llm.token_count.prompt_details.cache_read").is_some_and(|cached| cached <= prompt));
        assert!(tokens("llm.token_count.completion_details.reasoning").is_some_and(|thought| thought <= completion));
        priced += 1;
    }
    assert!(priced > 10, "{priced}");
}

/// Langfuse takes input and output of a trace from its root, and lists traces by them.
#[test]
fn langfuse_finds_input_and_output_on_every_root() {
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

/// Langfuse renders a conversation only from `input.value`, which overrides the single messages.
#[test]
fn langfuse_renders_a_model_input_as_a_conversation() {
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

/// Langfuse reads usage once, from either vocabulary, and the cost as given.
#[test]
fn langfuse_reads_the_same_usage_in_both_vocabularies() {
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

/// All readers group runs by session, under one of its two names.
#[test]
fn every_span_names_its_session_for_every_reader() {
    for span in told(SpanContent::default()) {
        assert_eq!(text(&span, "session.id"), "session_1", "{}", span.name);
        assert_eq!(text(&span, "gen_ai.conversation.id"), "session_1", "{}", span.name);
    }
}

/// PostHog, Logfire, Grafana, SigNoz and Datadog use the GenAI conventions and ignore a span without an operation. The
/// conventions have no operation for a guardrail or a listing, and an invented one would count as a model call.
#[test]
fn gen_ai_readers_know_every_operation_of_the_conventions() {
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

/// Readers sum all counts, so the same tokens on a call and on its agent would count twice.
#[test]
fn only_model_calls_have_tokens_and_cost() {
    for span in told(SpanContent { gen_ai_content: true, ..SpanContent::default() }) {
        let is_counted = |name: &str| {
            ["llm.token_count.", "llm.cost.", "gen_ai.usage."].iter().any(|prefix| name.starts_with(prefix))
        };
        let counted: Vec<&str> =
            span.attributes.iter().map(|(name, _)| &**name).filter(|name| is_counted(name)).collect();
        assert!(kind(&span) == "LLM" || counted.is_empty(), "{} has {counted:?}", span.name);
    }
}

/// Readers without OpenInference support take the content from here, if it is present.
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
