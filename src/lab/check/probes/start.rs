//! Start of the server: the first session of each era.

use crate::check::context::{Context, Session, Unopened};
use crate::check::finding::Finding;
use crate::check::options::{CheckTarget, Limits};
use crate::check::revision::Revision;
use crate::check::rules::{protocol, wire};
use crate::check::wire::answer::{NoAnswer, seconds};

/// The sessions that the server supports.
pub(in crate::check) struct Eras {
    pub(in crate::check) legacy: Option<Session>,
    pub(in crate::check) modern: Option<Session>,
    /// Why there is no session at all.
    pub(in crate::check) failure: Option<String>,
    /// The HTTP status of the first answer, if it requires authorization.
    pub(in crate::check) unauthorized: bool,
}

/// Opens a session of each era.
pub(in crate::check) async fn open(context: &Context) -> Eras {
    let legacy = context.initialize("main", Revision::LAST_LEGACY.as_str()).await;
    if let Err(Unopened::Unstarted(reason)) = &legacy {
        return failed(context, reason.clone(), false);
    }
    let modern = discover(context, legacy.is_ok()).await;
    let (legacy, refusal) = match legacy {
        Ok(session) => (Some(session), None),
        Err(why) => (None, Some(why)),
    };
    if let Some(session) = &legacy {
        judge_start(context, session);
    } else if let Some(session) = &modern {
        judge_start(context, session);
    }
    match (legacy, modern, refusal) {
        (None, None, Some(why)) => {
            let unauthorized = matches!(&why, Unopened::Silent(NoAnswer::Http(401 | 403, _), _));
            failed(context, why.in_words(), unauthorized)
        }
        (legacy, modern, refusal) => {
            // A server of the stateless revision alone refuses initialize, as an error or as HTTP 4xx.
            if let Some(why @ Unopened::Silent(cause, _)) = &refusal
                && !matches!(cause, NoAnswer::Http(400..500, _))
            {
                let text = format!("initialize {}", why.in_words().trim_start_matches("the first request "));
                context.findings.add(Finding::new(&protocol::VERSION_REFUSED, text));
            }
            Eras { legacy, modern, failure: None, unauthorized: false }
        }
    }
}

fn failed(context: &Context, reason: String, unauthorized: bool) -> Eras {
    context.findings.add(Finding::new(&wire::SERVER_NOT_STARTED, &reason));
    Eras { legacy: None, modern: None, failure: Some(reason), unauthorized }
}

fn judge_start(context: &Context, session: &Session) {
    if session.took > context.limits.slow_start {
        let text = format!("the first answer took {}", seconds(session.took));
        context.findings.add(session.finding(&wire::SLOW_INITIALIZE, text));
    }
}

/// Probes for the stateless revision as its clients do, and for what a server that otherwise starts makes of that.
async fn discover(context: &Context, starts: bool) -> Option<Session> {
    let connection = context.connect("discover").ok()?;
    // A server that is slow to start is slow to refuse as well.
    let start = context.limits.start.min(context.limits.request * 4);
    let limited = Context { limits: Limits { start, ..context.limits }, ..context.clone() };
    let is_stdio = matches!(context.target, CheckTarget::Stdio(_));
    match limited.discover(connection.clone()).await {
        Ok(session) if session.revision.is_modern() => Some(session),
        Ok(_) => None,
        Err(Unopened::Silent(why, _)) if is_stdio && starts => {
            let (rule, text) = if why.is_closed() {
                (&protocol::DISCOVER_CRASH, format!("server/discover {}", why.in_words()))
            } else {
                (&protocol::DISCOVER_UNANSWERED, format!("server/discover {}", why.in_words()))
            };
            context.findings.add(Finding::new(rule, text).in_revision(rule, Revision::V2026July));
            None
        }
        Err(Unopened::Silent(..) | Unopened::Refused(..) | Unopened::Unstarted(_)) => None,
    }
}
