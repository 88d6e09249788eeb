//! Arguments of tool calls.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::{Map, Value};

use crate::json;

/// Tool arguments: a JSON object of at most [`json::MAX_DEPTH`] levels, or malformed text, which therefore never runs. Text
/// with an integer that would be rounded counts as malformed: no tool gets another number than the model wrote.
/// In JSON an object stays an object and malformed text is a string.
#[derive(Clone, Debug, PartialEq)]
pub enum Arguments {
    Object(Map<String, Value>),
    /// The model's text, unparsed.
    Malformed(String),
}

impl Arguments {
    /// Parses the model's text. An empty text means no arguments: `{}`.
    pub fn parse(text: &str) -> Self {
        if text.trim().is_empty() {
            return Self::Object(Map::new());
        }
        match serde_json::from_str(text) {
            Ok(value) if json::is_deeper_than(&value, json::MAX_DEPTH) => Self::Malformed(text.to_owned()),
            Ok(Value::Object(_)) if json::inexact_integer(text).is_some() => Self::Malformed(text.to_owned()),
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

    #[test]
    fn arguments_with_an_integer_that_would_be_rounded_do_not_run() {
        for text in ["{\"n\": 12345678901234567890123}", "{\"s\": \"\\\"1\", \"n\": [-9223372036854775809]}"] {
            assert_eq!(Arguments::parse(text), Arguments::Malformed(text.to_owned()));
        }
        for text in [
            r#"{"n":18446744073709551615,"m":-9223372036854775808}"#,
            r#"{"n":1000000000000000000000}"#,
            r#"{"s":"12345678901234567890123","n":0.1,"m":1.5e300,"\u0031":1}"#,
        ] {
            assert!(Arguments::parse(text).as_object().is_some(), "{text}");
        }
    }
}
