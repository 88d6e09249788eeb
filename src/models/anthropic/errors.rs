//! Error codes of this API, where the HTTP status alone does not decide.

use toolgate_core::error::ErrorCode;

use crate::http::ErrorBody;

/// The code of an error. Stream errors have no status, so the types that only this API uses are read here.
pub(super) fn classify(error: &ErrorBody) -> Option<ErrorCode> {
    if error.says("billing_error") {
        return Some(ErrorCode::ProviderBilling);
    }
    error.says("request_too_large").then_some(ErrorCode::ProviderRejected)
}
