//! Recorded provider answers, and the replies that a correct client reads from them.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;
use toolgate::core::chat::{Part, Reply, Stop};
use toolgate::core::error::{ErrorCode, Failure};
use toolgate::core::lifecycle::Delta;
use toolgate::core::tool::{Arguments, ToolCall};

#[derive(Deserialize)]
struct Index {
    fixtures: Vec<Fixture>,
}

#[derive(Deserialize)]
pub(crate) struct Fixture {
    pub(crate) id: String,
    provider: String,
    file: String,
    pub(crate) status: u16,
    pub(crate) headers: std::collections::BTreeMap<String, String>,
    /// Whether the body is an event stream.
    pub(crate) stream: bool,
    expect: Value,
}

/// The result of reading a fixture.
pub(crate) struct Outcome {
    pub(crate) reply: Result<Reply, Failure>,
    pub(crate) deltas: Vec<Delta>,
}

/// The recorded answers of these providers.
pub(crate) fn of(providers: &[&str]) -> Vec<Fixture> {
    let index = std::fs::read_to_string(folder().join("index.json")).unwrap();
    let fixtures = serde_json::from_str::<Index>(&index).unwrap().fixtures;
    fixtures.into_iter().filter(|fixture| providers.contains(&fixture.provider.as_str())).collect()
}

/// Fails with the name and the differences of every fixture that is not met.
pub(crate) fn assert_all_met(outcomes: impl IntoIterator<Item = (Fixture, Outcome)>) {
    let (mut unmet, mut count) = (Vec::new(), 0);
    for (fixture, outcome) in outcomes {
        count += 1;
        unmet.extend(
            fixture.differences(&outcome).into_iter().map(|difference| format!("{}: {difference}", fixture.id)),
        );
    }
    assert!(count > 0, "no fixture was run");
    assert!(unmet.is_empty(), "{} differences\n{}", unmet.len(), unmet.join("\n"));
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/providers")
}

impl Fixture {
    pub(crate) fn body(&self) -> Vec<u8> {
        std::fs::read(folder().join(&self.file)).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    fn differences(&self, outcome: &Outcome) -> Vec<String> {
        match (&outcome.reply, self.expect["error"].is_object()) {
            // A call that the provider itself could not parse is not a reply: the turn is retried.
            (Err(failure), false) if self.expect["stop"] == "malformed_tool_call" => {
                let mut found = Differences(Vec::new());
                found.compare("code", ErrorCode::ProviderInvalidResponse, failure.code);
                found.compare("retryable", true, failure.retryable);
                found.0
            }
            (Ok(reply), false) => self.reply_differences(reply, &outcome.deltas),
            (Err(failure), true) => self.failure_differences(failure, &outcome.deltas),
            (other, _) => vec![format!("expected {}, got {other:?}", self.expect)],
        }
    }

    fn reply_differences(&self, reply: &Reply, deltas: &[Delta]) -> Vec<String> {
        let mut found = Differences(Vec::new());
        // The neutral form of a refusal is its text and the stop reason.
        let expected_text = self.expect["refusal"].as_str().or(self.expect["text"].as_str()).unwrap();
        found.compare("text", expected_text, reply.joined_text().as_str());
        found.compare("reasoning", self.expect["reasoning"].as_str().unwrap_or(""), reasoning(reply).as_str());
        found.compare("stop", self.expect["stop"].as_str().unwrap(), stop_word(reply.stop));
        let calls: Vec<ToolCall> = reply.calls().collect();
        let expected_calls = self.expect["tool_calls"].as_array().unwrap();
        found.compare("number of calls", expected_calls.len(), calls.len());
        for (expected, call) in expected_calls.iter().zip(&calls) {
            match expected["id"].as_str().unwrap() {
                "*" => found.compare("made-up id is empty", false, call.id.as_str().is_empty()),
                id => found.compare("id", id, call.id.as_str()),
            }
            found.compare("name", expected["name"].as_str().unwrap(), call.name.as_str());
            let got = call.arguments.as_object().cloned().map_or(Value::Null, Value::Object);
            // Arguments that must not run are never an object, even if the provider's form has one.
            let is_invalid = self.expect["invalid_arguments"] == true;
            let arguments = if is_invalid { &Value::Null } else { &expected["arguments"] };
            found.compare("arguments", arguments, &got);
            if let (Some(raw), Arguments::Malformed(text)) = (self.expect["raw_arguments"].as_str(), &call.arguments) {
                found.compare("raw arguments", raw, text.as_str());
            }
        }
        self.usage_differences(reply, &mut found);
        if self.stream {
            found.compare("streamed text", reply.joined_text().as_str(), streamed_text(deltas).as_str());
        }
        found.0
    }

    /// `null` in the index means "not checked", unless the body has no usage at all.
    fn usage_differences(&self, reply: &Reply, found: &mut Differences) {
        let usage = reply.usage;
        if let Some(expected) = self.expect["usage"].as_object() {
            let got = [
                ("input", usage.input_tokens),
                ("output", usage.output_tokens),
                ("cached", usage.cache_read_tokens.or(Some(0))),
                ("cache_write", usage.cache_write_tokens.or(Some(0))),
                ("reasoning", usage.reasoning_tokens.or(Some(0))),
            ];
            for (name, got) in got {
                found.compare(name, expected[name].as_u64(), got);
            }
        } else if !["prompt_tokens", "input_tokens", "promptTokenCount"]
            .iter()
            .any(|said| String::from_utf8(self.body()).unwrap().contains(said))
        {
            found.compare("usage", toolgate::core::chat::Usage::default(), usage);
        }
    }

    fn failure_differences(&self, failure: &Failure, deltas: &[Delta]) -> Vec<String> {
        let mut found = Differences(Vec::new());
        let expected = &self.expect["error"];
        found.compare("code", error_code(expected["kind"].as_str().unwrap()), failure.code);
        found.compare("retryable", expected["retryable"].as_bool().unwrap(), failure.retryable);
        if let Some(seconds) = expected["retry_after_s"].as_u64() {
            // The finer header may be slightly below the coarse one.
            let is_right = failure.retry_after_ms.is_some_and(|ms| ms > (seconds - 1) * 1000 && ms <= seconds * 1000);
            found.compare("delay is right", true, is_right);
        }
        if let Some(partial) = self.expect["partial_text"].as_str() {
            found.compare("partial text", partial, streamed_text(deltas).as_str());
        }
        found.0
    }
}

struct Differences(Vec<String>);

impl Differences {
    fn compare<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, expected: T, got: T) {
        if expected != got {
            self.0.push(format!("{what} is {got:?}, expected {expected:?}"));
        }
    }
}

fn reasoning(reply: &Reply) -> String {
    let text = |part: &Part| match part {
        Part::Reasoning { text } => Some(text.clone()),
        _ => None,
    };
    reply.content.iter().filter_map(text).collect()
}

fn streamed_text(deltas: &[Delta]) -> String {
    let text = |delta: &Delta| match delta {
        Delta::Text { text } => Some(text.clone()),
        Delta::Reasoning { .. } | Delta::Progress { .. } => None,
    };
    deltas.iter().filter_map(text).collect()
}

fn stop_word(stop: Stop) -> &'static str {
    match stop {
        Stop::End => "end",
        Stop::ToolCalls => "tool_calls",
        Stop::MaxTokens => "max_tokens",
        Stop::ContextWindow => "context_window",
        Stop::ContentFilter => "content_filter",
        Stop::Refusal => "refusal",
        Stop::Pause => "pause",
        Stop::Unknown => "unknown",
    }
}

fn error_code(kind: &str) -> ErrorCode {
    match kind {
        "invalid_request" | "not_found" | "too_large" => ErrorCode::ProviderRejected,
        "context_window" => ErrorCode::ContextWindow,
        "auth" | "permission" => ErrorCode::ProviderAuth,
        "billing" => ErrorCode::ProviderBilling,
        "timeout" => ErrorCode::ProviderTimeout,
        "rate_limit" => ErrorCode::ProviderRateLimit,
        "overloaded" | "server" => ErrorCode::ProviderUnavailable,
        "invalid_response" | "stream_truncated" | "stream_malformed" => ErrorCode::ProviderInvalidResponse,
        other => panic!("the index has a kind of error that this test does not know: {other}"),
    }
}
