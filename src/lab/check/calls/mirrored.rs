//! Calls whose HTTP headers contradict their arguments, for tools with parameters that headers repeat.

use reqwest::Method;
use serde_json::{Value, json};

use super::caller::Caller;
use crate::check::probes::http::mismatch;
use crate::check::rules::http;
use crate::check::wire::param_headers;

/// The value of the header that contradicts the argument.
const OTHER: &str = "toolgate-other";

/// Sends a call with another value in the first header. A server that executes it can be called past the rules of a proxy.
pub(super) async fn judge(caller: &mut Caller<'_>, name: &str, schema: &Value, arguments: &Value) {
    let Some(session) = caller.session().await.filter(|session| session.revision.is_modern()) else { return };
    let Some(endpoint) = session.connection.endpoint() else { return };
    let headers = param_headers::of_call(schema, arguments);
    let Some((header, value)) = headers.first() else { return };
    let params = json!({"name": name, "arguments": arguments});
    let body = session.connection.message(Some(900_003), "tools/call", params).to_string();
    let (changes, limit) = ([(header.as_str(), Some(OTHER))], caller.context.limits.call);
    let Ok(answer) = endpoint.probe(Method::POST, &changes, Some(&body), Some(session.revision), limit).await else {
        return;
    };
    if let Some((severity, outcome)) = mismatch(&answer) {
        let text = format!("a call with `{header}: {OTHER}` for the argument `{value}` was answered with {outcome}");
        let finding = session.finding(&http::HTTP_HEADER_MISMATCH, text).severity(severity);
        caller.context.findings.add(finding.tool(name));
    }
}
