//! Webhooks in the file of the journals, so that a run and what is to be told of it are one commit apart and never two.

pub(super) mod delivery;
pub(super) mod endpoint;
pub(super) mod outbox;

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::ports::StoreError;

/// A value as its row keeps it.
fn json(value: &impl Serialize) -> Result<String, sqlx::Error> {
    serde_json::to_string(value).map_err(|error| sqlx::Error::Encode(error.into()))
}

/// A value as its row kept it.
fn parsed<T: DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    let unreadable = |error| StoreError::Corrupt(format!("a row about webhooks is unreadable: {error}"));
    serde_json::from_str(text).map_err(unreadable)
}

fn moment(nanos: i64) -> Option<Timestamp> {
    Timestamp::from_nanosecond(nanos.into()).ok()
}
