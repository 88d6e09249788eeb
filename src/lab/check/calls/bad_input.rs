//! Calls that a server has to refuse: unknown tools, and arguments that its schema forbids.

use std::time::Duration;

use serde_json::Value;

use super::arguments::{self, BadArguments};
use super::caller::Caller;
use super::results;
use crate::check::finding::{Finding, one_line};
use crate::check::rules::calls as rules;
use crate::check::wire::answer::NoAnswer;

/// Calls of this time or longer are not repeated.
const SLOW: Duration = Duration::from_secs(2);
const UNKNOWN: &str = "toolgate_no_such_tool";

/// Calls a tool that does not exist.
pub(super) async fn unknown_tool(caller: &mut Caller<'_>) {
    let Some(answered) = caller.call(UNKNOWN, Some(&serde_json::json!({}))).await else { return };
    let revision = caller.revision;
    let (rule, text) = match answered {
        Ok(answer) if results::is_success(&answer) => {
            let text = format!("the call of `{UNKNOWN}` succeeded: {}", results::text(&answer));
            (
                if results::looks_failed(&answer) { &rules::ERROR_AS_SUCCESS } else { &rules::UNKNOWN_TOOL_SUCCEEDS },
                text,
            )
        }
        Ok(_) => return,
        Err(why) if why.is_closed() => {
            (&rules::CALL_CRASH, format!("the call of the unknown tool `{UNKNOWN}` {}", why.in_words()))
        }
        Err(why) => (&rules::CALL_UNANSWERED, format!("the call of the unknown tool `{UNKNOWN}` {}", why.in_words())),
    };
    caller.context.findings.add(Finding::new(rule, text).in_revision(rule, revision));
}

/// Calls a tool with bad arguments, one call for each mistake.
pub(super) async fn all(caller: &mut Caller<'_>, name: &str, schema: &Value, valid: Option<&Value>, took: Duration) {
    // Arguments that the schema allows take as long as a valid call.
    let all = arguments::bad(schema, valid).into_iter().filter(|bad| bad.is_invalid || took < SLOW);
    for bad in all {
        let Some(answered) = caller.call(name, bad.value.as_ref()).await else { return };
        let BadArguments { what, value, is_invalid } = bad;
        let is_silent = matches!(answered, Err(NoAnswer::TimedOut(_)));
        let shown = value.map_or(String::new(), |value| format!(" ({})", one_line(&value.to_string(), 80)));
        let (rule, text) = match answered {
            Err(why) if why.is_closed() => {
                (&rules::BAD_INPUT_CRASH, format!("a call with arguments {what}{shown} {}", why.in_words()))
            }
            Err(NoAnswer::Unreadable(_)) => continue,
            Err(why) => (&rules::CALL_UNANSWERED, format!("a call with arguments {what}{shown} {}", why.in_words())),
            Ok(answer) if is_invalid && results::is_success(&answer) => {
                let rule = if results::looks_failed(&answer) {
                    &rules::ERROR_AS_SUCCESS
                } else {
                    &rules::ARGUMENTS_UNVALIDATED
                };
                (rule, format!("a call with arguments {what}{shown} succeeded: {}", results::text(&answer)))
            }
            Ok(_) => continue,
        };
        let finding = Finding::new(rule, text).in_revision(rule, caller.revision).tool(name);
        caller.context.findings.add(finding);
        if is_silent {
            return;
        }
    }
}
