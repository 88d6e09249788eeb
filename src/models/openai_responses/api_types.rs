//! API responses, as far as they are read. Items stay JSON: they are sent back unchanged.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::http::Fault;

/// A response, complete or as part of a stream event.
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

/// Why a response is incomplete.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct IncompleteDetails {
    pub(super) reason: Option<String>,
}

/// An event of a stream. One struct for all types: `type` decides which fields are present, and their meaning.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event {
    pub(super) r#type: String,
    pub(super) response: Option<Value>,
    pub(super) output_index: Option<Value>,
    pub(super) summary_index: Option<Value>,
    pub(super) item: Option<Value>,
    pub(super) delta: Option<Value>,
    pub(super) error: Option<Value>,
    /// An `error` event may also be the error itself.
    pub(super) code: Option<Value>,
    pub(super) message: Option<Value>,
}

impl Event {
    /// Whether another part of a summary starts.
    pub(super) fn is_further_summary(&self) -> bool {
        self.summary_index.as_ref().and_then(Value::as_u64).is_some_and(|index| index > 0)
    }

    /// The response of a final event. The event decides the status if the response has none.
    pub(super) fn into_response(self) -> Result<Response, Fault> {
        let unreadable = |_| Fault::Unreadable("`response` is not of the expected type".into());
        let response: Option<Response> = self.response.map(serde_json::from_value).transpose().map_err(unreadable)?;
        let response = response.unwrap_or_default();
        let status = response.status.or_else(|| Some(self.r#type.strip_prefix("response.")?.to_owned()));
        Ok(Response { status, ..response })
    }

    /// The error of an `error` event, nested or not.
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
