//! Start of the server: the first session of each era.

use toolgate_settings::mcp::ProtocolVersionChoice;

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
    /// Whether the server requires authorization.
    pub(in crate::check) unauthorized: bool,
}

/// Opens a session of each era that these versions have.
pub(in crate::check) async fn open(context: &Context, versions: ProtocolVersionChoice) -> Eras {
    let legacy = match versions {
        ProtocolVersionChoice::Modern => None,
        ProtocolVersionChoice::Auto | ProtocolVersionChoice::Legacy => {
            Some(context.initialize("main", Revision::LAST_LEGACY.as_str()).await)
        }
    };
    if let Some(Err(Unopened::Unstarted(reason))) = &legacy {
        return failed(context, reason.clone(), false);
    }
    let modern = match versions {
        ProtocolVersionChoice::Legacy => None,
        ProtocolVersionChoice::Auto | ProtocolVersionChoice::Modern => {
            Some(discover(context, matches!(legacy, Some(Ok(_)))).await)
        }
    };
    let ((legacy, refusal), (modern, no_discovery)) = (parted(legacy), parted(modern));
    let Some(first) = legacy.as_ref().or(modern.as_ref()) else {
        let refusals: Vec<Unopened> = [refusal, no_discovery].into_iter().flatten().collect();
        let is_unauthorized = |why: &Unopened| matches!(why, Unopened::Silent(NoAnswer::Http(401 | 403, _), _));
        let reason = refusals.first().map(Unopened::in_words).unwrap_or_default();
        return failed(context, reason, refusals.iter().any(is_unauthorized));
    };
    judge_start(context, first);
    // A server of the stateless revision alone refuses initialize, as an error or as HTTP 4xx.
    if let Some(why @ Unopened::Silent(cause, _)) = &refusal
        && !matches!(cause, NoAnswer::Http(400..500, _))
    {
        let text = format!("initialize {}", why.in_words().trim_start_matches("the first request "));
        context.findings.add(Finding::new(&protocol::VERSION_REFUSED, text));
    }
    Eras { legacy, modern, failure: None, unauthorized: false }
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

/// Probes for the stateless revision as its clients do, and for what a server that otherwise starts makes of that.
async fn discover(context: &Context, starts: bool) -> Result<Session, Unopened> {
    let connection = context.connect("discover")?;
    // A server that is slow to start is slow to refuse as well.
    let start = context.limits.start.min(context.limits.request * 4);
    let limits = if starts { Limits { start, ..context.limits } } else { context.limits };
    let limited = Context { limits, ..context.clone() };
    let session = limited.discover(connection).await;
    if let Err(Unopened::Silent(why, _)) = &session
        && starts
        && matches!(context.target, CheckTarget::Stdio(_))
    {
        let rule = if why.is_closed() { &protocol::DISCOVER_CRASH } else { &protocol::DISCOVER_UNANSWERED };
        let text = format!("server/discover {}", why.in_words());
        context.findings.add(Finding::new(rule, text).in_revision(rule, Revision::V2026July));
    }
    let session = session?;
    match session.revision.is_modern() {
        true => Ok(session),
        false => Err(Unopened::Unstarted(format!(
            "the answer to server/discover has no version from {} on",
            Revision::V2026July
        ))),
    }
}
