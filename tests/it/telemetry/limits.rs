//! What spans show of values that are too long, and which executions they report as failed.

use serde_json::json;
use toolgate::core::blob::BlobHandle;
use toolgate::core::tool::{Outcome, ToolCall, ToolOutput};
use toolgate::telemetry::spans::{SpanContent, Status, Value};

use super::journals::{self, Journal};
use super::spans::{START, attribute, spans, text};

#[test]
fn a_model_input_beyond_the_limit_stays_json_and_is_counted() {
    let mut journal = Journal::start("large", 15, START, |_| {});
    journal.lists_tools();
    journal.model_calls([ToolCall::new("call_l", "mcp_weather_today", json!({ "city": "Oslo" }))]);
    journal.selects(0, &["call_l"], &[]);
    journal.allows("call_l");
    journal.sends(&["call_l"]);
    let result = "rain, \"snow\" ".repeat(10_000);
    journal.settles("call_l", Outcome::Returned(ToolOutput::text(&result)));
    journal.model_says("It is wet.");
    journal.completes("It is wet.");

    for limit in [64 * 1024, 4096] {
        let spans = spans(&journal, SpanContent { value_bytes: limit, ..SpanContent::default() });
        let [asked, answered] = spans.iter().filter(|span| span.name.starts_with("chat")).collect::<Vec<_>>()[..]
        else {
            panic!("two model calls");
        };
        assert_eq!(attribute(asked, "toolgate.truncated_values"), None);
        let input = text(answered, "input.value");
        let read: serde_json::Value = serde_json::from_str(input).unwrap();
        let handle = format!("{} ({} bytes)", BlobHandle::for_bytes(result.as_bytes()), result.len());
        assert_eq!(read["messages"].as_array().unwrap().last().unwrap()["content"], handle);
        assert!(input.len() <= limit && text(answered, "input.mime_type") == "application/json");
        // The input, and the message by itself.
        assert_eq!(attribute(answered, "toolgate.truncated_values"), Some(&Value::Int(2)));
        let said = text(answered, "llm.input_messages.3.message.content");
        assert!(said.ends_with(&format!("[{} bytes cut by toolgate]", result.len() - limit)), "{}", &said[limit..]);
    }
}

#[test]
fn only_a_failed_or_abandoned_execution_is_an_error() {
    let root = |journal: &Journal| spans(journal, SpanContent::default()).pop().unwrap();
    let cancelled = root(&journals::cancelled(START));
    assert_eq!((&cancelled.status, text(&cancelled, "toolgate.run.outcome")), (&Status::Ok, "cancelled"));
    assert_eq!(
        (attribute(&cancelled, "error.type"), cancelled.events.iter().find(|event| event.name == "exception")),
        (None, None)
    );

    let mut abandoned = Journal::start("abandoned", 14, START, |_| {});
    abandoned.lists_tools();
    let abandoned = root(&abandoned);
    assert_eq!(text(&abandoned, "error.type"), "interrupted");
    assert!(matches!(abandoned.status, Status::Error(_)));
}
