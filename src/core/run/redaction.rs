//! Known secrets in events (FEATURES 3.47): one rule for prompts, results and replies. A known secret in a text is replaced
//! before the event is journaled, so no model, stream, export or span gets it. A value that is sent on as it is (arguments
//! of a call, a form for a server) is never altered: such a call or input is refused instead.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Answer, Ending, Event, Input, Started, UndoCall};
use crate::chat::{Message, Part, Reply};
use crate::error::Failure;
use crate::redact::Secrets;
use crate::tool::{Arguments, Outcome, ToolOutput};

/// The arguments of a call that contained a secret. They are no JSON, so the call is rejected.
const WITHHELD: &str = "(withheld: they contained a secret of the configuration, which a model must not use)";

impl Event {
    /// The event without known secrets.
    pub fn without_secrets(mut self, secrets: &Secrets) -> Self {
        if let Some(failure) = self.failure_mut() {
            of_failure(failure, secrets);
        }
        if secrets.is_empty() {
            return self;
        }
        match &mut self {
            Self::Started(started) => of_start(Arc::make_mut(started), secrets),
            Self::ModelReplied { reply } => {
                if let Some(clean) = of_reply(reply, secrets) {
                    *reply = Arc::new(clean);
                }
            }
            Self::CallCompleted { outcome, stderr, .. } => {
                if let Some(clean) = of_outcome(outcome, secrets) {
                    *outcome = Arc::new(clean);
                }
                for line in stderr {
                    replace(line, secrets);
                }
            }
            Self::MessageAdded { message } => {
                of_message(message, secrets);
            }
            Self::CompactionCompleted { summary, .. } => {
                replace(summary, secrets);
            }
            Self::ApprovalDecided { decision, .. } => of_option(&mut decision.reason, secrets),
            Self::Paused { reason, .. } => of_option(reason, secrets),
            Self::Ended { ending } => of_cancellation(ending, secrets),
            Self::CompensationStarted { ending, undo } => of_compensation(ending, undo, secrets),
            Self::Waited { waits } => {
                for wait in waits {
                    of_option(&mut wait.error, secrets);
                }
            }
            Self::Resumed { .. }
            | Self::Queued
            | Self::Admitted
            | Self::Interrupted { .. }
            | Self::ToolsListed { .. }
            | Self::ApprovalsResolved { .. }
            | Self::ModelCalled { .. }
            | Self::ModelCallRefused { .. }
            | Self::ModelFailed { .. }
            | Self::OutputValidated { .. }
            | Self::TierSelected { .. }
            | Self::CallChecked { .. }
            | Self::CallDrifted { .. }
            | Self::Extended { .. }
            | Self::Expired { .. }
            | Self::QuestionAnswered { .. }
            | Self::CallsStarted { .. }
            | Self::InputRequested { .. }
            | Self::InputRequired { .. }
            | Self::InputGiven { .. }
            | Self::TaskStarted { .. }
            | Self::CompactionStarted { .. }
            | Self::CompactionFailed { .. }
            | Self::Unpaused { .. } => {}
        }
        self
    }

    fn failure_mut(&mut self) -> Option<&mut Failure> {
        if let Self::ModelFailed { error, .. }
        | Self::CompactionFailed { error, .. }
        | Self::CompensationStarted { ending: Ending::Failed { error }, .. }
        | Self::Ended { ending: Ending::Failed { error } } = self
        {
            Some(error)
        } else {
            None
        }
    }
}

/// The text of a malformed reply is also cut.
fn of_failure(failure: &mut Failure, secrets: &Secrets) {
    if let Some(details) = &mut failure.details {
        let clean = secrets.redacted(&details.raw).into_owned();
        details.replace(clean);
    }
}

impl Outcome {
    /// The outcome without known secrets.
    pub fn without_secrets(self, secrets: &Secrets) -> Self {
        if secrets.is_empty() { self } else { of_outcome(&self, secrets).unwrap_or(self) }
    }
}

impl Input {
    /// The calls whose answers contain a secret in a value that is sent on unaltered.
    pub fn calls_with_secrets(&self, secrets: &Secrets) -> Vec<crate::id::CallId> {
        let Self::Resume(resume) = self else { return Vec::new() };
        let has_secret = |answer: &Answer| match answer {
            Answer::Decision { decision, .. } => {
                decision.edited_arguments.as_ref().is_some_and(|arguments| is_in(&arguments.to_value(), secrets))
            }
            Answer::Elicitation(given) => given.reactions.values().any(|reaction| {
                reaction.content.as_ref().is_some_and(|form| is_in(&Value::Object(form.clone()), secrets))
            }),
            Answer::Question(answer) => is_in(&Value::String(answer.choice.to_words()), secrets),
            Answer::Result(_) => false,
        };
        let found = resume.answers.iter().filter(|(_, answer)| !secrets.is_empty() && has_secret(answer));
        found.map(|(call, _)| call.clone()).collect()
    }
}

fn of_start(started: &mut Started, secrets: &Secrets) {
    of_message(&mut started.input, secrets);
    for message in &mut started.history {
        of_message(message, secrets);
    }
    of_map(&mut started.metadata, secrets);
}

/// The provider's own form of a message repeats its text, and does not survive a change of it.
fn of_message(message: &mut Message, secrets: &Secrets) -> bool {
    let changed = of_parts(&mut message.content, secrets);
    if changed {
        message.provider_state = None;
    }
    changed
}

fn of_cancellation(ending: &mut Ending, secrets: &Secrets) {
    if let Ending::Cancelled { reason, partial_reply } = ending {
        of_option(reason, secrets);
        of_option(partial_reply, secrets);
    }
}

fn of_compensation(ending: &mut Ending, undo: &mut [UndoCall], secrets: &Secrets) {
    of_cancellation(ending, secrets);
    for undo in undo.iter_mut().filter(|undo| is_in(&undo.call.arguments.to_value(), secrets)) {
        undo.call.arguments = Arguments::Malformed(WITHHELD.into());
    }
}

fn of_reply(reply: &Reply, secrets: &Secrets) -> Option<Reply> {
    let mut clean = reply.clone();
    let is_quoted =
        reply.provider_state.as_ref().is_some_and(|state| state.items.iter().any(|item| is_in(item, secrets)));
    let changed = of_parts(&mut clean.content, secrets);
    (changed || is_quoted).then(|| Reply { provider_state: None, ..clean })
}

fn of_outcome(outcome: &Outcome, secrets: &Secrets) -> Option<Outcome> {
    let mut clean = outcome.clone();
    let changed = match &mut clean {
        Outcome::Returned(ToolOutput { content, structured, .. }) => {
            let in_structure = structured.as_mut().is_some_and(|value| of_value(value, secrets));
            of_parts(content, secrets) | in_structure
        }
        Outcome::Failed(failure) => replace(&mut failure.message, secrets),
        Outcome::Unknown => false,
    };
    changed.then_some(clean)
}

fn of_parts(parts: &mut [Part], secrets: &Secrets) -> bool {
    parts.iter_mut().fold(false, |changed, part| changed | of_part(part, secrets))
}

fn of_part(part: &mut Part, secrets: &Secrets) -> bool {
    match part {
        Part::Text { text } | Part::Reasoning { text } => replace(text, secrets),
        Part::Resource { uri, text, .. } => {
            replace(uri, secrets) | text.as_mut().is_some_and(|text| replace(text, secrets))
        }
        Part::ToolUse { input, .. } => {
            let found = is_in(&input.to_value(), secrets);
            if found {
                *input = Arguments::Malformed(WITHHELD.into());
            }
            found
        }
        Part::ToolResult { content, .. } => of_parts(content, secrets),
        Part::Image(media) | Part::Audio(media) => media.url.as_mut().is_some_and(|url| replace(url, secrets)),
    }
}

fn of_value(value: &mut Value, secrets: &Secrets) -> bool {
    match value {
        Value::String(text) => replace(text, secrets),
        Value::Array(items) => items.iter_mut().fold(false, |changed, item| changed | of_value(item, secrets)),
        Value::Object(members) => of_map(members, secrets),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn of_map(members: &mut Map<String, Value>, secrets: &Secrets) -> bool {
    members.values_mut().fold(false, |changed, member| changed | of_value(member, secrets))
}

fn of_option(text: &mut Option<String>, secrets: &Secrets) {
    if let Some(text) = text {
        replace(text, secrets);
    }
}

fn is_in(value: &Value, secrets: &Secrets) -> bool {
    of_value(&mut value.clone(), secrets)
}

/// Replaces the secrets in a text. Returns whether there were any.
fn replace(text: &mut String, secrets: &Secrets) -> bool {
    let Cow::Owned(clean) = secrets.redacted(text) else { return false };
    let changed = clean != *text;
    *text = clean;
    changed
}
