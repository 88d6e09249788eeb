//! Pages for people: the API reference, whose script is part of the program, and the error pages that problems link to,
//! one for each code of `docs/errors`. They load nothing from elsewhere.

use axum::http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{Html, IntoResponse};
use pulldown_cmark::{Options, Parser, html};
use toolgate_core::error::ErrorCode;

use crate::body::Path;
use crate::problem::Problem;

/// RapiDoc; `assets/rapidoc/README.md` has its version.
const REFERENCE_SCRIPT: &[u8] = include_bytes!("../../../assets/rapidoc/rapidoc-min.js.gz");

/// The reference page has its styles inline; everything else comes from this server, and the page sends requests to no other one.
const REFERENCE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
                                img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const REFERENCE: &str = r##"<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>toolgate: the API</title>
<script type="module" src="docs/reader.js"></script>
<rapi-doc spec-url="openapi.json" load-fonts="false" render-style="read" theme="light" primary-color="#2457a7"
  show-header="false" allow-spec-url-load="false" allow-spec-file-load="false" schema-style="table"
  regular-font="system-ui, sans-serif" mono-font="ui-monospace, monospace"></rapi-doc>
</html>
"##;

const ERRORS_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'";

const ERRORS_STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:3rem auto;padding:0 1rem}\
                            code{background:#8881;padding:.1em .3em;border-radius:3px}table{border-collapse:collapse}\
                            td,th{border:1px solid #8886;padding:.3em .6em;text-align:left}:root{color-scheme:light dark}";

const ERRORS_INDEX: &str = include_str!("../../../docs/errors.md");

/// The API reference.
pub(super) async fn reference() -> impl IntoResponse {
    ([(CONTENT_SECURITY_POLICY, REFERENCE_POLICY)], Html(REFERENCE))
}

/// Every browser accepts it compressed, and only browsers load it.
pub(super) async fn reference_script() -> impl IntoResponse {
    let headers = [
        (CONTENT_TYPE, "text/javascript; charset=utf-8"),
        (CONTENT_ENCODING, "gzip"),
        (CACHE_CONTROL, "public, max-age=86400"),
    ];
    (headers, REFERENCE_SCRIPT)
}

/// The index of all codes.
pub(super) async fn error_index() -> impl IntoResponse {
    // In the repository a page is a file; here it is an address.
    error_html("Error codes", &ERRORS_INDEX.replace(".md)", ")"))
}

/// The page of a code.
pub(super) async fn error_page(Path(code): Path<String>) -> Result<impl IntoResponse, Problem> {
    let known = ErrorCode::ALL.iter().find(|known| known.as_str() == code);
    let code = known.ok_or_else(|| Problem::not_found("error code", &code))?;
    Ok(error_html(code.as_str(), text(*code)))
}

fn error_html(title: &str, markdown: &str) -> impl IntoResponse + use<> {
    let mut body = String::new();
    html::push_html(&mut body, Parser::new_ext(markdown, Options::ENABLE_TABLES));
    let page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>toolgate: {title}</title><style>{ERRORS_STYLE}</style>{body}</html>"
    );
    ([(CONTENT_SECURITY_POLICY, ERRORS_POLICY)], Html(page))
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
    BudgetExhausted => "budget_exhausted",
    DeadlineExceeded => "deadline_exceeded",
    Expired => "expired",
    Cancelled => "cancelled",
    StoreUnavailable => "store_unavailable",
    JournalCorrupt => "journal_corrupt",
    Internal => "internal",
}
