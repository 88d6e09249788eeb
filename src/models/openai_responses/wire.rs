//! What a server sends, as far as it is read. Items stay JSON: they are sent back as they came.

use serde::Deserialize;
use serde_json::{Map, Value};

/// A response, whole or as an event of a stream holds it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Response {
    pub(super) id: Option<String>,
    pub(super) model: Option<String>,
    pub(super) status: Option<String>,
    pub(super) incomplete_details: Option<IncompleteDetails>,
    pub(super) error: Option<Value>,
    pub(super) output: Option<Vec<Value>>,
    pub(super) usage: Option<Value>,
}

/// Why a response is not complete.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct IncompleteDetails {
    pub(super) reason: Option<String>,
}

/// An event of a stream. One struct for all: which fields there are follows from `type`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event {
    pub(super) r#type: String,
    pub(super) response: Option<Response>,
    pub(super) output_index: Option<u64>,
    pub(super) summary_index: Option<u64>,
    pub(super) item: Option<Value>,
    pub(super) delta: Option<Value>,
    pub(super) error: Option<Value>,
    /// An `error` event may also be the error itself.
    pub(super) code: Option<Value>,
    pub(super) message: Option<Value>,
}

impl Event {
    /// The error that an `error` event stands for, nested or not.
    pub(super) fn into_error(self) -> Value {
        match self.error {
            Some(error @ (Value::Object(_) | Value::String(_))) => error,
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_)) | None => {
                let fields = [("code", self.code), ("message", self.message)];
                let fields = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
                Value::Object(fields.collect::<Map<_, _>>())
            }
        }
    }
}
