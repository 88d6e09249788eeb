//! HTTP: security headers, sessions, content negotiation and status codes.

use reqwest::Method;
use serde_json::{Value, json};

use crate::check::context::{Context, Session};
use crate::check::finding::{Finding, one_line};
use crate::check::revision::Revision;
use crate::check::rules::{Rule, Severity, http};
use crate::check::wire::connection::client_info;
use crate::check::wire::http::{Endpoint, RawAnswer};

const EVIL_ORIGIN: &str = "http://rebind.example";
const UNKNOWN_SESSION: &str = "00000000-0000-4000-8000-000000000000";

/// The probes of one endpoint.
pub(in crate::check) struct HttpProbe<'a> {
    context: &'a Context,
    session: &'a Session,
    endpoint: &'a Endpoint,
}

/// Probes the endpoint of this session. It ends the session.
pub(in crate::check) async fn all(context: &Context, session: &Session) {
    let Some(endpoint) = session.connection.endpoint() else { return };
    let probe = HttpProbe { context, session, endpoint };
    probe.origin().await;
    probe.host().await;
    probe.accept().await;
    probe.malformed().await;
    probe.verb().await;
    probe.get().await;
    if session.revision.is_modern() {
        probe.header_mismatch().await;
    } else {
        probe.version_header().await;
        probe.sessions().await;
    }
}

impl HttpProbe<'_> {
    fn report(&self, rule: &'static Rule, text: impl AsRef<str>) {
        self.context.findings.add(self.session.finding(rule, text));
    }

    fn report_as(&self, rule: &'static Rule, severity: Severity, text: impl AsRef<str>) {
        self.context.findings.add(self.session.finding(rule, text).severity(severity));
    }

    /// A request that succeeds on its own, with these changes of its headers.
    async fn list(&self, changes: &[(&str, Option<&str>)]) -> Option<RawAnswer> {
        let message = self.session.connection.message(Some(900_001), "tools/list", Value::Null);
        self.send(Method::POST, changes, Some(&message.to_string())).await
    }

    /// A request that begins a session, with these changes of its headers.
    async fn initialize(&self, changes: &[(&str, Option<&str>)]) -> Option<RawAnswer> {
        if self.session.revision.is_modern() {
            return self.list(changes).await;
        }
        let params = json!({"protocolVersion": Revision::LAST_LEGACY, "capabilities": {}, "clientInfo": client_info()});
        let message = json!({"jsonrpc": "2.0", "id": 900_002, "method": "initialize", "params": params});
        let fresh = [("mcp-session-id", None), ("mcp-protocol-version", None)];
        let changes: Vec<_> = fresh.iter().chain(changes).copied().collect();
        let answer = self.send(Method::POST, &changes, Some(&message.to_string())).await;
        if let Some(session) =
            answer.as_ref().map(|answer| answer.header("mcp-session-id").to_owned()).filter(|id| !id.is_empty())
        {
            // The probe leaves no session behind.
            let _ = self.send(Method::DELETE, &[("mcp-session-id", Some(&session))], None).await;
        }
        answer
    }

    async fn send(&self, method: Method, changes: &[(&str, Option<&str>)], body: Option<&str>) -> Option<RawAnswer> {
        let revision = Some(self.session.revision);
        self.endpoint.probe(method, changes, body, revision, self.context.limits.request).await.ok()
    }

    async fn origin(&self) {
        let Some(answer) = self.initialize(&[("origin", Some(EVIL_ORIGIN))]).await else { return };
        if is_accepted(&answer) {
            let severity = if self.endpoint.is_local() { Severity::Error } else { Severity::Warning };
            self.report_as(
                &http::HTTP_ORIGIN,
                severity,
                format!("a request with `Origin: {EVIL_ORIGIN}` was accepted with HTTP {}", answer.status),
            );
        }
    }

    async fn host(&self) {
        if !self.endpoint.is_local() {
            return;
        }
        let Some(answer) = self.initialize(&[("host", Some("rebind.example"))]).await else { return };
        if is_accepted(&answer) {
            self.report(
                &http::HTTP_HOST,
                format!("a request with `Host: rebind.example` was accepted with HTTP {}", answer.status),
            );
        }
    }

    async fn accept(&self) {
        let Some(answer) = self.initialize(&[("accept", Some("application/json"))]).await else { return };
        if answer.is_stream() {
            self.report(
                &http::HTTP_ACCEPT,
                "a request with `Accept: application/json` was answered with an event stream",
            );
        }
    }

    async fn malformed(&self) {
        let Some(answer) = self.send(Method::POST, &[], Some("{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": ")).await
        else {
            return;
        };
        if !(400..500).contains(&answer.status) {
            let severity = if answer.status >= 500 { Severity::Error } else { Severity::Warning };
            self.report_as(
                &http::HTTP_MALFORMED_JSON,
                severity,
                format!("a body that is not JSON was answered with HTTP {}", answer.status),
            );
        }
    }

    async fn verb(&self) {
        let Some(answer) = self.send(Method::PUT, &[], Some("{}")).await else { return };
        if answer.status < 400 || answer.status >= 500 {
            self.report(&http::HTTP_VERB, format!("PUT was answered with HTTP {}", answer.status));
        }
    }

    async fn get(&self) {
        let changes = [("accept", Some("text/event-stream")), ("content-type", None)];
        let Some(answer) = self.send(Method::GET, &changes, None).await else { return };
        let is_stream = answer.status == 200 && answer.is_stream();
        if is_stream && !self.session.revision.is_modern() {
            return self.stream().await;
        }
        // The stateless revision has no stream of GET.
        if answer.status != 405 {
            let kind = one_line(answer.header("content-type"), 60);
            self.report(
                &http::HTTP_GET,
                format!("GET was answered with HTTP {} and the content type `{kind}`", answer.status),
            );
        }
    }

    /// The stream of GET, for a client that accepts none and for a session that does not exist.
    async fn stream(&self) {
        let json = [("accept", Some("application/json")), ("content-type", None)];
        let unknown =
            [("accept", Some("text/event-stream")), ("content-type", None), ("mcp-session-id", Some(UNKNOWN_SESSION))];
        let (json, unknown) = tokio::join!(self.send(Method::GET, &json, None), self.send(Method::GET, &unknown, None));
        if json.is_some_and(|answer| answer.status == 200 && answer.is_stream()) {
            let text = "GET with `Accept: application/json` was answered with an event stream";
            self.report(&http::HTTP_ACCEPT, text);
        }
        if self.endpoint.session().is_some() && unknown.is_some_and(|answer| answer.status == 200) {
            self.report(&http::HTTP_SESSION_UNKNOWN, "GET of an unknown session was accepted with HTTP 200");
        }
    }

    async fn version_header(&self) {
        if self.session.revision < Revision::V2025June {
            return;
        }
        let Some(answer) = self.list(&[("mcp-protocol-version", Some("2099-01-01"))]).await else { return };
        if is_accepted(&answer) {
            self.report(
                &http::HTTP_VERSION_HEADER,
                format!("`MCP-Protocol-Version: 2099-01-01` was accepted with HTTP {}", answer.status),
            );
        }
    }

    async fn header_mismatch(&self) {
        let Some(answer) = self.list(&[("mcp-method", Some("prompts/list"))]).await else { return };
        if let Some((severity, outcome)) = mismatch(&answer) {
            let text = format!("tools/list with `Mcp-Method: prompts/list` was answered with {outcome}");
            self.report_as(&http::HTTP_HEADER_MISMATCH, severity, text);
        }
    }

    async fn sessions(&self) {
        let Some(session) = self.endpoint.session() else { return };
        if let Some(answer) = self.list(&[("mcp-session-id", Some(UNKNOWN_SESSION))]).await {
            self.judge_unknown_session(&answer, "an unknown session");
        }
        let Some(deleted) = self.send(Method::DELETE, &[("content-type", None)], None).await else { return };
        match deleted.status {
            405 | 501 => {}
            200..300 => {
                if let Some(answer) = self.list(&[("mcp-session-id", Some(&session))]).await
                    && is_accepted(&answer)
                {
                    self.report(
                        &http::HTTP_DELETE,
                        format!(
                            "the session was deleted (HTTP {}), and a later request of it was accepted",
                            deleted.status
                        ),
                    );
                }
            }
            other => {
                self.report(&http::HTTP_DELETE, format!("DELETE of the own session was answered with HTTP {other}"))
            }
        }
    }

    fn judge_unknown_session(&self, answer: &RawAnswer, what: &str) {
        if is_accepted(answer) {
            self.report(
                &http::HTTP_SESSION_UNKNOWN,
                format!("a request of {what} was accepted with HTTP {}", answer.status),
            );
        } else if answer.status != 404 {
            let text = format!("a request of {what} was answered with HTTP {}", answer.status);
            self.report_as(&http::HTTP_SESSION_UNKNOWN, Severity::Warning, text);
        }
    }
}

/// Judges how a server that requires authorization says so.
pub(in crate::check) async fn authorization(context: &Context) {
    let Ok(connection) = context.connect("authorization") else { return };
    let Some(endpoint) = connection.endpoint() else { return };
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let limit = context.limits.request;
    let Ok(answer) = endpoint.probe(Method::POST, &[], Some(&message), None, limit).await else { return };
    if answer.status != 401 {
        return;
    }
    let named = named_metadata(&answer);
    // A client that is told an address does not guess another one.
    let addresses = named.clone().map_or_else(|| endpoint.metadata_addresses(), |named| vec![named]);
    let mut has_servers = false;
    for address in &addresses {
        let document = endpoint.get(address, limit).await.ok().filter(|answer| answer.status == 200);
        let servers = document.and_then(|answer| answer.message()?.get("authorization_servers").cloned());
        has_servers |= servers.and_then(|servers| Some(!servers.as_array()?.is_empty())).unwrap_or(false);
        if has_servers {
            break;
        }
    }
    let rule = &http::HTTP_AUTH_METADATA;
    if !has_servers {
        let addresses = addresses.join(" or ");
        let text = format!("HTTP 401, and no metadata with `authorization_servers` can be read from {addresses}");
        context.findings.add(Finding::new(rule, text));
    } else if named.is_none() {
        let text = "HTTP 401 without `resource_metadata` in `WWW-Authenticate`; clients have to guess the address";
        context.findings.add(Finding::new(rule, text).severity(Severity::Warning));
    }
}

/// The address of `resource_metadata` in a challenge of the answer.
fn named_metadata(answer: &RawAnswer) -> Option<String> {
    let challenges = answer.headers.get_all("www-authenticate").iter().filter_map(|value| value.to_str().ok());
    let rest = challenges.filter_map(|challenge| Some(challenge.split_once("resource_metadata=")?.1)).next()?;
    rest.trim_start_matches('"').split(['"', ',', ' ']).next().map(str::to_owned)
}

/// What is wrong with the answer to a request whose headers contradict its body: the severity, and the answer in words.
pub(in crate::check) fn mismatch(answer: &RawAnswer) -> Option<(Severity, String)> {
    let code = answer.message().and_then(|message| message.pointer("/error/code").and_then(Value::as_i64));
    if !is_accepted(answer) && answer.status == 400 && code == Some(-32020) {
        return None;
    }
    let severity = if is_accepted(answer) { Severity::Error } else { Severity::Warning };
    let code = code.map_or("no error".to_owned(), |code| format!("the error {code}"));
    Some((severity, format!("HTTP {} and {code}", answer.status)))
}

/// Whether the request was carried out.
fn is_accepted(answer: &RawAnswer) -> bool {
    answer.status < 300 && answer.message().is_none_or(|message| message.get("error").is_none())
}
