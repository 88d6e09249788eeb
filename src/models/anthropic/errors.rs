//! Error codes of this API, where the HTTP status alone does not decide.

use toolgate_core::error::ErrorCode;

use crate::http::ErrorBody;

/// The messages for a conversation that exceeds the context window: the API reports it as an invalid request without a
/// type of its own.
const TOO_LONG: [&str; 2] = ["prompt is too long", "exceed context limit"];

/// The code of an error. Stream errors have no status, so the types that only this API uses are read here.
pub(super) fn classify(error: &ErrorBody) -> Option<ErrorCode> {
    if error.says("billing_error") {
        return Some(ErrorCode::ProviderBilling);
    }
    if error.says("request_too_large") {
        return Some(ErrorCode::ProviderRejected);
    }
    // Only here the text of a message decides: otherwise a run could not know that shortening the conversation would
    // help.
    let text = error.text.as_deref().unwrap_or_default();
    let is_too_long = error.says("invalid_request_error") && TOO_LONG.iter().any(|words| text.contains(words));
    is_too_long.then_some(ErrorCode::ContextWindow)
}
