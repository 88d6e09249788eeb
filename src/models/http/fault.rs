//! Why an answer is none.

use serde::de::DeserializeOwned;

use super::ErrorBody;

/// What is wrong with an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::models) enum Fault {
    /// The server says that it failed.
    #[error("the server reports an error")]
    Provider(Box<ErrorBody>),
    /// What came cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// The answer ended before it was finished.
    #[error("the answer was cut off: the stream ended before the model was done")]
    Truncated,
    /// The answer holds none.
    #[error("the answer holds no message ({0})")]
    NoMessage(&'static str),
}

/// Reads what a server wrote. The complaint names the place and never quotes what stands there.
pub(in crate::models) fn read<T: DeserializeOwned>(json: &[u8]) -> Result<T, Fault> {
    if let Ok(value) = serde_json::from_slice(json) {
        return Ok(value);
    }
    let mut reader = serde_json::Deserializer::from_slice(json);
    Err(Fault::Unreadable(match serde_path_to_error::deserialize::<_, T>(&mut reader) {
        Ok(_) => "there is something after the end of the JSON".into(),
        Err(error) if error.inner().is_data() => format!("{} is not of the expected type", error.path()),
        Err(error) => {
            format!("it is not JSON from column {} of line {}", error.inner().column(), error.inner().line())
        }
    }))
}
