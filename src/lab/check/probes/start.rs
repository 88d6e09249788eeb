//! Start of the server: its first session, and the one of the stateless revision beside it.

use std::time::Duration;

use toolgate_settings::mcp::ProtocolVersionChoice;

use crate::check::context::{Context, Session, Unopened};
use crate::check::finding::Finding;
use crate::check::options::{CheckTarget, Limits};
use crate::check::revision::Revision;
use crate::check::rules::{protocol, wire};
use crate::check::wire::answer::{NoAnswer, seconds};

/// What the server supports, as far as its first process tells.
pub(in crate::check) struct Eras {
    pub(in crate::check) legacy: Option<Session>,
    /// Only if the server refused `initialize`, or its versions were not asked for.
    pub(in crate::check) modern: Option<Session>,
    /// Why there is no session at all.
    pub(in crate::check) failure: Option<String>,
    /// Whether the server requires authorization.
    pub(in crate::check) unauthorized: bool,
}

/// Opens the first session, alone: its times count. Without a session of the versions before 2026-07-28 it is one of the
/// stateless revision.
pub(in crate::check) async fn open(context: &Context, versions: ProtocolVersionChoice) -> Eras {
    let legacy = match versions {
        ProtocolVersionChoice::Modern => None,
        ProtocolVersionChoice::Auto | ProtocolVersionChoice::Legacy => {
            Some(context.initialize("main", Revision::LAST_LEGACY.as_str()).await)
        }
    };
    let refusal = match legacy {
        Some(Ok(session)) => {
            judge_start(context, &session);
            return Eras { legacy: Some(session), modern: None, failure: None, unauthorized: false };
        }
        Some(Err(Unopened::Unstarted(reason))) => return failed(context, reason, false),
        Some(Err(why)) => Some(why),
        None => None,
    };
    let modern = match versions {
        ProtocolVersionChoice::Legacy => None,
        ProtocolVersionChoice::Auto | ProtocolVersionChoice::Modern => {
            Some(discover(context, context.limits.start).await)
        }
    };
    let (modern, no_discovery) = parted(modern);
    let Some(first) = modern else {
        let refusals: Vec<Unopened> = [refusal, no_discovery].into_iter().flatten().collect();
        let is_unauthorized = |why: &Unopened| matches!(why, Unopened::Silent(NoAnswer::Http(401 | 403, _), _));
        let reason = refusals.first().map(Unopened::in_words).unwrap_or_default();
        return failed(context, reason, refusals.iter().any(is_unauthorized));
    };
    judge_start(context, &first);
    // A server of the stateless revision alone refuses initialize, as an error or as HTTP 4xx.
    if let Some(why @ Unopened::Silent(cause, _)) = &refusal
        && !matches!(cause, NoAnswer::Http(400..500, _))
    {
        let text = format!("initialize {}", why.in_words().trim_start_matches("the first request "));
        context.findings.add(Finding::new(&protocol::VERSION_REFUSED, text));
    }
    Eras { legacy: None, modern: Some(first), failure: None, unauthorized: false }
}

/// A session of the stateless revision with a server that has one of an earlier version. `first` is the time that its first
/// start took; other processes start beside this one.
pub(in crate::check) async fn second_era(context: &Context, first: Duration) -> Option<Session> {
    let limits = context.limits;
    // A server that is slow to start is slow to refuse as well.
    let session = discover(context, limits.start.min(limits.request * 4 + first * 6)).await;
    if let Err(Unopened::Silent(why, _)) = &session
        && matches!(context.target, CheckTarget::Stdio(_))
    {
        let rule = if why.is_closed() { &protocol::DISCOVER_CRASH } else { &protocol::DISCOVER_UNANSWERED };
        let text = format!("server/discover {}", why.in_words());
        context.findings.add(Finding::new(rule, text).in_revision(rule, Revision::V2026July));
    }
    session.ok()
}

fn parted<T, E>(opened: Option<Result<T, E>>) -> (Option<T>, Option<E>) {
    match opened {
        None => (None, None),
        Some(Ok(session)) => (Some(session), None),
        Some(Err(why)) => (None, Some(why)),
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

/// Opens a session of the stateless revision as its clients do.
async fn discover(context: &Context, start: Duration) -> Result<Session, Unopened> {
    let connection = context.connect("discover")?;
    let limited = Context { limits: Limits { start, ..context.limits }, ..context.clone() };
    let session = limited.discover(connection).await?;
    match session.revision.is_modern() {
        true => Ok(session),
        false => Err(Unopened::Unstarted(format!(
            "the answer to server/discover has no version from {} on",
            Revision::V2026July
        ))),
    }
}
