//! Requests of JSON-RPC that every server has to cope with: ping, notifications, unknown methods, other versions.

use std::time::Duration;

use serde_json::{Value, json};

use crate::check::context::{Context, Session};
use crate::check::finding::one_line;
use crate::check::rules::{http, protocol, wire};
use crate::check::wire::answer::NoAnswer;

/// How long an answer to a notification may take to arrive.
const SILENCE: Duration = Duration::from_millis(120);
const METHOD_NOT_FOUND: i64 = -32601;
const UNSUPPORTED_VERSION: i64 = -32022;

/// Sends notifications, which must not be answered.
pub(in crate::check) async fn notifications(context: &Context, session: &Session) {
    let connection = &session.connection;
    connection.inbox.watch_for_answers(true);
    // The answer to notifications/initialized may be under way.
    let cancelled = json!({"requestId": 999_999, "reason": "the check cancels a request that does not exist"});
    let status = connection.notify("notifications/cancelled", cancelled).await;
    tokio::time::sleep(SILENCE).await;
    connection.inbox.watch_for_answers(false);
    if let Some(status) = status.filter(|status| *status != 202 && *status < 400) {
        context
            .findings
            .add(session.finding(&http::HTTP_NOTIFICATION, format!("a notification was answered with HTTP {status}")));
    }
}

/// Sends ping.
pub(in crate::check) async fn ping(context: &Context, session: &Session) {
    if session.revision.is_modern() || session.has_ended() {
        return;
    }
    let text = match session.connection.request("ping", Value::Null).await {
        Ok(answer) => match answer.outcome {
            Ok(_) => return,
            Err(error) => format!("ping was answered with the error {}: {}", error.code, one_line(&error.message, 120)),
        },
        Err(why) if why.is_closed() => {
            context.findings.add(session.finding(&wire::SERVER_CRASHED, format!("ping {}", why.in_words())));
            return;
        }
        Err(why) => format!("ping {}", why.in_words()),
    };
    context.findings.add(session.finding(&protocol::PING_UNANSWERED, text));
}

/// Sends an unknown method. A server may exit because of it, so no other probe follows.
pub(in crate::check) async fn unknown_method(context: &Context, session: &Session) {
    if session.has_ended() {
        return;
    }
    let found = match session.connection.request("toolgate/no_such_method", Value::Null).await {
        Ok(answer) => {
            let is_http_404 = answer.status.is_none_or(|status| status == 404);
            if session.revision.is_modern() && !is_http_404 {
                let text = format!("an unknown method was answered with HTTP {}", answer.status.unwrap_or_default());
                context.findings.add(session.finding(&http::HTTP_METHOD_UNKNOWN, text));
            }
            match answer.outcome {
                Err(error) if error.code == METHOD_NOT_FOUND => return,
                Err(error) => session.finding(
                    &protocol::METHOD_UNKNOWN_CODE,
                    format!(
                        "an unknown method was answered with the error {}: {}",
                        error.code,
                        one_line(&error.message, 120)
                    ),
                ),
                Ok(result) => session.finding(
                    &protocol::METHOD_UNKNOWN_SUCCEEDS,
                    format!("an unknown method was answered with the result {}", one_line(&result.to_string(), 120)),
                ),
            }
        }
        Err(why @ NoAnswer::Closed(_)) => {
            session.finding(&protocol::METHOD_UNKNOWN_CRASH, format!("an unknown method {}", why.in_words()))
        }
        Err(why @ (NoAnswer::TimedOut(_) | NoAnswer::Unreadable(_) | NoAnswer::Http(..))) => {
            session.finding(&protocol::METHOD_UNKNOWN_UNANSWERED, format!("an unknown method {}", why.in_words()))
        }
    };
    context.findings.add(found);
}

/// Sends a request of a version that does not exist, in the stateless revision.
pub(in crate::check) async fn unsupported_version(context: &Context, session: &Session) {
    if !session.revision.is_modern() {
        return;
    }
    let meta = json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "2099-01-01"}});
    let Ok(answer) = session.connection.request("tools/list", meta).await else { return };
    if answer.error_code() == Some(UNSUPPORTED_VERSION) {
        return;
    }
    let text = match &answer.outcome {
        Ok(_) => "a request of the version 2099-01-01 succeeded".to_owned(),
        Err(error) => format!(
            "a request of the version 2099-01-01 was answered with the error {}: {}",
            error.code,
            one_line(&error.message, 120)
        ),
    };
    context.findings.add(session.finding(&protocol::VERSION_ERROR_CODE, text));
}
