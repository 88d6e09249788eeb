//! Answers: the wire form of a resume, with results, decisions and answers. The names are those of the command line's
//! answers file.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};
use toolgate_core::id::CallId;
use toolgate_core::run::{
    Answer, Channel, Coverage, Decision, DecisionKind, ElicitationAnswer, HumanAnswer, Resume, Scope, TighterLimits,
    Unpause,
};
use toolgate_core::tool::{self, Arguments, Choice};
use utoipa::ToSchema;

use super::error::ServiceError;
use super::field_pointers::FieldPointers;

/// How many entries each list of a resume may have.
const MOST_GIVEN: usize = 1000;

/// Input for a run.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Resume)]
pub struct Answers {
    /// Results of external tools.
    #[serde(default)]
    results: Vec<GivenResult>,
    /// Decisions about calls that require approval; they need the scope `approvals:decide`.
    #[serde(default)]
    decisions: Vec<GivenDecision>,
    /// Answers to the model's questions.
    #[serde(default)]
    answers: Vec<GivenAnswer>,
    /// Answers to elicitation requests of MCP servers.
    #[serde(default)]
    inputs: Vec<GivenInput>,
    /// Whether to continue a paused run.
    #[serde(default, rename = "continue")]
    continues: bool,
    /// With `continue`: other limits of the run from now on, for example a higher `max_cost_usd` for a run that was paused at
    /// that limit. They may be higher than the agent's, and need the scope `approvals:decide`.
    #[serde(default)]
    #[schema(value_type = LimitsDescription)]
    limits: TighterLimits,
    /// Whether to allow a resume that leaves required actions open. Otherwise it has to complete them all.
    #[serde(default)]
    partial: bool,
    /// The version of the run that you saw; if the run has changed since, the resume is refused.
    expected_version: Option<u64>,
}

/// The result of an external tool: exactly one of `output`, `error` and `abandoned`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Result)]
pub struct GivenResult {
    /// The id of the call.
    #[schema(value_type = String)]
    call_id: CallId,
    /// The tool's output: any JSON value.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Value>)]
    output: Option<Value>,
    /// The error, which the model reads.
    error: Option<String>,
    /// `true` if you will not run the tool.
    #[serde(default)]
    abandoned: bool,
}

/// A decision about a call.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Decision)]
struct GivenDecision {
    /// The id of the call.
    #[schema(value_type = String)]
    call_id: CallId,
    /// The decision.
    decision: DecisionKindView,
    /// The scope of an approval: this call (`once`, the default), later ones of the same session, or of any session.
    #[serde(default)]
    scope: ScopeView,
    /// Which later calls an approval beyond `once` covers: those with the same `arguments` (the default), any of the `tool`,
    /// or those that meet a condition: `{"when": "args.amount < 100"}`.
    #[serde(rename = "match")]
    coverage: Option<CoverageView>,
    /// When an approval beyond `once` expires.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
    /// The reason, which the model reads after a denial.
    reason: Option<String>,
    /// Arguments that replace the model's.
    #[schema(value_type = Option<Object>)]
    edited_arguments: Option<Map<String, Value>>,
    /// The `digest` of the pending item that you decided about. If the item has changed since, the decision is
    /// refused.
    digest: Option<String>,
}

/// A decision about the approval in the path.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewDecision)]
pub struct NewDecision {
    /// The decision.
    decision: DecisionKindView,
    /// The scope of an approval: this call (`once`, the default), later ones of the same session, or of any session.
    #[serde(default)]
    scope: ScopeView,
    /// Which later calls an approval beyond `once` covers: those with the same `arguments` (the default), any of the `tool`,
    /// or those that meet a condition: `{"when": "args.amount < 100"}`.
    #[serde(rename = "match")]
    coverage: Option<CoverageView>,
    /// When an approval beyond `once` expires.
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
    /// The reason, which the model reads after a denial.
    reason: Option<String>,
    /// Arguments that replace the model's.
    #[schema(value_type = Option<Object>)]
    edited_arguments: Option<Map<String, Value>>,
    /// The `digest` of the approval that you decided about. If the call has changed since, the decision is
    /// refused.
    digest: Option<String>,
}

/// A decision.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = DecisionKind)]
enum DecisionKindView {
    /// The call may run.
    Approve,
    /// The call may not run.
    Deny,
}

/// The scope of an approval.
#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = GrantScope)]
enum ScopeView {
    /// Only this call.
    #[default]
    Once,
    /// Later calls of the same session.
    Session,
    /// Later calls of any session of the same agent and principal.
    Always,
}

/// Which later calls an approval beyond `once` covers.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Coverage)]
pub enum CoverageView {
    /// Any call of the tool.
    Tool,
    /// Calls with the same arguments.
    Arguments,
    /// Calls that meet this condition, a CEL expression as in policies.
    When(String),
}

/// A person's answer to a question of the model.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = HumanAnswer)]
struct GivenAnswer {
    /// The id of the call.
    #[schema(value_type = String)]
    call_id: CallId,
    /// The options that the person chose.
    #[serde(default)]
    chosen: Vec<String>,
    /// The person's answer as text.
    text: Option<String>,
}

/// Answers to the elicitation requests of one call.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ElicitationAnswer)]
struct GivenInput {
    /// The id of the call.
    #[schema(value_type = String)]
    call_id: CallId,
    /// The answers to all requests of the call, by the server's keys.
    answers: BTreeMap<String, ElicitationResponse>,
    /// Whether a call that was cancelled in progress (`repeats`) may be sent a second time.
    #[serde(default)]
    repeat: bool,
}

/// The answer to one elicitation request.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ElicitationResponse {
    /// The person's action.
    action: Action,
    /// The completed form; only with `accept`, and only for a form.
    #[schema(value_type = Option<Object>)]
    content: Option<Map<String, Value>>,
}

/// `accept`: the person answered; `decline`: the person refused; `cancel`: the person closed the request without a
/// choice.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ElicitationAction)]
enum Action {
    Accept,
    Decline,
    Cancel,
}

/// `"output": null` is an output; a missing field is no output.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl Answers {
    /// Whether it contains nothing for the run, which is then only read or resumed.
    pub fn is_nothing(&self) -> bool {
        let lists_are_empty =
            self.results.is_empty() && self.decisions.is_empty() && self.answers.is_empty() && self.inputs.is_empty();
        lists_are_empty && !self.continues
    }

    /// Whether it changes limits of the run.
    pub fn raises_limits(&self) -> bool {
        self.limits != TighterLimits::default()
    }

    /// Refuses longer lists than any run needs.
    fn fits(&self) -> Result<(), ServiceError> {
        let lists = [
            ("results", self.results.len()),
            ("decisions", self.decisions.len()),
            ("answers", self.answers.len()),
            ("inputs", self.inputs.len()),
        ];
        match lists.into_iter().find(|(_, length)| *length > MOST_GIVEN) {
            Some((list, _)) => {
                Err(ServiceError::invalid(format!("/{list}"), format!("at most {MOST_GIVEN} in one request")))
            }
            None => Ok(()),
        }
    }

    /// The places in the body that refer to each call.
    pub fn places(&self) -> FieldPointers {
        let results = self.results.iter().enumerate().map(|(index, given)| (&given.call_id, "results", index));
        let decisions = self.decisions.iter().enumerate().map(|(index, given)| (&given.call_id, "decisions", index));
        let answers = self.answers.iter().enumerate().map(|(index, given)| (&given.call_id, "answers", index));
        let inputs = self.inputs.iter().enumerate().map(|(index, given)| (&given.call_id, "inputs", index));
        FieldPointers::new(results.chain(decisions).chain(answers).chain(inputs))
    }

    /// Whether it decides about calls that require approval.
    pub fn has_decisions(&self) -> bool {
        !self.decisions.is_empty()
    }

    /// The input for the runner, in the name of a caller.
    pub(crate) fn resume(self, by: &str, via: Channel) -> Result<Resume, ServiceError> {
        self.fits()?;
        if self.raises_limits() && !self.continues {
            let detail = "limits change when a paused run continues; add `continue: true`";
            return Err(ServiceError::invalid("/limits", detail));
        }
        let mut answers = Vec::new();
        for (index, result) in self.results.into_iter().enumerate() {
            answers.push(result.answer().map_err(|_| {
                let detail = "give exactly one of `output`, `error` and `abandoned`";
                ServiceError::invalid(format!("/results/{index}"), detail)
            })?);
        }
        for decision in self.decisions {
            let (call_id, verdict) = decision.parts();
            let digest = verdict.digest().map(str::to_owned);
            answers.push((call_id, Answer::Decision { decision: Box::new(verdict.decision(by, via)), digest }));
        }
        for GivenAnswer { call_id, chosen, text } in self.answers {
            let choice = Choice { chosen, text };
            answers.push((call_id, HumanAnswer { choice, by: by.to_owned(), via }.into()));
        }
        for GivenInput { call_id, answers: reactions, repeat } in self.inputs {
            let reactions = reactions.into_iter().map(|(key, answer)| (key, answer.into())).collect();
            let given = ElicitationAnswer { reactions, by: by.to_owned(), via, repeat };
            answers.push((call_id, given.into()));
        }
        let unpause = self.continues.then(|| Unpause { by: by.to_owned(), via, limits: self.limits });
        Ok(Resume { answers, unpause, partial: self.partial, expected_version: self.expected_version })
    }
}

/// Limits of a run. Limits that are left out are those that the run has without them.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Limits)]
#[allow(dead_code)] // the core reads it; this describes what it reads
pub struct LimitsDescription {
    /// Turns with tools, and rejected answers. When the limit is reached, the model answers with what it has.
    max_tool_interactions: Option<u32>,
    /// Turns of the model.
    max_iterations: Option<u32>,
    /// Calls sent to MCP servers.
    max_mcp_calls: Option<u32>,
    /// Input and output tokens.
    max_tokens: Option<u64>,
    /// US dollars.
    max_cost_usd: Option<f64>,
    /// Seconds from the start, including pending time.
    deadline_s: Option<u64>,
    /// Consecutive turns without a usable result.
    max_corrections: Option<u32>,
    /// Attempts at one model call.
    max_attempts: Option<u32>,
    /// Bytes of text that one result adds to the messages.
    max_result_bytes: Option<u64>,
}

impl GivenResult {
    /// The call, and its result. The error is the call, if the entry does not give exactly one result.
    pub fn answer(self) -> Result<(CallId, Answer), CallId> {
        let answer = match (self.output, self.error, self.abandoned) {
            (Some(output), None, false) => Answer::output(output),
            (None, Some(error), false) => Answer::error(error),
            (None, None, true) => Answer::abandoned(),
            _ => return Err(self.call_id),
        };
        Ok((self.call_id, answer))
    }
}

impl GivenDecision {
    /// The call, and the decision about it.
    fn parts(self) -> (CallId, NewDecision) {
        let Self { call_id, decision, scope, coverage, expires_at, reason, edited_arguments, digest } = self;
        (call_id, NewDecision { decision, scope, coverage, expires_at, reason, edited_arguments, digest })
    }
}

impl NewDecision {
    /// The digest of the pending item that the caller saw.
    pub(crate) fn digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }

    /// The decision for the runner.
    pub(crate) fn decision(self, by: &str, via: Channel) -> Decision {
        let (scope, answer) = (self.scope.into(), self.decision.into());
        Decision {
            via,
            reason: self.reason,
            scope,
            coverage: coverage(scope, self.coverage.map(Coverage::from)),
            expires_at: self.expires_at,
            edited_arguments: self.edited_arguments.map(Arguments::Object),
            ..Decision::new(answer, by)
        }
    }
}

impl From<DecisionKindView> for DecisionKind {
    fn from(decision: DecisionKindView) -> Self {
        match decision {
            DecisionKindView::Approve => Self::Approve,
            DecisionKindView::Deny => Self::Deny,
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

impl From<ElicitationResponse> for tool::ElicitationResponse {
    fn from(ElicitationResponse { action, content }: ElicitationResponse) -> Self {
        let action = match action {
            Action::Accept => tool::Action::Accept,
            Action::Decline => tool::Action::Decline,
            Action::Cancel => tool::Action::Cancel,
        };
        Self { action, content }
    }
}

impl From<CoverageView> for Coverage {
    fn from(coverage: CoverageView) -> Self {
        match coverage {
            CoverageView::Tool => Self::Tool,
            CoverageView::Arguments => Self::Arguments,
            CoverageView::When(when) => Self::When(when),
        }
    }
}

/// The coverage of an approval. One beyond its call covers the same arguments unless it says otherwise: the widest choice
/// must be explicit.
pub fn coverage(scope: Scope, requested: Option<Coverage>) -> Coverage {
    requested.unwrap_or(match scope {
        Scope::Once => Coverage::Tool,
        Scope::Session | Scope::Always => Coverage::Arguments,
    })
}
