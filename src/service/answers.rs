//! Answers: the wire form of a resume over HTTP, and of an answers file of the command line.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer};
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
use super::tagged_object::TaggedObject;

/// The most answers in one resume.
const MAX_ANSWERS: usize = 1000;

/// Input for a run.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Resume)]
pub struct Answers {
    /// Answers to pending items, each with the `type` that its item requires.
    #[serde(default)]
    answers: Vec<GivenAnswer>,
    /// Whether to continue a paused run.
    #[serde(default, rename = "continue")]
    continues: bool,
    /// With `continue`: other limits of the run from now on, for example a higher `max_cost_usd` for a run that was paused at
    /// that limit. They may be higher than the agent's, and need the scope `approvals:decide`.
    #[serde(default)]
    #[schema(value_type = LimitsDescription)]
    limits: TighterLimits,
    /// Whether to allow a resume that leaves required actions open. Otherwise it has to complete all those that the caller
    /// may complete.
    #[serde(default)]
    partial: bool,
    /// The version of the run that you saw; if the run has changed since, the resume is refused.
    expected_version: Option<u64>,
}

/// An answer to a pending item.
#[derive(Debug, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schema(as = Answer)]
enum GivenAnswer {
    /// The result of an external tool.
    Result(GivenResult),
    /// A decision about a call that requires approval; it needs the scope `approvals:decide`.
    Decision(GivenDecision),
    /// A person's answer to a question of the model.
    Answer(GivenChoice),
    /// Answers to the elicitation requests of one call.
    Elicitation(GivenElicitation),
}

impl<'de> Deserialize<'de> for GivenAnswer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = TaggedObject::deserialize(deserializer)?;
        match object.kind() {
            "result" => object.read().map(Self::Result),
            "decision" => object.read().map(Self::Decision),
            "answer" => object.read().map(Self::Answer),
            "elicitation" => object.read().map(Self::Elicitation),
            _ => object.refuse(&["result", "decision", "answer", "elicitation"]),
        }
    }
}

/// The result of an external tool: exactly one of `output`, `error` and `abandoned`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ResultAnswer)]
struct GivenResult {
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
#[schema(as = DecisionAnswer)]
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
pub enum DecisionKindView {
    /// The call may run.
    Approve,
    /// The call may not run.
    Deny,
}

/// The scope of an approval.
#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = GrantScope)]
pub enum ScopeView {
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
#[schema(as = QuestionAnswer)]
struct GivenChoice {
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
struct GivenElicitation {
    /// The id of the call.
    #[schema(value_type = String)]
    call_id: CallId,
    /// The responses to all requests of the call, by the server's keys.
    responses: BTreeMap<String, ElicitationResponse>,
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
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl Answers {
    /// Whether it contains nothing for the run, which is then only read or resumed.
    pub fn is_nothing(&self) -> bool {
        self.answers.is_empty() && !self.continues
    }

    /// Whether it changes limits of the run.
    pub fn raises_limits(&self) -> bool {
        self.limits != TighterLimits::default()
    }

    /// The places in the body that refer to each call.
    pub fn places(&self) -> FieldPointers {
        FieldPointers::new(self.answers.iter().map(|answer| (answer.call_id(), answer.content_field())))
    }

    /// Whether it decides about calls that require approval.
    pub fn has_decisions(&self) -> bool {
        self.answers.iter().any(|answer| matches!(answer, GivenAnswer::Decision(_)))
    }

    /// The input for the runner. `by` names the author of each answer, by its index in the list.
    pub fn resume(self, by: impl Fn(usize) -> String, via: Channel) -> Result<Resume, ServiceError> {
        if self.answers.len() > MAX_ANSWERS {
            return Err(ServiceError::invalid("/answers", format!("at most {MAX_ANSWERS} in one request")));
        }
        if self.raises_limits() && !self.continues {
            let detail = "limits change when a paused run continues; add `continue: true`";
            return Err(ServiceError::invalid("/limits", detail));
        }
        let author_of_pause = self.answers.len();
        let given = self.answers.into_iter().enumerate();
        let answers = given.map(|(index, answer)| {
            let refused = |detail| ServiceError::invalid(format!("/answers/{index}"), detail);
            answer.answer(by(index), via).map_err(refused)
        });
        let answers = answers.collect::<Result<_, _>>()?;
        let unpause = self.continues.then(|| Unpause { by: by(author_of_pause), via, limits: self.limits });
        Ok(Resume {
            answers,
            unpause,
            partial: self.partial,
            expected_version: self.expected_version,
            ..Resume::default()
        })
    }
}

impl GivenAnswer {
    fn call_id(&self) -> &CallId {
        match self {
            Self::Result(GivenResult { call_id, .. })
            | Self::Decision(GivenDecision { call_id, .. })
            | Self::Answer(GivenChoice { call_id, .. })
            | Self::Elicitation(GivenElicitation { call_id, .. }) => call_id,
        }
    }

    /// The field with the content that the run may refuse; empty if the entry answers several requests.
    fn content_field(&self) -> &'static str {
        match self {
            Self::Result(_) => "output",
            Self::Decision(_) => "edited_arguments",
            Self::Answer(_) | Self::Elicitation(_) => "",
        }
    }

    /// The call, and the answer for the runner.
    fn answer(self, by: String, via: Channel) -> Result<(CallId, Answer), &'static str> {
        Ok(match self {
            Self::Result(GivenResult { call_id, output, error, abandoned }) => match (output, error, abandoned) {
                (Some(output), None, false) => (call_id, Answer::output(output)),
                (None, Some(error), false) => (call_id, Answer::error(error)),
                (None, None, true) => (call_id, Answer::abandoned()),
                _ => return Err("give exactly one of `output`, `error` and `abandoned`"),
            },
            Self::Decision(given) => {
                let (call_id, decision) = given.parts();
                let digest = decision.digest().map(str::to_owned);
                (call_id, Answer::Decision { decision: Box::new(decision.decision(&by, via)), digest })
            }
            Self::Answer(GivenChoice { call_id, chosen, text }) => {
                (call_id, HumanAnswer { choice: Choice { chosen, text }, by, via }.into())
            }
            Self::Elicitation(GivenElicitation { call_id, responses, repeat }) => {
                let responses = responses.into_iter().map(|(key, given)| (key, given.into()));
                (call_id, ElicitationAnswer { reactions: responses.collect(), by, via, repeat }.into())
            }
        })
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
    /// US dollars, as decimal text or as a number.
    #[schema(value_type = Option<String>, pattern = r"^[0-9]{1,12}(\.[0-9]{1,12})?$", example = "2.5")]
    max_cost_usd: Option<String>,
    /// Seconds from the start, including pending time.
    deadline_s: Option<u64>,
    /// Consecutive turns without a usable result.
    max_corrections: Option<u32>,
    /// Attempts at one model call.
    max_attempts: Option<u32>,
    /// Bytes of text that one result adds to the messages.
    max_result_bytes: Option<u64>,
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
