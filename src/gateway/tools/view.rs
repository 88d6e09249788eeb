//! A tool as the API shows it.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::core::policy::{Finding, Judgement, Policy, Subject, Verdict};
use crate::core::tool::{LeftOut, Tool};
use crate::gateway::runs::{AnnotationsView, OriginView};

/// What an agent is offered.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Tools)]
pub(super) struct ToolsView {
    /// `list`.
    pub(super) object: &'static str,
    /// The agent.
    pub(super) agent: String,
    /// The tools, in the order in which a model is shown them.
    pub(super) data: Vec<ToolView>,
    /// What is not offered, and why.
    pub(super) left_out: Vec<LeftOutView>,
}

/// A tool.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Tool)]
pub(super) struct ToolView {
    /// The name the model sees.
    name: String,
    /// `tool`.
    object: &'static str,
    /// Who runs it.
    origin: OriginView,
    /// How its server is reached, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoint: Option<String>,
    /// What it does, for the model.
    description: String,
    /// JSON Schema of its arguments, verbatim.
    #[schema(value_type = Object)]
    input_schema: Value,
    /// JSON Schema of its result, verbatim, if declared.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    output_schema: Option<Value>,
    /// The server's hints.
    annotations: AnnotationsView,
    /// Whether the operator believes these hints.
    trusted: bool,
    /// Of the calls in one reply only those of the highest priority run.
    priority: i32,
    /// Seconds there are for whoever answers its calls, if it is answered from outside.
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline_s: Option<u64>,
    /// What becomes of a call, as far as it is known without arguments.
    verdict: VerdictView,
    /// The policy rule that says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    /// Why.
    why: String,
    /// Hash of its definition; a changed tool is another tool.
    definition: String,
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ToolVerdict)]
enum VerdictView {
    /// It runs.
    Allow,
    /// A person decides.
    Ask,
    /// It is refused.
    Deny,
    /// It depends on the arguments.
    Depends,
}

/// Something that is not offered.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LeftOut)]
pub(super) struct LeftOutView {
    /// The server.
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    /// The tool; without it the whole server, or the rest of its list, is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    /// What is wrong and what to do about it.
    reason: String,
}

impl ToolView {
    /// A tool, and what a policy says of it.
    pub(super) fn of(policy: &Policy, subject: &Subject<'_>) -> Self {
        let tool: &Tool = subject.tool;
        let judgement = policy.judge(subject);
        Self {
            verdict: VerdictView::of(policy, subject, &judgement),
            rule: judgement.rule,
            why: judgement.why,
            name: tool.name.to_string(),
            object: "tool",
            origin: OriginView::of(&tool.origin),
            endpoint: tool.endpoint.as_ref().and_then(|endpoint| endpoint.told.clone()),
            description: tool.description.clone(),
            input_schema: (*tool.input_schema).clone(),
            output_schema: tool.output_schema.as_deref().cloned(),
            annotations: AnnotationsView::of(&tool.annotations),
            trusted: tool.trusted,
            priority: tool.priority,
            deadline_s: tool.deadline_s,
            definition: tool.hash.clone(),
        }
    }
}

impl VerdictView {
    fn of(policy: &Policy, subject: &Subject<'_>, judgement: &Judgement) -> Self {
        let waits_for_arguments = |rule: &String| {
            let findings = policy.explain(subject).into_iter();
            findings.into_iter().any(|(found, finding)| found.id == *rule && finding == Finding::Depends)
        };
        match judgement.verdict {
            Verdict::Allow => Self::Allow,
            Verdict::Ask if judgement.rule.as_ref().is_some_and(waits_for_arguments) => Self::Depends,
            Verdict::Ask => Self::Ask,
            Verdict::Deny => Self::Deny,
        }
    }
}

impl LeftOutView {
    pub(super) fn of(left: &LeftOut) -> Self {
        let LeftOut { server, tool, reason } = left.clone();
        Self { server: server.map(|server| server.to_string()), tool, reason }
    }
}
