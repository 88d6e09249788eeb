//! Error pages, which problems link to: the pages of `docs/errors`, one for each code.

use axum::http::header::CONTENT_SECURITY_POLICY;
use axum::response::{Html, IntoResponse};
use pulldown_cmark::{Options, Parser, html};
use toolgate_core::error::ErrorCode;

use crate::body::Path;
use crate::problem::Problem;

const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'";

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:3rem auto;padding:0 1rem}\
                     code{background:#8881;padding:.1em .3em;border-radius:3px}table{border-collapse:collapse}\
                     td,th{border:1px solid #8886;padding:.3em .6em;text-align:left}:root{color-scheme:light dark}";

const INDEX: &str = include_str!("../../../docs/errors.md");

/// The index of all codes.
pub(super) async fn index() -> impl IntoResponse {
    // In the repository a page is a file; here it is an address.
    written("Error codes", &INDEX.replace(".md)", ")"))
}

/// The page of a code.
pub(super) async fn page(Path(code): Path<String>) -> Result<impl IntoResponse, Problem> {
    let known = ErrorCode::ALL.iter().find(|known| known.as_str() == code);
    let code = known.ok_or_else(|| Problem::not_found("error code", &code))?;
    Ok(written(code.as_str(), text(*code)))
}

fn written(title: &str, markdown: &str) -> impl IntoResponse + use<> {
    let mut body = String::new();
    html::push_html(&mut body, Parser::new_ext(markdown, Options::ENABLE_TABLES));
    let page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>toolgate: {title}</title><style>{STYLE}</style>{body}</html>"
    );
    ([(CONTENT_SECURITY_POLICY, POLICY)], Html(page))
}

macro_rules! texts {
    ($($code:ident => $file:literal,)*) => {
        fn text(code: ErrorCode) -> &'static str {
            match code {
                $(ErrorCode::$code => include_str!(concat!("../../../docs/errors/", $file, ".md")),)*
            }
        }
    };
}

texts! {
    Validation => "validation",
    InvalidRequest => "invalid_request",
    Configuration => "configuration",
    Unauthorized => "unauthorized",
    Forbidden => "forbidden",
    NotFound => "not_found",
    MethodNotAllowed => "method_not_allowed",
    NotAcceptable => "not_acceptable",
    RequestTimeout => "request_timeout",
    Conflict => "conflict",
    Gone => "gone",
    PreconditionFailed => "precondition_failed",
    PayloadTooLarge => "payload_too_large",
    UnsupportedMediaType => "unsupported_media_type",
    RateLimited => "rate_limited",
    Unavailable => "unavailable",
    ToolDenied => "tool_denied",
    ToolFailed => "tool_failed",
    ToolUnavailable => "tool_unavailable",
    ProviderAuth => "provider_auth",
    ProviderBilling => "provider_billing",
    ProviderRateLimit => "provider_rate_limit",
    ProviderUnavailable => "provider_unavailable",
    ProviderTimeout => "provider_timeout",
    ProviderRejected => "provider_rejected",
    ProviderInvalidResponse => "provider_invalid_response",
    ContextWindow => "context_window",
    ContentFilter => "content_filter",
    ModelRefused => "model_refused",
    OutputTruncated => "output_truncated",
    TurnLimit => "turn_limit",
    DeadlineExceeded => "deadline_exceeded",
    Expired => "expired",
    Cancelled => "cancelled",
    StoreUnavailable => "store_unavailable",
    JournalCorrupt => "journal_corrupt",
    Internal => "internal",
}
