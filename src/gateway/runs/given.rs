//! What a run is given, as it is written in a request. The names are those of the command line's file of answers.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::places::Places;
use crate::core::id::CallId;
use crate::core::run::{Answer, Channel, Coverage, Decision, HumanAnswer, InputGiven, Scope};
use crate::core::tool::{Arguments, Choice, Outcome, Reactions};
use crate::gateway::access::Caller;
use crate::gateway::problem::Problem;
use crate::runner::{ResultFor, Resume};

/// How many entries each list of what is given may have.
const MOST_GIVEN: usize = 1000;

/// What a run is given.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Resume)]
pub(in crate::gateway) struct Given {
    /// Results of external tools.
    #[serde(default)]
    results: Vec<GivenResult>,
    /// Decisions about calls that wait for approval; they want the scope `approvals:decide`.
    #[serde(default)]
    pub(super) decisions: Vec<GivenDecision>,
    /// Answers to questions of the model.
    #[serde(default)]
    answers: Vec<GivenAnswer>,
    /// Answers to what servers of calls want to know.
    #[serde(default)]
    inputs: Vec<GivenInput>,
    /// Whether it is fine to leave something open. Otherwise everything that is owed is to be given at once.
    #[serde(default)]
    partial: bool,
    /// The version of the run that you saw; another one is refused.
    expected_version: Option<u64>,
}

/// The result of an external tool: exactly one of `output`, `error` and `abandoned`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Result)]
struct GivenResult {
    /// The call.
    #[schema(value_type = String)]
    call_id: CallId,
    /// What the tool returned: any JSON value.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Value>)]
    output: Option<Value>,
    /// Why it failed, for the model.
    error: Option<String>,
    /// Whether nobody will run it.
    #[serde(default)]
    abandoned: bool,
}

/// A decision about a call.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Decision)]
pub(super) struct GivenDecision {
    /// The call.
    #[schema(value_type = String)]
    call_id: CallId,
    /// Yes or no.
    decision: AnswerView,
    /// How far a yes reaches: this call (`once`, the default), later ones of the same session, or of any.
    #[serde(default)]
    scope: ScopeView,
    /// Which later calls a wider yes covers: those with the same `arguments` (the default), or any of the `tool`.
    covers: Option<CoverageView>,
    /// Until when a wider yes holds.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
    /// Why; the model reads it when the answer is no.
    reason: Option<String>,
    /// Arguments to use instead of the model's.
    #[schema(value_type = Option<Object>)]
    edited_arguments: Option<Map<String, Value>>,
    /// The digest of what you saw; a decision about anything else is refused.
    seen: Option<String>,
}

/// A decision about what is named elsewhere.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Verdict)]
pub(in crate::gateway) struct GivenVerdict {
    /// Yes or no.
    decision: AnswerView,
    /// How far a yes reaches: this call (`once`, the default), later ones of the same session, or of any.
    #[serde(default)]
    scope: ScopeView,
    /// Which later calls a wider yes covers: those with the same `arguments` (the default), or any of the `tool`.
    covers: Option<CoverageView>,
    /// Until when a wider yes holds.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
    /// Why; the model reads it when the answer is no.
    reason: Option<String>,
    /// Arguments to use instead of the model's.
    #[schema(value_type = Option<Object>)]
    edited_arguments: Option<Map<String, Value>>,
    /// The digest of what you saw; a decision about anything else is refused.
    seen: Option<String>,
}

/// Yes or no.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Answer)]
enum AnswerView {
    /// Yes.
    Approve,
    /// No.
    Deny,
}

/// How far a yes reaches.
#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = GrantScope)]
enum ScopeView {
    /// This call.
    #[default]
    Once,
    /// Later calls of the same session.
    Session,
    /// Later calls of any session of the same agent and principal.
    Always,
}

/// Which later calls a wider yes covers.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Coverage)]
enum CoverageView {
    /// Any of the tool.
    Tool,
    /// Those with the same arguments.
    Arguments,
}

/// What a person answered to the model.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = HumanAnswer)]
struct GivenAnswer {
    /// The call.
    #[schema(value_type = String)]
    call_id: CallId,
    /// The options they chose.
    #[serde(default)]
    chosen: Vec<String>,
    /// What they said in their own words.
    text: Option<String>,
}

/// What is answered to a server.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = InputGiven)]
struct GivenInput {
    /// The call.
    #[schema(value_type = String)]
    call_id: CallId,
    /// The reactions to all its questions, by the server's keys.
    #[schema(value_type = std::collections::BTreeMap<String, super::reactions::ReactionDescription>)]
    answers: Reactions,
    /// Whether a call that had begun when it was cancelled (`repeats`) may be sent a second time.
    #[serde(default)]
    repeat: bool,
}

/// `"output": null` is an output; a missing one is none.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl Given {
    /// Whether there is nothing in it for the run, which is then only looked at or driven on.
    pub(super) fn is_nothing(&self) -> bool {
        self.results.is_empty() && self.decisions.is_empty() && self.answers.is_empty() && self.inputs.is_empty()
    }

    /// Refuses more than any run is owed.
    fn fits(&self) -> Result<(), Problem> {
        let lists = [
            ("results", self.results.len()),
            ("decisions", self.decisions.len()),
            ("answers", self.answers.len()),
            ("inputs", self.inputs.len()),
        ];
        match lists.into_iter().find(|(_, length)| *length > MOST_GIVEN) {
            Some((list, _)) => {
                Err(Problem::invalid(format!("/{list}"), format!("at most {MOST_GIVEN} in one request")))
            }
            None => Ok(()),
        }
    }

    /// Where in the body each call is spoken of.
    pub(super) fn places(&self) -> Places {
        let results = self.results.iter().enumerate().map(|(index, given)| (&given.call_id, "results", index));
        let decisions = self.decisions.iter().enumerate().map(|(index, given)| (&given.call_id, "decisions", index));
        let answers = self.answers.iter().enumerate().map(|(index, given)| (&given.call_id, "answers", index));
        let inputs = self.inputs.iter().enumerate().map(|(index, given)| (&given.call_id, "inputs", index));
        Places::of(results.chain(decisions).chain(answers).chain(inputs))
    }

    /// As the runner takes it, in the name of the caller.
    pub(super) fn resume(self, caller: &Caller) -> Result<Resume, Problem> {
        self.fits()?;
        let by = caller.name.as_ref();
        let mut resume = Resume { partial: self.partial, expected_version: self.expected_version, ..Resume::default() };
        for (index, result) in self.results.into_iter().enumerate() {
            resume.results.push(result.outcome(index)?);
        }
        for decision in self.decisions {
            let (call_id, verdict) = decision.parts();
            resume.seen.extend(verdict.seen().map(|seen| (call_id.clone(), seen.to_owned())));
            resume.decisions.push((call_id, verdict.decision(by)));
        }
        let answer = |GivenAnswer { call_id, chosen, text }| {
            let choice = Choice { chosen, text };
            (call_id, HumanAnswer { choice, by: by.to_owned(), via: Channel::Api })
        };
        resume.answers = self.answers.into_iter().map(answer).collect();
        let given = |GivenInput { call_id, answers, repeat }| {
            (call_id, InputGiven { reactions: answers, by: by.to_owned(), via: Channel::Api, repeat })
        };
        resume.inputs = self.inputs.into_iter().map(given).collect();
        Ok(resume)
    }
}

impl GivenResult {
    fn outcome(self, index: usize) -> Result<(CallId, Outcome), Problem> {
        match (self.output, self.error, self.abandoned) {
            (Some(output), None, false) => Ok(ResultFor::output(self.call_id, output)),
            (None, Some(error), false) => Ok(ResultFor::error(self.call_id, error)),
            (None, None, true) => Ok(ResultFor::abandoned(self.call_id)),
            _ => Err(Problem::invalid(
                format!("/results/{index}"),
                "give exactly one of `output`, `error` and `abandoned`",
            )),
        }
    }
}

impl GivenDecision {
    /// The call, and what is decided about it.
    fn parts(self) -> (CallId, GivenVerdict) {
        let Self { call_id, decision, scope, covers, expires_at, reason, edited_arguments, seen } = self;
        (call_id, GivenVerdict { decision, scope, covers, expires_at, reason, edited_arguments, seen })
    }
}

impl GivenVerdict {
    /// The digest of what was seen.
    pub(in crate::gateway) fn seen(&self) -> Option<&str> {
        self.seen.as_deref()
    }

    /// As the runner takes it.
    pub(in crate::gateway) fn decision(self, by: &str) -> Decision {
        let (scope, answer) = (self.scope.into(), self.decision.into());
        let usual = if scope == Scope::Once { Coverage::Tool } else { Coverage::Arguments };
        Decision {
            via: Channel::Api,
            reason: self.reason,
            scope,
            covers: self.covers.map_or(usual, Coverage::from),
            expires_at: self.expires_at,
            edited_arguments: self.edited_arguments.map(Arguments::Object),
            ..Decision::new(answer, by)
        }
    }
}

impl From<AnswerView> for Answer {
    fn from(answer: AnswerView) -> Self {
        match answer {
            AnswerView::Approve => Self::Approve,
            AnswerView::Deny => Self::Deny,
        }
    }
}

impl From<ScopeView> for Scope {
    fn from(scope: ScopeView) -> Self {
        match scope {
            ScopeView::Once => Self::Once,
            ScopeView::Session => Self::Session,
            ScopeView::Always => Self::Always,
        }
    }
}

impl From<CoverageView> for Coverage {
    fn from(coverage: CoverageView) -> Self {
        match coverage {
            CoverageView::Tool => Self::Tool,
            CoverageView::Arguments => Self::Arguments,
        }
    }
}
