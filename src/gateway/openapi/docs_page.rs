//! The API reference page. Its script is part of the program: the page loads nothing from elsewhere.

use axum::http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{Html, IntoResponse};

/// RapiDoc; `assets/rapidoc/README.md` has its version.
const SCRIPT: &[u8] = include_bytes!("../../../assets/rapidoc/rapidoc-min.js.gz");

/// The page has its styles inline; everything else comes from this server, and the page sends requests to no other one.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const PAGE: &str = r##"<!doctype html>
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

pub(super) async fn page() -> impl IntoResponse {
    ([(CONTENT_SECURITY_POLICY, POLICY)], Html(PAGE))
}

/// Every browser accepts it compressed, and only browsers load it.
pub(super) async fn script() -> impl IntoResponse {
    let headers = [
        (CONTENT_TYPE, "text/javascript; charset=utf-8"),
        (CONTENT_ENCODING, "gzip"),
        (CACHE_CONTROL, "public, max-age=86400"),
    ];
    (headers, SCRIPT)
}
