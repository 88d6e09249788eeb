//! Version negotiation: each revision and an unknown one, in one process where the server confirms it.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use crate::check::context::{Context, Session, Unopened};
use crate::check::finding::{Finding, one_line};
use crate::check::options::{CheckTarget, Limits};
use crate::check::revision::Revision;
use crate::check::rules::{protocol, wire};
use crate::check::wire::connection::Connection;

/// A version that will never be published.
const UNKNOWN: &str = "2099-01-01";

/// The answer to one requested version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Negotiation {
    /// The version in the request.
    pub requested: String,
    /// The version that the server selected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selected: Option<String>,
    /// Why it selected none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// Negotiates the earlier revisions and an unknown one. `main` has the session of the first process.
///
/// A start takes seconds in some languages, so one process is asked for all of them, one after another. Only what it
/// confirms counts: every other version is asked for again in a process of its own.
pub(in crate::check) async fn negotiate(context: &Context, main: &Session) -> Vec<Negotiation> {
    let (first, connection) = one(context, Revision::V2025March.as_str(), Some(main.took)).await;
    let (mut all, mut others) = (vec![first], Vec::new());
    let mut shared = connection.filter(|_| matches!(context.target, CheckTarget::Stdio(_)));
    for version in [Revision::V2024November.as_str(), Revision::V2025June.as_str(), UNKNOWN] {
        let is_confirmed = match &shared {
            Some(connection) => is_confirmed(context, connection, version, main).await,
            None => false,
        };
        if is_confirmed {
            let selected = if version == UNKNOWN { selected(main) } else { version.to_owned() };
            all.push(Negotiation { requested: version.to_owned(), selected: Some(selected), failure: None });
        } else {
            shared = None;
            others.push(one(context, version, None));
        }
    }
    all.extend(futures::future::join_all(others).await.into_iter().map(|(negotiation, _)| negotiation));
    all
}

/// The version that a session was opened with, in one line.
fn selected(session: &Session) -> String {
    one_line(session.greeting.get("protocolVersion").and_then(Value::as_str).unwrap_or_default(), 40)
}

/// Whether a process that has a session agrees to this version as well; to the unknown one if it answers with the version
/// of its first process.
async fn is_confirmed(context: &Context, connection: &Connection, version: &str, main: &Session) -> bool {
    if connection.inbox.closed().is_some() {
        return false;
    }
    let limits = Limits { start: context.limits.request, ..context.limits };
    let opened = Context { limits, ..context.clone() }.initialize_on(connection.clone(), version).await;
    let expected = if version == UNKNOWN { selected(main) } else { version.to_owned() };
    opened.is_ok_and(|session| selected(&session) == expected && Revision::parse(&expected).is_some())
}

/// One version in a process of its own, and the connection if a session was opened.
async fn one(
    context: &Context,
    version: &str,
    early_request_after: Option<Duration>,
) -> (Negotiation, Option<Connection>) {
    let requested = version.to_owned();
    match negotiate_one(context, version, early_request_after).await {
        Ok((selected, connection)) => {
            (Negotiation { requested, selected: Some(selected), failure: None }, Some(connection))
        }
        Err(failure) => {
            // It may have the last words of the server's stderr.
            let failure = Some(context.findings.redacted(&failure));
            (Negotiation { requested, selected: None, failure }, None)
        }
    }
}

async fn negotiate_one(
    context: &Context,
    version: &str,
    early_request_after: Option<Duration>,
) -> Result<(String, Connection), String> {
    let connection = context.connect(version).map_err(|why| why.in_words())?;
    let mut is_early_crash = false;
    // A server that exits because of every tools/list says nothing about requests before initialize.
    if let Some(first) = early_request_after
        && matches!(context.target, CheckTarget::Stdio(_))
        && !context.findings.has(&wire::SERVER_CRASHED)
    {
        is_early_crash = early_request(context, &connection, first).await;
    }
    if is_early_crash {
        return Err("the server exited because of a request before initialize".into());
    }
    match context.initialize_on(connection.clone(), version).await {
        Ok(session) => Ok((judge(context, version, &session), connection)),
        Err(why) => {
            let words = why.in_words();
            report(context, version, &why);
            Err(words)
        }
    }
}

/// Sends a request before initialize. Returns whether the server exited.
async fn early_request(context: &Context, connection: &Connection, first: Duration) -> bool {
    // Several processes start at the same time, so this one takes longer than the first.
    let limit = context.limits.start.min(context.limits.request + first * 6);
    match connection.request_within("tools/list", json!({}), limit).await {
        Ok(_) => false,
        Err(why) => {
            let text = format!("tools/list before initialize {}", why.in_words());
            let rule =
                if why.is_closed() { &protocol::EARLY_REQUEST_CRASH } else { &protocol::EARLY_REQUEST_UNANSWERED };
            context.findings.add(Finding::new(rule, text));
            why.is_closed()
        }
    }
}

fn judge(context: &Context, version: &str, session: &Session) -> String {
    let selected = selected(session);
    if selected == UNKNOWN {
        let text = format!("the server agreed to the version {UNKNOWN}, which does not exist");
        context.findings.add(Finding::new(&protocol::VERSION_ECHOED, text));
    } else if Revision::parse(&selected).is_none() {
        unsupported(context, version, &selected);
    }
    selected
}

/// Reports a version that does not exist.
pub(in crate::check) fn unsupported(context: &Context, requested: &str, selected: &str) {
    let text = format!("the server answered {requested} with the version `{selected}`, which does not exist");
    context.findings.add(Finding::new(&protocol::VERSION_UNSUPPORTED, text));
}

fn report(context: &Context, version: &str, why: &Unopened) {
    let is_stdio = matches!(context.target, CheckTarget::Stdio(_));
    let (rule, text) = match why {
        // The first process answered: what fails now is another process beside it.
        Unopened::Unstarted(_) | Unopened::Silent(..) if is_stdio => {
            let text = format!("a second process beside the first one (initialize with {version}): {}", why.in_words());
            (&wire::SECOND_START_FAILS, text)
        }
        Unopened::Refused(..) | Unopened::Unstarted(_) | Unopened::Silent(..) => {
            (&protocol::VERSION_REFUSED, format!("initialize with {version}: {}", why.in_words()))
        }
    };
    context.findings.add(Finding::new(rule, text));
}
