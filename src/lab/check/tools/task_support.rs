//! Support of tasks in the definition of a tool, against the capabilities of its server.

use serde_json::Value;

use super::tool_judge::ToolJudge;
use crate::check::rules::tools as rules;

/// Judges `execution.taskSupport`. The stateless revision has no such member.
pub(super) fn judge(judge: &ToolJudge<'_>) {
    let session = judge.session;
    if session.revision.is_modern() || session.capabilities().pointer("/tasks/requests/tools/call").is_some() {
        return;
    }
    let place = "/execution/taskSupport";
    if let Some(support @ ("required" | "optional")) = judge.tool.pointer(place).and_then(Value::as_str) {
        let text = format!("taskSupport is {support}, and the capabilities lack `tasks.requests.tools.call`");
        judge.report(&rules::TASK_SUPPORT_UNDECLARED, place, text);
    }
}
