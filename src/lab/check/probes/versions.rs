//! Version negotiation: one process for each revision, as clients of that time start it.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use crate::check::context::{Context, Session, Unopened};
use crate::check::finding::{Finding, one_line};
use crate::check::options::CheckTarget;
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

/// Negotiates the earlier revisions and an unknown one, at the same time. `first` is the time that the first start took.
pub(in crate::check) async fn negotiate(context: &Context, first: Duration) -> Vec<Negotiation> {
    let earlier = [Revision::V2024November, Revision::V2025March, Revision::V2025June];
    let tasks = earlier
        .into_iter()
        .map(|revision| one(context, revision.as_str(), (revision == Revision::V2025March).then_some(first)));
    let (mut known, unknown) = tokio::join!(futures::future::join_all(tasks), one(context, UNKNOWN, None));
    known.push(unknown);
    known
}

async fn one(context: &Context, version: &str, early_request_after: Option<Duration>) -> Negotiation {
    let answered = negotiate_one(context, version, early_request_after).await;
    match answered {
        Ok(selected) => Negotiation { requested: version.to_owned(), selected: Some(selected), failure: None },
        Err(failure) => {
            // It may have the last words of the server's stderr.
            let failure = Some(context.findings.redacted(&failure));
            Negotiation { requested: version.to_owned(), selected: None, failure }
        }
    }
}

async fn negotiate_one(
    context: &Context,
    version: &str,
    early_request_after: Option<Duration>,
) -> Result<String, String> {
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
    match context.initialize_on(connection, version).await {
        Ok(session) => Ok(judge(context, version, &session)),
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
    let selected = session.greeting.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
    let selected = one_line(selected, 40);
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
