//! The API view of a tool.

use serde::Serialize;
use serde_json::Value;
use toolgate_core::policy::{Policy, Subject, ToolJudgement, Verdict};
use toolgate_core::tool::{LeftOut, Tool, ToolRef};
use toolgate_runner::Agent;
use utoipa::ToSchema;

use crate::runs::pending::{AnnotationsView, ToolDescription};

/// The tools of an agent.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Tools)]
pub struct ToolsView {
    /// Always `list`.
    object: &'static str,
    /// The name of the agent.
    agent: String,
    /// The tools, in the order in which a model sees them.
    data: Vec<ToolView>,
    /// The tools and servers that are not available, and why.
    skipped: Vec<SkippedView>,
}

/// A tool.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Tool)]
pub(super) struct ToolView {
    /// Always `tool`.
    object: &'static str,
    /// The tool.
    #[schema(value_type = ToolDescription)]
    tool: ToolRef,
    /// The name that the model sees.
    tool_name: String,
    /// The endpoint of its server, in words.
    endpoint: Option<String>,
    /// The description for the model.
    description: String,
    /// JSON Schema of the arguments, verbatim.
    #[schema(value_type = Object)]
    input_schema: Value,
    /// JSON Schema of the result, verbatim, if declared.
    #[schema(value_type = Option<Object>)]
    output_schema: Option<Value>,
    /// The server's hints.
    annotations: AnnotationsView,
    /// Whether the operator trusts these hints.
    trusted: bool,
    /// The tool's priority. Only the calls of the highest priority in a reply run.
    priority: i32,
    /// How many seconds the client application has to answer a call, for an external tool.
    deadline_s: Option<u64>,
    /// The policy's verdict about a call, as far as it is known without arguments.
    verdict: VerdictView,
    /// The policy rule with that verdict.
    rule: Option<String>,
    /// The reason for the verdict.
    reason: String,
    /// Hash of the tool's definition; a changed tool counts as another tool.
    definition_hash: String,
}

/// The policy's verdict about a call.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ToolVerdict)]
enum VerdictView {
    /// The call runs.
    Allow,
    /// The call requires approval.
    Ask,
    /// The call is refused.
    Deny,
    /// The verdict depends on the arguments.
    Depends,
}

/// A tool or server that is not available.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SkippedTool)]
pub(super) struct SkippedView {
    /// The server.
    server: Option<String>,
    /// The server's name of the tool; if it is null, the whole server is not available, or the rest of its tools.
    name: Option<String>,
    /// The error and its remedy.
    reason: String,
}

impl ToolsView {
    /// The view of these tools of an agent, and of those that are not available.
    pub fn new<'a>(
        agent: &Agent,
        tools: impl IntoIterator<Item = Subject<'a>>,
        skipped: impl IntoIterator<Item = &'a LeftOut>,
    ) -> Self {
        Self {
            object: "list",
            agent: agent.name.to_string(),
            data: tools.into_iter().map(|tool| ToolView::new(&agent.policy, &tool)).collect(),
            skipped: skipped.into_iter().map(SkippedView::new).collect(),
        }
    }
}

impl ToolView {
    /// The view of a tool, with the policy's verdict.
    fn new(policy: &Policy, subject: &Subject<'_>) -> Self {
        let tool: &Tool = subject.tool;
        let ToolJudgement { judgement, depends_on_arguments } = policy.judge_tool(subject);
        Self {
            verdict: VerdictView::new(judgement.verdict, depends_on_arguments),
            rule: judgement.rule,
            reason: judgement.reason,
            object: "tool",
            tool: ToolRef::new(tool),
            tool_name: tool.name.to_string(),
            endpoint: tool.endpoint.as_ref().map(|endpoint| endpoint.description.clone()),
            description: tool.description.clone(),
            input_schema: (*tool.input_schema).clone(),
            output_schema: tool.output_schema.as_deref().cloned(),
            annotations: AnnotationsView::new(&tool.annotations),
            trusted: tool.trusted,
            priority: tool.priority,
            deadline_s: tool.deadline_s,
            definition_hash: tool.hash.clone(),
        }
    }
}

impl VerdictView {
    fn new(verdict: Verdict, depends_on_arguments: bool) -> Self {
        match verdict {
            Verdict::Allow => Self::Allow,
            Verdict::Ask if depends_on_arguments => Self::Depends,
            Verdict::Ask => Self::Ask,
            Verdict::Deny => Self::Deny,
        }
    }
}

impl SkippedView {
    fn new(left: &LeftOut) -> Self {
        let LeftOut { server, tool, reason } = left.clone();
        Self { server: server.map(|server| server.to_string()), name: tool, reason }
    }
}
