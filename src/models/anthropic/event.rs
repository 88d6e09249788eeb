//! API responses, as far as they are read. Content blocks stay JSON: they are kept for the replay unchanged.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::http::{ErrorBody, Fault, StopReason, read_event};

/// One event of a stream. Types that are not listed (`ping`, `content_block_stop`, future ones) hold no needed data.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Event {
    MessageStart {
        message: Answer,
    },
    ContentBlockStart {
        index: u64,
        content_block: Map<String, Value>,
    },
    ContentBlockDelta {
        index: u64,
        delta: Map<String, Value>,
    },
    MessageDelta {
        #[serde(default)]
        delta: MessageEnd,
        #[serde(default)]
        usage: Option<Value>,
    },
    MessageStop,
    Error {
        error: Value,
    },
    #[serde(other)]
    Other,
}

impl Event {
    /// Parses an event. An object without a type is an error of a proxy, or unknown.
    pub(super) fn read(json: &[u8]) -> Result<Self, Fault> {
        read_event(json).map_err(|fault| match serde_json::from_slice::<Map<String, Value>>(json) {
            Ok(event) if !event.get("type").is_some_and(Value::is_string) => {
                match event.get("error").filter(|error| !error.is_null()) {
                    Some(error) => Fault::Provider(Box::new(ErrorBody::of_error(error))),
                    None => Fault::UnknownEvent("an object without a type"),
                }
            }
            Ok(_) | Err(_) => fault,
        })
    }
}

/// A complete answer, or the empty one at the start of a stream.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Answer {
    pub(super) id: Option<String>,
    pub(super) model: Option<String>,
    pub(super) content: Option<Vec<Map<String, Value>>>,
    pub(super) stop_reason: StopReason,
    pub(super) usage: Option<Value>,
}

/// The end of a streamed answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MessageEnd {
    pub(super) stop_reason: StopReason,
}
