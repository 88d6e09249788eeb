//! Answers from the command line or a file, parsed into the runner's `Resume` input.

mod file;
mod inputs;
mod questions;

use std::collections::BTreeSet;

use clap::ValueEnum;
use serde_json::Value;

use super::error::CliError;
use crate::core::id::CallId;
use crate::core::run::{Channel, Coverage, Decision, DecisionKind, Resume, Scope, TighterLimits, Unpause};
use crate::core::tool::Arguments;
use crate::service::coverage;
pub(super) use file::read;
pub(super) use inputs::{inputs, reactions, repeat};
pub(super) use questions::{choice, model_question, questions};

/// `CALL_ID=VALUE`, or `CALL_ID` alone where a value may be left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CallArg {
    pub(super) call: CallId,
    /// The text after the first `=`.
    pub(super) value: Option<String>,
}

/// Parses the value of a flag that requires `=VALUE`.
pub(super) fn with_value(text: &str) -> Result<CallArg, String> {
    let addressed = addressed(text)?;
    match addressed.value {
        Some(_) => Ok(addressed),
        None => Err("write CALL_ID=VALUE, for example call_1='{\"status\": \"done\"}'".into()),
    }
}

/// Parses the value of a flag whose `=VALUE` is optional.
pub(super) fn addressed(text: &str) -> Result<CallArg, String> {
    let (call, value) = match text.split_once('=') {
        Some((call, value)) => (call, Some(value.to_owned())),
        None => (text, None),
    };
    if call.is_empty() {
        return Err("the call id is missing; `toolgate runs show` lists the required actions".into());
    }
    Ok(CallArg { call: CallId::from(call), value })
}

/// Parses JSON; text that is not JSON becomes a string, unless it begins like an object or a list.
pub(super) fn json_or_text(text: &str) -> Result<Value, String> {
    match serde_json::from_str(text) {
        Err(error) if text.trim_start().starts_with(['{', '[']) => {
            Err(format!("not JSON: {error}; a text with a bracket at its beginning is written in quotation marks"))
        }
        read => Ok(read.unwrap_or_else(|_| Value::String(text.to_owned()))),
    }
}

/// The error of arguments that are another value.
pub(super) const NOT_AN_OBJECT: &str = "arguments are a JSON object, for example {\"city\": \"Oslo\"}";

/// Parses arguments that the user typed to replace those of the model.
pub(super) fn edited_arguments(text: &str) -> Result<Arguments, String> {
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(object)) => Ok(Arguments::Object(object)),
        Ok(_) => Err(NOT_AN_OBJECT.into()),
        Err(error) => Err(format!("not JSON: {error}")),
    }
}

/// The values of `--match`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum GrantMatch {
    Arguments,
    Tool,
}

impl From<GrantMatch> for Coverage {
    fn from(matches: GrantMatch) -> Self {
        match matches {
            GrantMatch::Arguments => Self::Arguments,
            GrantMatch::Tool => Self::Tool,
        }
    }
}

/// An approval by the user of this terminal.
pub(super) fn approval(scope: Scope, matches: Option<Coverage>, edited_arguments: Option<Arguments>) -> Decision {
    let coverage = coverage(scope, matches);
    Decision {
        scope,
        coverage,
        edited_arguments,
        via: Channel::CommandLine,
        ..Decision::new(DecisionKind::Approve, who())
    }
}

/// A denial by the user of this terminal.
pub(super) fn denial(reason: Option<String>) -> Decision {
    let reason = reason.filter(|reason| !reason.trim().is_empty());
    Decision { reason, via: Channel::CommandLine, ..Decision::new(DecisionKind::Deny, who()) }
}

/// The user of this process, as the account of the operating system: `OS account ada`. The words keep it apart from a
/// principal of the HTTP API, which a key or token proves.
pub(super) fn who() -> String {
    format!("OS account {}", account())
}

/// The account that the process runs as. The environment does not count, because the user can set it to anything.
#[cfg(unix)]
fn account() -> String {
    let id = nix::unistd::Uid::effective();
    let user = nix::unistd::User::from_uid(id).ok().flatten();
    user.map_or_else(|| id.to_string(), |user| user.name)
}

#[cfg(not(unix))]
fn account() -> String {
    std::env::var("USERNAME").ok().filter(|name| !name.is_empty()).unwrap_or_else(|| "without a name".into())
}

/// The end of a pause, by the user of this terminal, and other limits from then on.
pub(super) fn unpause(limits: TighterLimits) -> Unpause {
    Unpause { by: who(), via: Channel::CommandLine, limits }
}

/// Merges the answers of flags and file. The runner rejects a call that is answered in both; a call that flags both
/// approve and edit is one decision.
pub(super) fn merge(flags: Resume, file: Option<Resume>) -> Resume {
    let mut merged = flags;
    if let Some(file) = file {
        merged.answers.extend(file.answers);
        merged.unpause = merged.unpause.or(file.unpause);
        merged.partial |= file.partial;
        merged.expected_version = merged.expected_version.or(file.expected_version);
    }
    merged
}

/// Decisions with the arguments that `--edit` sets; an edit alone approves once.
pub(super) fn decisions(
    approved_for: [(&[String], Scope); 3],
    matches: Option<Coverage>,
    denied: &[CallArg],
    edits: &[CallArg],
) -> Result<Vec<(CallId, Decision)>, CliError> {
    let edited = |call: &CallId| -> Result<Option<Arguments>, CliError> {
        let Some(edit) = edits.iter().find(|edit| edit.call == *call) else { return Ok(None) };
        let text = edit.value.as_deref().unwrap_or_default();
        edited_arguments(text).map(Some).map_err(|why| CliError::usage(format!("--edit {call}: {why}")))
    };
    let mut decisions = Vec::new();
    let mut approved = BTreeSet::new();
    for (calls, scope) in approved_for {
        for call in calls.iter().map(|call| CallId::from(call.as_str())) {
            let decision = approval(scope, matches.clone(), edited(&call)?);
            approved.insert(call.clone());
            decisions.push((call, decision));
        }
    }
    for edit in edits.iter().filter(|edit| !approved.contains(&edit.call)) {
        decisions.push((edit.call.clone(), approval(Scope::Once, None, edited(&edit.call)?)));
    }
    decisions.extend(denied.iter().map(|denied| (denied.call.clone(), denial(denied.value.clone()))));
    Ok(decisions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_value_is_everything_after_the_first_equals_sign() {
        let read = with_value("call_1={\"a\": \"b=c\"}").unwrap();
        assert_eq!((read.call.as_str(), read.value.as_deref()), ("call_1", Some("{\"a\": \"b=c\"}")));
        assert!(with_value("call_1").is_err());
        assert!(addressed("=x").is_err());
    }

    #[test]
    fn text_that_is_not_json_is_text() {
        assert_eq!(json_or_text("{\"a\":1}"), Ok(json!({"a": 1})));
        assert_eq!(json_or_text("it is late"), Ok(json!("it is late")));
        assert!(json_or_text("{\"status\": \"refunded\"").is_err_and(|error| error.starts_with("not JSON")));
    }

    #[test]
    fn an_edit_alone_approves_and_beside_an_approval_changes_it() {
        let edits = [with_value("a={\"x\":1}").unwrap(), with_value("b={\"x\":2}").unwrap()];
        let decisions =
            decisions([(&["a".into()], Scope::Session), (&[], Scope::Once), (&[], Scope::Always)], None, &[], &edits)
                .unwrap();
        let decided: Vec<_> = decisions
            .iter()
            .map(|(call, decision)| {
                (call.as_str(), decision.scope, decision.edited_arguments.as_ref().unwrap().to_value())
            })
            .collect();
        assert_eq!(decided, [("a", Scope::Session, json!({"x": 1})), ("b", Scope::Once, json!({"x": 2}))]);
    }

    #[test]
    fn an_edit_that_is_not_an_object_names_the_call() {
        let error = decisions(
            [Scope::Once, Scope::Session, Scope::Always].map(|scope| (&[][..], scope)),
            None,
            &[],
            &[with_value("a=[1]").unwrap()],
        )
        .unwrap_err();
        assert_eq!(error.to_string(), "--edit a: arguments are a JSON object, for example {\"city\": \"Oslo\"}");
    }
}
