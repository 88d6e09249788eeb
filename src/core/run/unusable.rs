//! Validation of a person's input: values that make no sense, or that are too large for any run. They are refused with
//! reasons before anything is written.
//!
//! A person's input has the same size limit as a tool result, because it ends up in the same places: in the journal,
//! and in the model's context. JSON Schemas are not checked here.

use serde::Serialize;

use super::{Call, Coverage, Decision, DecisionKind, ElicitationAnswer, HumanAnswer, ResumeError, Run, Scope};
use crate::chat::{Message, Part};
use crate::id::CallId;
use crate::json;
use crate::policy::Condition;
use crate::tool::{Arguments, Ask, ElicitationRequest, ElicitationResponses, Outcome, ToolOutput};

impl Run {
    /// The problem with a decision about a call: other arguments, a condition or a text that can never be used.
    pub fn unusable_decision(&self, id: &CallId, decision: &Decision) -> Option<ResumeError> {
        let edited = || self.unusable_edit(id, decision);
        // Replacing long arguments must not require shortening them.
        let replaced = decision.edited_arguments.as_ref().and_then(|_| self.call(id)).map(|call| call.arguments());
        let given = (&decision.by, &decision.reason, &decision.edited_arguments);
        let oversized = || self.oversized(id, "the decision", &given, replaced.map_or(0, size));
        let reach = || unusable_reach(id, decision).or_else(|| self.unusable_condition(id, decision));
        edited().or_else(oversized).or_else(reach)
    }

    /// The problem with a person's arguments, if the call can never run with them.
    fn unusable_edit(&self, id: &CallId, decision: &Decision) -> Option<ResumeError> {
        let edited = decision.edited_arguments.as_ref()?;
        let is_usable = self.call(id).is_none_or(|call| call.is_callable_with(edited));
        let problems = match (decision.answer, edited) {
            (DecisionKind::Deny, _) => "make no sense with a denial; leave them out".to_owned(),
            (DecisionKind::Approve, Arguments::Malformed(_)) => "are not a JSON object".to_owned(),
            (DecisionKind::Approve, Arguments::Object(object)) if is_too_deep(object.values()) => too_deep("are"),
            (DecisionKind::Approve, Arguments::Object(_)) if !is_usable => {
                "are not a valid question to the user".to_owned()
            }
            (DecisionKind::Approve, Arguments::Object(_)) => return None,
        };
        Some(invalid(id, "the edited arguments", problems))
    }

    /// The problem with the condition of a grant: it cannot be used, or the call itself does not meet it.
    fn unusable_condition(&self, id: &CallId, decision: &Decision) -> Option<ResumeError> {
        let Coverage::When(text) = &decision.coverage else { return None };
        let call = self.call(id)?;
        let arguments = decision.edited_arguments.as_ref().unwrap_or_else(|| call.arguments());
        let problems = match (Condition::for_grant(text), &call.tool) {
            (Err(error), _) => format!("cannot be used: {error}"),
            (Ok(when), Some(tool)) if when.holds_for(&self.subject(tool, arguments)) => return None,
            (Ok(_), _) => "does not hold for the call itself, or cannot be evaluated for it".to_owned(),
        };
        Some(invalid(id, "the condition", problems))
    }

    /// The problem with an answer to the model's question.
    pub(super) fn unusable_answer(&self, id: &CallId, answer: &HumanAnswer) -> Option<ResumeError> {
        let what = "the answer to the question";
        let arguments = self.call(id)?.arguments().as_object()?;
        let invalid_reason = || Ask::parse(arguments).ok()?.invalid_reason(&answer.choice);
        self.oversized(id, what, answer, 0).or_else(|| Some(invalid(id, what, invalid_reason()?)))
    }

    /// The problem with a message to the run. Attachments are not counted.
    pub(super) fn unusable_message(&self, message: &Message) -> Option<ResumeError> {
        let most = self.started.spec.limits.result_bytes();
        let said: usize = message.content.iter().filter_map(Part::as_text).map(str::len).sum();
        (said > most).then(|| ResumeError::Oversized { what: "the message".to_owned(), most })
    }

    /// The problem with the name of the person who extends a deadline.
    pub(super) fn unusable_extension(&self, id: &CallId, by: &str) -> Option<ResumeError> {
        self.oversized(id, "the extension", &by, 0)
    }

    /// The answers to a server with the defaults of its forms, if they answer exactly its questions.
    pub(super) fn with_defaults(
        &self,
        id: &CallId,
        given: &ElicitationAnswer,
    ) -> Result<ElicitationAnswer, ResumeError> {
        let what = "the answers to the server";
        let refused = |problems: String| Err(invalid(id, what, problems));
        let Some(needed) = self.call(id).and_then(Call::elicitation) else {
            return Err(ResumeError::UnknownCall { call_id: id.clone() });
        };
        if let Some(key) = given.reactions.keys().find(|key| !needed.questions.contains_key(*key)) {
            return refused(format!("answer `{key}`, which was not asked; asked are: {}", keys(needed)));
        }
        let mut reactions = ElicitationResponses::new();
        for (key, question) in &needed.questions {
            let Some(reaction) = given.reactions.get(key) else {
                return refused(format!("leave `{key}` open; asked are: {}", keys(needed)));
            };
            if let Some(invalid_reason) = question.invalid_reason(reaction) {
                return refused(format!("cannot be used: `{key}` {invalid_reason}"));
            }
            if is_too_deep(reaction.content.iter().flat_map(|content| content.values())) {
                return refused(format!("{} at `{key}`", too_deep("are")));
            }
            reactions.insert(key.clone(), question.with_defaults(reaction.clone()));
        }
        match self.oversized(id, what, given, 0) {
            Some(refusal) => Err(refusal),
            None => Ok(ElicitationAnswer { reactions, ..given.clone() }),
        }
    }

    /// The refusal of input that is larger than a result may be in this run, plus an allowance.
    fn oversized(&self, id: &CallId, what: &str, given: &impl Serialize, more: usize) -> Option<ResumeError> {
        let most = self.started.spec.limits.result_bytes().saturating_add(more);
        let problems =
            || format!("cannot be used: more than {most} bytes; say it with less, or raise `max_result_bytes`");
        (size(given) > most).then(|| invalid(id, what, problems()))
    }
}

/// The problem with a result that no journal could return.
pub(super) fn unusable_result(id: &CallId, outcome: &Outcome) -> Option<ResumeError> {
    let Outcome::Returned(ToolOutput { structured: Some(value), .. }) = outcome else { return None };
    json::is_deeper_than(value, json::MAX_DEPTH).then(|| invalid(id, "the result", too_deep("is")))
}

/// The problem with a scope that a single call, or a denial, cannot have.
fn unusable_reach(id: &CallId, decision: &Decision) -> Option<ResumeError> {
    let has_reach = decision.expires_at.is_some() || decision.coverage != Default::default();
    let problems = match decision.answer {
        DecisionKind::Deny if decision.scope != Scope::Once || has_reach => {
            "makes no sense with a denial; a denial is of one call"
        }
        DecisionKind::Approve if decision.scope == Scope::Once && has_reach => {
            "is this call alone; an expiry, and what is covered, are for `session` and `always`"
        }
        DecisionKind::Approve | DecisionKind::Deny => return None,
    };
    Some(invalid(id, "the scope", problems.to_owned()))
}

fn invalid(id: &CallId, what: &str, problems: String) -> ResumeError {
    ResumeError::Invalid { call_id: id.clone(), what: what.to_owned(), at: String::new(), problems }
}

/// Whether an object with these members is nested deeper than a journal can return.
fn is_too_deep<'a>(mut members: impl Iterator<Item = &'a serde_json::Value>) -> bool {
    members.any(|member| json::is_deeper_than(member, json::MAX_DEPTH - 1))
}

fn too_deep(is: &str) -> String {
    format!("{is} nested deeper than {} levels", json::MAX_DEPTH)
}

/// Its size in a journal, in bytes.
fn size(given: &impl Serialize) -> usize {
    serde_json::to_vec(given).map_or(usize::MAX, |text| text.len())
}

fn keys(needed: &ElicitationRequest) -> String {
    needed.questions.keys().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ")
}
