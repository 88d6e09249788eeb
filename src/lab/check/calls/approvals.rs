//! Calls that a server gates by an approval of its own: the draft extension `io.modelcontextprotocol/tool-approval`
//! (SEP-2848), and the envelope of a denial (SEP-2643).
//!
//! Both are drafts, so a server that uses neither is no worse, and every finding is a warning.

use serde_json::Value;

use crate::check::context::{Context, Session};
use crate::check::finding::one_line;
use crate::check::rules::{Rule, tasks as rules};
use crate::check::wire::answer::Answer;

const ENVELOPE: &str = "/_meta/io.modelcontextprotocol~1authorization";
const DISPOSITION: &str = "/_meta/io.modelcontextprotocol~1tool-approval-disposition";
const DISPOSITIONS: [&str; 4] = ["approved-executed", "denied-not-executed", "execution-error", "outcome-unknown"];
const REMEDIATIONS: [&str; 3] = ["available", "unavailable", "undisclosed"];

/// The envelope of a denial, in a result, a task, or the data of an error.
fn envelope(answer: &Answer) -> Option<&Value> {
    match &answer.outcome {
        Ok(result) => result.pointer(ENVELOPE),
        Err(error) => error.data.get("authorization"),
    }
}

/// Judges the answer to a call. Returns what the server says about a denial, if the call was denied.
pub(super) fn denial(context: &Context, session: &Session, name: &str, answer: &Answer) -> Option<String> {
    let envelope = envelope(answer)?;
    judge_envelope(context, session, name, envelope);
    if answer.result().and_then(|result| result.get("resultType")).is_some_and(|kind| kind == "task") {
        return Some("the call waits for an approval of the server".into());
    }
    let remediation = envelope.get("remediation").and_then(Value::as_str).unwrap_or("undisclosed");
    Some(format!("the server denied the call, remediation {}", one_line(remediation, 40)))
}

/// Judges a task that has not ended. Returns whether it waits for an approval.
pub(super) fn judge_pending(context: &Context, session: &Session, name: &str, task: &Value) -> bool {
    let Some(envelope) = task.pointer(ENVELOPE) else { return false };
    judge_envelope(context, session, name, envelope);
    true
}

/// Judges a task that waited for an approval and ended. Only a completed one has a disposition.
pub(super) fn judge_end(context: &Context, session: &Session, name: &str, task: &Value) {
    if task.get("status").is_none_or(|status| status != "completed") {
        return;
    }
    let report = |rule: &'static Rule, text: String| context.findings.add(session.finding(rule, text).tool(name));
    let result = task.get("result").unwrap_or(&Value::Null);
    let disposition = result.pointer(DISPOSITION).and_then(Value::as_str).unwrap_or_default();
    if !DISPOSITIONS.contains(&disposition) {
        let text = format!("the result of a call that waited for an approval has the disposition `{disposition}`");
        return report(&rules::APPROVAL_DISPOSITION, text);
    }
    let is_error = result.get("isError") == Some(&Value::Bool(true));
    if is_error != (disposition != "approved-executed") {
        let text = format!("the disposition is {disposition}, and isError is {is_error}");
        report(&rules::APPROVAL_DISPOSITION, text);
    }
    let is_denied = disposition == "denied-not-executed";
    if result.pointer(ENVELOPE).is_some() && !is_denied {
        let text = format!("the disposition is {disposition}, and the result has the envelope of a denial");
        report(&rules::DENIAL_INVALID, text);
    }
}

fn judge_envelope(context: &Context, session: &Session, name: &str, envelope: &Value) {
    let text = |name: &str| envelope.get(name).and_then(Value::as_str);
    let hints = envelope.get("remediationHints");
    let is_hint = |hint: &Value| hint.get("type").is_some_and(Value::is_string);
    let wrong = match () {
        () if text("reason").is_none_or(str::is_empty) => "it has no `reason`",
        () if envelope.get("remediation").is_some()
            && text("remediation").is_none_or(|one| !REMEDIATIONS.contains(&one)) =>
        {
            "its `remediation` is neither available, unavailable nor undisclosed"
        }
        () if hints.is_some_and(|hints| hints.as_array().is_none_or(|hints| !hints.iter().all(is_hint))) => {
            "its `remediationHints` are no list of objects with a `type`"
        }
        () => return,
    };
    let excerpt = one_line(&envelope.to_string(), 120);
    let found = session.finding(&rules::DENIAL_INVALID, format!("the envelope of a denial: {wrong}: {excerpt}"));
    context.findings.add(found.tool(name));
}
