//! Test requests of a model check and validation of the replies. The requests are small because they cost money.

use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::core::chat::{Message, Part, Reply, Role};
use crate::core::tool::{Arguments, ExternalTool, ToolCall, Toolset, ToolsetRules};

pub(super) const FOR_TEXT: &str =
    "Name the capital of France, then count from one to ten in words, separated by commas. Say nothing else.";
pub(super) const FOR_CALL: &str = "What is the weather in Paris? Ask the tool, do not guess.";
pub(super) const FOR_CALLS: &str =
    "What is the weather in Paris and in Oslo? Ask the tool for both cities at once, in the same reply.";
pub(super) const FOR_JSON: &str = "Name the capital of France and its country: answer with a JSON object with `city` and `country`, and nothing else.";

const RESULT: &str = "21 degrees and sunny";

/// The arguments of the tool.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    #[serde(rename = "city")]
    _city: String,
}

/// The structured answer.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Capital {
    #[serde(rename = "city")]
    _city: String,
    #[serde(rename = "country")]
    _country: String,
}

/// A toolset with one weather tool.
pub(super) fn tools() -> Arc<Toolset> {
    let weather = ExternalTool {
        name: "get_weather".into(),
        description: "Says what the weather is in a city.".into(),
        input_schema: object(&["city"]),
        result_schema: None,
        priority: 0,
        deadline_s: None,
    };
    Arc::new(Toolset::assemble(&[weather], &[], &ToolsetRules::default()))
}

/// The schema of the structured answer.
pub(super) fn answer_schema() -> Value {
    object(&["city", "country"])
}

/// The problem with a call of the tool, if there is one.
pub(super) fn fault(call: &ToolCall, tools: &Toolset) -> Option<String> {
    let ToolCall { name, arguments, .. } = call;
    if tools.get(name).is_none() {
        return Some(format!("it called `{name}`, which is not available"));
    }
    let why = match arguments {
        Arguments::Malformed(_) => "they are not a JSON object".to_owned(),
        Arguments::Object(_) => read::<Question>(&arguments.to_value().to_string()).err()?,
    };
    Some(format!("the arguments {} do not fit: {why}", call_arguments(call)))
}

/// The problem with a structured answer, if there is one.
pub(super) fn misshapen(text: &str) -> Option<String> {
    read::<Capital>(text.trim()).err()
}

/// The arguments of a call as the model wrote them.
pub(super) fn call_arguments(call: &ToolCall) -> String {
    crate::cli::text::compact(&call.arguments.to_value(), 60)
}

/// Whether a text is an answer to the first question.
pub(super) fn names_capital(text: &str) -> bool {
    text.to_lowercase().contains("paris")
}

/// Whether an answer uses the result of the tool.
pub(super) fn uses_result(text: &str) -> bool {
    text.contains("21") || text.to_lowercase().contains("sunny")
}

/// The conversation after a reply with calls, with a result for each call.
pub(super) fn answered(question: &Arc<Message>, reply: &Reply) -> Vec<Arc<Message>> {
    let calls =
        Message { role: Role::Assistant, content: reply.content.clone(), provider_state: reply.provider_state.clone() };
    let result =
        |call: ToolCall| Part::ToolResult { tool_use_id: call.id, content: vec![Part::text(RESULT)], is_error: false };
    let results = Message { role: Role::User, content: reply.calls().map(result).collect(), provider_state: None };
    vec![Arc::clone(question), Arc::new(calls), Arc::new(results)]
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

fn object(texts: &[&str]) -> Value {
    let properties = texts.iter().map(|name| ((*name).to_owned(), json!({ "type": "string" })));
    let properties: serde_json::Map<String, Value> = properties.collect();
    json!({ "type": "object", "properties": properties, "required": texts, "additionalProperties": false })
}
