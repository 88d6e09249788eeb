//! The API view of a revocation.

use jiff::Timestamp;
use serde::Serialize;
use toolgate_core::timestamp::millis;
use toolgate_ports::Revoked;
use utoipa::ToSchema;

/// A revocation.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Revoked)]
pub(super) struct RevokedView {
    /// When it was revoked.
    #[schema(value_type = String, format = DateTime)]
    #[serde(serialize_with = "millis")]
    at: Timestamp,
    /// The caller who revoked it.
    by: String,
}

impl From<Revoked> for RevokedView {
    fn from(Revoked { at, by }: Revoked) -> Self {
        Self { at, by }
    }
}
