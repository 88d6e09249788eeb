//! Tool calls as the model wrote them.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::{Map, Value};

use crate::core::chat::Part;
use crate::core::id::CallId;
use crate::core::json;

/// Id, name and arguments. The name may not exist and the arguments may not be JSON: the model corrects both by
/// feedback.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Unique within the run.
    pub id: CallId,
    /// The name the model wrote.
    pub name: String,
    /// The arguments the model wrote.
    pub arguments: Arguments,
}

/// Tool arguments: a JSON object of at most [`json::MAX_DEPTH`] levels, or malformed text, which therefore never runs.
/// In JSON an object stays an object and malformed text is a string.
#[derive(Clone, Debug, PartialEq)]
pub enum Arguments {
    /// A JSON object.
    Object(Map<String, Value>),
    /// The model's text, unparsed.
    Malformed(String),
}

impl ToolCall {
    /// A call with an argument object; any other value becomes malformed text.
    pub fn new(id: impl Into<CallId>, name: impl Into<String>, arguments: Value) -> Self {
        Self { id: id.into(), name: name.into(), arguments: Arguments::from_value(arguments) }
    }

    /// The call in a message part.
    pub fn from_part(part: &Part) -> Option<Self> {
        match part {
            Part::ToolUse { id, name, input } => {
                Some(Self { id: id.clone(), name: name.clone(), arguments: input.clone() })
            }
            Part::Text { .. }
            | Part::Image(_)
            | Part::Audio(_)
            | Part::Resource { .. }
            | Part::Reasoning { .. }
            | Part::ToolResult { .. } => None,
        }
    }

    /// The message part of this call.
    pub fn into_part(self) -> Part {
        Part::ToolUse { id: self.id, name: self.name, input: self.arguments }
    }
}

impl Arguments {
    /// Parses the model's text. An empty text means no arguments: `{}`.
    pub fn parse(text: &str) -> Self {
        if text.trim().is_empty() {
            return Self::Object(Map::new());
        }
        match serde_json::from_str(text) {
            Ok(value) if json::is_deeper_than(&value, json::MAX_DEPTH) => Self::Malformed(text.to_owned()),
            Ok(Value::Object(object)) => Self::Object(object),
            Ok(Value::Null) => Self::Object(Map::new()),
            Ok(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) | Err(_) => {
                Self::Malformed(text.to_owned())
            }
        }
    }

    /// Arguments that arrived as a JSON value.
    pub fn from_value(value: Value) -> Self {
        match value {
            Value::Object(_) if json::is_deeper_than(&value, json::MAX_DEPTH) => Self::Malformed(value.to_string()),
            Value::Object(object) => Self::Object(object),
            Value::Null => Self::Object(Map::new()),
            Value::String(text) => Self::parse(&text),
            other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_)) => Self::Malformed(other.to_string()),
        }
    }

    /// The object, unless the text is malformed.
    pub fn as_object(&self) -> Option<&Map<String, Value>> {
        match self {
            Self::Object(object) => Some(object),
            Self::Malformed(_) => None,
        }
    }

    /// SHA-256 of their canonical form (RFC 8785).
    pub fn hash(&self) -> String {
        json::hash(&self.to_value())
    }

    /// The arguments as a JSON value; malformed text is a string.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Object(object) => Value::Object(object.clone()),
            Self::Malformed(text) => Value::String(text.clone()),
        }
    }
}

impl Serialize for Arguments {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Object(object) => object.serialize(serializer),
            Self::Malformed(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for Arguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Object(object) => Ok(Self::Object(object)),
            Value::String(text) => Ok(Self::Malformed(text)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
                Err(D::Error::custom("tool arguments are an object, or a string that could not be parsed as one"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::chat::Reply;
    use crate::core::run::Event;

    fn nested(levels: usize) -> String {
        format!("{}null{}", r#"{"a":"#.repeat(levels), "}".repeat(levels))
    }

    #[test]
    fn arguments_nested_too_deep_are_malformed() {
        for levels in [json::MAX_DEPTH, json::MAX_DEPTH + 1, 126] {
            let arguments = Arguments::parse(&nested(levels));
            assert_eq!(arguments.as_object().is_some(), levels <= json::MAX_DEPTH, "{levels}");
            let call = ToolCall { id: "c".into(), name: "t".into(), arguments };
            let reply = Reply { content: vec![call.into_part()], ..Reply::text("") };
            let event = Event::ModelReplied { reply: reply.into() };
            let written = serde_json::to_string(&event).expect("written");
            assert_eq!(serde_json::from_str::<Event>(&written).expect("read"), event);
        }
    }
}
