//! Pages for people: the API reference, whose script is part of the program, and the error pages that problems link to,
//! one for each code and each reason of `docs/errors`. They load nothing from elsewhere.

use axum::http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{Html, IntoResponse};
use pulldown_cmark::{Options, Parser, html};

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

/// The page of a code or of a reason.
pub(super) async fn error_page(Path(name): Path<String>) -> Result<impl IntoResponse, Problem> {
    let page = PAGES.iter().find(|(known, _)| *known == name);
    let (name, text) = page.ok_or_else(|| Problem::not_found("error code or reason", &name))?;
    // In the repository a page is a file; here it is an address.
    Ok(error_html(name, &text.replace(".md)", ")")))
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

macro_rules! pages {
    ($($name:ident)*) => {
        /// The name and the text of each page.
        const PAGES: &[(&str, &str)] =
            &[$((stringify!($name), include_str!(concat!("../../../docs/errors/", stringify!($name), ".md")))),*];
    };
}

// The codes, then the reasons.
pages! {
    validation invalid_request configuration unauthorized forbidden not_found method_not_allowed not_acceptable
    request_timeout conflict gone precondition_failed payload_too_large unsupported_media_type rate_limited
    unavailable tool_denied tool_failed tool_unavailable provider_auth provider_billing provider_rate_limit
    provider_unavailable provider_timeout provider_rejected provider_invalid_response context_window content_filter
    model_refused output_truncated turn_limit budget_exhausted deadline_exceeded expired cancelled store_unavailable
    journal_corrupt internal
    run_over run_not_over deleted owned_elsewhere version_moved not_latest_run not_paused already_answered
    already_decided call_changed too_late withdrawn no_deadline repeat_required unknown_call wrong_type
    answered_twice answers_missing session_busy session_changing session_exists limit_reached quota_exceeded
    agent_missing server_missing queue_full server_stopping idempotency_in_flight key_reused outcome_unknown
    url_taken scope_missing other_principal four_eyes
}
