//! What an error of this API stands for, where the status alone does not tell.

use crate::core::error::ErrorCode;
use crate::models::http::ErrorBody;

/// How the API says that the conversation does not fit the model: as an invalid request without a type of its own.
const TOO_LONG: [&str; 2] = ["prompt is too long", "exceed context limit"];

/// The code of an error. Inside a stream there is no status, so the types that nobody else uses are read here.
pub(super) fn classify(error: &ErrorBody) -> Option<ErrorCode> {
    if error.says("billing_error") {
        return Some(ErrorCode::ProviderBilling);
    }
    if error.says("request_too_large") {
        return Some(ErrorCode::ProviderRejected);
    }
    // The only place where the words of a message decide; without it a run could not tell that shortening would help.
    let text = error.text.as_deref().unwrap_or_default();
    let is_too_long = error.says("invalid_request_error") && TOO_LONG.iter().any(|words| text.contains(words));
    is_too_long.then_some(ErrorCode::ContextWindow)
}
