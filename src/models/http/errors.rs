//! Provider error classification: maps a server's error to one of our codes by its code, status and type. The text of a
//! message decides only about a context overflow that has no code. A message is passed on only from known fields and
//! only in part; other bodies may echo any data.

use toolgate_core::error::{ErrorCode, Failure};

use super::context_overflow;
use super::error_body::ErrorBody;
use super::protocol::ProviderProtocol;

const MAX_TEXT_CHARS: usize = 300;

/// The failure for an error of `server`; `status` is the HTTP status, unless it was a success.
pub(super) fn failure(
    server: &str,
    status: Option<u16>,
    body: Option<ErrorBody>,
    wire: &dyn ProviderProtocol,
) -> Failure {
    let body = body.unwrap_or_default();
    let as_code = || body.status.map(|code| format!("code {code}"));
    let status_text = status.map(|status| format!("HTTP {status}")).or_else(as_code);
    let status = status.or(body.status);
    let body = ErrorBody { status, ..body };
    let code = wire.classify(&body).unwrap_or_else(|| classify(&body));

    let mut message = format!("{server} answered with an error");
    let facts: Vec<&str> = status_text.iter().chain(&body.words).map(String::as_str).collect();
    if !facts.is_empty() {
        message.push_str(&format!(" ({})", facts.join(", ")));
    }
    // Servers quote rejected credentials when they reject them. The message about a missing permission is needed.
    let quotes_key = code == ErrorCode::ProviderAuth && status != Some(403);
    if let Some(text) = body.text.as_deref().filter(|_| !quotes_key) {
        message.push_str(": ");
        let readable = text.trim_end_matches('.').chars().map(|c| if c.is_control() { ' ' } else { c });
        message.extend(readable.take(MAX_TEXT_CHARS));
    }
    if let Some(remedy) = remedy(code, status) {
        message.push_str(&format!(". {remedy}"));
    }
    Failure::new(code, message).after_ms(body.delay_ms)
}

fn classify(body: &ErrorBody) -> ErrorCode {
    let ErrorBody { words, status, .. } = body;
    let decisive = words.iter().find_map(|word| match word.as_str() {
        // The last two are GitHub's.
        "context_length_exceeded"
        | "exceed_context_size_error"
        | "model_max_prompt_tokens_exceeded"
        | "tokens_limit_reached" => Some(ErrorCode::ContextWindow),
        "insufficient_quota" | "billing_not_active" | "billing_hard_limit_reached" => Some(ErrorCode::ProviderBilling),
        "content_filter" | "content_policy_violation" => Some(ErrorCode::ContentFilter),
        "invalid_api_key" => Some(ErrorCode::ProviderAuth),
        _ => None,
    });
    // An error without details is the server's fault.
    decisive
        .or_else(|| context_overflow::is_reported(body).then_some(ErrorCode::ContextWindow))
        .or_else(|| status.map(by_status))
        .or_else(|| words.iter().find_map(|word| by_word(word)))
        .unwrap_or(ErrorCode::ProviderUnavailable)
}

fn by_status(status: u16) -> ErrorCode {
    match status {
        401 | 403 | 407 => ErrorCode::ProviderAuth,
        402 => ErrorCode::ProviderBilling,
        // A CDN answers 524 for a server that is too slow.
        408 | 504 | 524 => ErrorCode::ProviderTimeout,
        429 => ErrorCode::ProviderRateLimit,
        409 | 425 | 500.. => ErrorCode::ProviderUnavailable,
        0..500 => ErrorCode::ProviderRejected,
    }
}

/// Words that count only without a status: servers combine `invalid_request_error` with any status.
fn by_word(word: &str) -> Option<ErrorCode> {
    match word {
        "invalid_request_error" | "not_found_error" | "model_not_found" => Some(ErrorCode::ProviderRejected),
        "authentication_error" | "permission_error" => Some(ErrorCode::ProviderAuth),
        "rate_limit_exceeded" | "rate_limit_error" | "RESOURCE_EXHAUSTED" => Some(ErrorCode::ProviderRateLimit),
        "timeout" | "timeout_error" => Some(ErrorCode::ProviderTimeout),
        "server_error" | "overloaded_error" => Some(ErrorCode::ProviderUnavailable),
        _ => None,
    }
}

fn remedy(code: ErrorCode, status: Option<u16>) -> Option<&'static str> {
    match (code, status) {
        (ErrorCode::ProviderAuth, _) => Some("Check the API key of this model and its permissions"),
        (ErrorCode::ProviderBilling, _) => Some("Check the plan and the balance of the account"),
        (ErrorCode::ContextWindow, _) => Some("Shorten the conversation or choose a model with a larger window"),
        (ErrorCode::ProviderRejected, Some(300..400)) => Some("The server redirects: check base_url"),
        (ErrorCode::ProviderRejected, Some(404)) => Some("Check base_url and the name of the model"),
        (ErrorCode::ProviderRejected, Some(413)) => Some("The request is too large: shorten the conversation"),
        _ => None,
    }
}
