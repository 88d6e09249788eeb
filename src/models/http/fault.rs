//! Invalid answers: why an answer has no reply.

use serde::de::{DeserializeOwned, IgnoredAny};

use super::ErrorBody;

/// The fault of an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    /// The server reports an error.
    #[error("the server reports an error")]
    Provider(Box<ErrorBody>),
    /// The answer cannot be parsed.
    #[error("{0}")]
    Unreadable(String),
    /// An event of a stream is JSON, and no event of the provider's API. The stream goes on after it.
    #[error("an event is {0}")]
    UnknownEvent(&'static str),
    /// The answer ended before it was complete.
    #[error("the answer was cut off: the stream ended before the model was done")]
    Truncated,
    /// The answer ends without the value that says why the model stopped.
    #[error("the answer was cut off: it ends without a `{0}`")]
    NoStopReason(&'static str),
    /// The answer announces tool calls and contains none.
    #[error("it announces a tool call (`{0}`) and contains none")]
    MissingCall(String),
    /// The answer holds no message.
    #[error("the answer holds no message ({0})")]
    NoMessage(&'static str),
}

/// Parses an event of a stream. In each API, an event is an object.
pub(crate) fn read_event<T: DeserializeOwned>(json: &[u8]) -> Result<T, Fault> {
    if json.trim_ascii_start().starts_with(b"{") {
        return read(json);
    }
    read::<IgnoredAny>(json)?;
    Err(Fault::UnknownEvent("not a JSON object"))
}

/// Parses JSON from a server. The error names the location and never quotes the value.
pub(crate) fn read<T: DeserializeOwned>(json: &[u8]) -> Result<T, Fault> {
    if let Ok(value) = serde_json::from_slice(json) {
        return Ok(value);
    }
    let mut reader = serde_json::Deserializer::from_slice(json);
    Err(Fault::Unreadable(match serde_path_to_error::deserialize::<_, T>(&mut reader) {
        Ok(_) => "there is data after the end of the JSON".into(),
        Err(error) if error.inner().is_data() => format!("{} is not of the expected type", error.path()),
        Err(error) => {
            format!("it is not JSON from column {} of line {}", error.inner().column(), error.inner().line())
        }
    }))
}
