//! Webhooks in the same file as the journals, so that an event and its announcement cannot get lost between two
//! databases.

pub(super) mod delivery;
pub(super) mod endpoint;
pub(super) mod outbox;

use rusqlite::Error;
use serde::Serialize;
use serde::de::DeserializeOwned;
use toolgate_ports::StoreError;

/// Serializes a value for its column.
fn json(value: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| Error::ToSqlConversionFailure(error.into()))
}

/// Parses the value of a column.
fn parsed<T: DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    let unreadable = |error| StoreError::Corrupt(format!("a webhook row is unreadable: {error}"));
    serde_json::from_str(text).map_err(unreadable)
}
