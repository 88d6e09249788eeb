//! Context of a check: opens connections, and holds what all probes share.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::finding::{Finding, Findings};
use super::options::{CheckTarget, Limits};
use super::revision::Revision;
use super::rules::Rule;
use super::wire::answer::{Answer, NoAnswer};
use super::wire::connection::{Channel, Connection, client_info};
use super::wire::http::Endpoint;
use super::wire::inbox::Inbox;
use super::wire::log::WireLog;
use super::wire::process::Process;

/// What all probes share.
#[derive(Clone)]
pub(super) struct Context {
    pub(super) target: CheckTarget,
    pub(super) limits: Limits,
    pub(super) findings: Findings,
    pub(super) log: WireLog,
}

/// A session with the server.
#[derive(Clone)]
pub(super) struct Session {
    pub(super) connection: Connection,
    pub(super) revision: Revision,
    /// The answer to `initialize` or `server/discover`.
    pub(super) greeting: Value,
    /// The time from the start to that answer.
    pub(super) took: Duration,
}

impl Session {
    /// The capabilities that the server declared.
    pub(super) fn capabilities(&self) -> &Value {
        self.greeting.get("capabilities").unwrap_or(&Value::Null)
    }

    /// Whether the server exited. What it would have answered is not known, so no probe judges it.
    pub(super) fn has_ended(&self) -> bool {
        self.connection.inbox.closed().is_some()
    }

    /// A finding about this session.
    pub(super) fn finding(&self, rule: &'static Rule, message: impl AsRef<str>) -> Finding {
        Finding::new(rule, message).in_revision(rule, self.revision)
    }
}

/// Why there is no session.
#[derive(Debug)]
pub(super) enum Unopened {
    /// The process could not be started, or the URL is not usable.
    Unstarted(String),
    /// The request was not answered.
    Silent(NoAnswer, Vec<String>),
    /// The request was refused.
    Refused(i64, String),
}

impl Unopened {
    /// The reason, as a sentence without its subject.
    pub(super) fn in_words(&self) -> String {
        match self {
            Self::Unstarted(reason) => reason.clone(),
            Self::Silent(why, stderr) => match stderr.last() {
                Some(last) => format!("the first request {}; the last line of stderr: `{last}`", why.in_words()),
                None => format!("the first request {}", why.in_words()),
            },
            Self::Refused(code, message) => format!("the first request was refused with the error {code}: {message}"),
        }
    }
}

impl Context {
    /// Opens a connection, which sends nothing yet.
    pub(super) fn connect(&self, label: &str) -> Result<Connection, Unopened> {
        let inbox = Arc::new(Inbox::new(self.findings.clone()));
        let channel = match &self.target {
            CheckTarget::Stdio(settings) => {
                let process = Process::start(settings, label, &inbox, &self.log).map_err(|error| {
                    Unopened::Unstarted(format!("the command `{}` could not be started: {error}", settings.command))
                })?;
                Channel::Stdio(process)
            }
            CheckTarget::Http { url, headers } => {
                Channel::Http(Arc::new(Endpoint::new(url, headers, label, &self.log).map_err(Unopened::Unstarted)?))
            }
        };
        Ok(Connection { inbox, channel, limit: self.limits.request })
    }

    /// Opens a session with `initialize`.
    pub(super) async fn initialize(&self, label: &str, version: &str) -> Result<Session, Unopened> {
        let connection = self.connect(label)?;
        self.initialize_on(connection, version).await
    }

    /// The same on a connection that is open.
    pub(super) async fn initialize_on(&self, connection: Connection, version: &str) -> Result<Session, Unopened> {
        let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client_info()});
        let answered = connection.request_within("initialize", params, self.limits.start).await;
        let session = self.session(connection, answered, |greeting| {
            greeting.get("protocolVersion").and_then(Value::as_str).and_then(Revision::parse)
        });
        let session = session.await?;
        session.connection.notify("notifications/initialized", Value::Null).await;
        Ok(session)
    }

    /// Opens a session of the stateless revision with `server/discover`.
    pub(super) async fn discover(&self, connection: Connection) -> Result<Session, Unopened> {
        let answered = connection.request_within("server/discover", Value::Null, self.limits.start).await;
        self.session(connection, answered, |greeting| {
            let versions = greeting.get("supportedVersions").and_then(Value::as_array)?;
            versions.iter().filter_map(Value::as_str).filter_map(Revision::parse).find(|revision| revision.is_modern())
        })
        .await
    }

    async fn session(
        &self,
        connection: Connection,
        answered: Result<Answer, NoAnswer>,
        revision: impl Fn(&Value) -> Option<Revision>,
    ) -> Result<Session, Unopened> {
        let answer = match answered {
            Ok(answer) => answer,
            Err(why) => {
                if let Some(process) = connection.process() {
                    process.exit_within(Duration::from_millis(300)).await;
                }
                let stderr = connection.process().map(|process| process.stderr()).unwrap_or_default();
                return Err(Unopened::Silent(why, stderr));
            }
        };
        let greeting = answer.outcome.map_err(|error| Unopened::Refused(error.code, error.message))?;
        let revision = revision(&greeting).unwrap_or(Revision::LAST_LEGACY);
        connection.inbox.agree(revision, greeting.get("capabilities").cloned().unwrap_or_default());
        Ok(Session { connection, revision, greeting, took: answer.took })
    }
}
