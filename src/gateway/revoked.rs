//! That something was taken back.

use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use crate::ports::Revoked;

/// That it was taken back.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Revoked)]
pub(super) struct RevokedView {
    /// When.
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// By whom.
    by: String,
}

impl From<Revoked> for RevokedView {
    fn from(Revoked { at, by }: Revoked) -> Self {
        Self { at, by }
    }
}
