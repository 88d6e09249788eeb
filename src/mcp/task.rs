//! MCP tasks (extension `io.modelcontextprotocol/tasks`): calls that a server continues on its own, and how they are
//! polled, answered and cancelled.

use std::collections::BTreeMap;

use rmcp::model::{
    CancelTaskParams, CancelTaskRequest, ClientRequest, GetTaskParams, GetTaskRequest, UpdateTaskParams,
    UpdateTaskRequest,
};
use serde_json::{Map, Value};
use toolgate_core::run::AnsweredElicitation;
use toolgate_core::tool::{CallReply, ElicitationRequest, FailureKind, Outcome, Question, TaskHandle};
use toolgate_ports::{McpTask, TaskAction};

use super::answer::Answer;
use super::call_transport::LastRequest;
use super::connection::Connection;
use super::fault::Fault;
use super::limits::Limits;
use super::measure::{excerpt, shortened};
use super::{answer, elicitation, task_handle};

/// The errors of a server that knows no such task (invalid params), or no tasks (no such method). Any other error says
/// nothing about the task: a server that is busy now is asked again.
const UNKNOWN: [i32; 2] = [-32602, -32601];

/// Polls or cancels a task. An error states why the server could not be asked, and nothing about the task.
pub(super) async fn ask(
    connection: &Connection,
    task: &McpTask<'_>,
    meta: Map<String, Value>,
    limits: Limits,
    sent: &LastRequest,
) -> Result<CallReply, Fault> {
    let request = match task.action {
        TaskAction::Poll => ClientRequest::GetTaskRequest(GetTaskRequest::new(GetTaskParams::new(&task.task.id))),
        TaskAction::Stop => {
            ClientRequest::CancelTaskRequest(CancelTaskRequest::new(CancelTaskParams::new(&task.task.id)))
        }
    };
    let result = match connection.exchange(request, meta, limits, sent).await {
        Err(Fault::Refused { code, message, .. }) if UNKNOWN.contains(&code) => {
            connection.answered_elicitations.forget(&task.task.id);
            return Ok(gone(task, code, &message).into());
        }
        result => result?,
    };
    match task.action {
        TaskAction::Poll => news(connection, task.task, result),
        TaskAction::Stop => {
            connection.answered_elicitations.forget(&task.task.id);
            Ok(stopped(task, result).into())
        }
    }
}

/// The outcome of a task whose cancellation the server acknowledged. The acknowledgement does not say that the task
/// ended, unless it has the status of the task.
fn stopped(task: &McpTask<'_>, mut result: Value) -> Outcome {
    let (server, id) = (task.server, &task.task.id);
    let because = "because the caller stopped waiting";
    let message = match result.get("status").and_then(Value::as_str) {
        Some("completed") => match result.get_mut("result").map(Value::take) {
            Some(result) => return completed(Some(result)),
            None => {
                format!("the task `{id}` had been completed when the MCP server `{server}` was to cancel it, {because}")
            }
        },
        Some("failed") => {
            format!("the task `{id}` had failed when the MCP server `{server}` was to cancel it, {because}")
        }
        Some("cancelled") => format!("the task `{id}` was cancelled, {because}"),
        Some(_) | None => format!(
            "the MCP server `{server}` accepted the cancellation of the task `{id}`, {because}. Whether it was done is \
             unknown"
        ),
    };
    Outcome::failed(FailureKind::Cancelled, message)
}

/// Sends the answers to the questions of a task. The task continues and is polled later, whether or not they could be
/// sent: an error states why not, and the reply is then [`unsent_reply`].
pub(super) async fn send_answers(
    connection: &Connection,
    task: &TaskHandle,
    answered: &AnsweredElicitation,
    meta: Map<String, Value>,
    limits: Limits,
    sent: &LastRequest,
) -> Result<CallReply, Fault> {
    let reactions = &answered.given.reactions;
    let params = UpdateTaskParams::new(&task.id, elicitation::responses(reactions));
    let request = ClientRequest::UpdateTaskRequest(UpdateTaskRequest::new(params));
    connection.exchange(request, meta, limits, sent).await?;
    connection.answered_elicitations.note(&task.id, reactions.keys());
    Ok(CallReply::Task(task.clone()))
}

/// The reply for a task whose answers could not be sent. The task continues, and asks again if it still needs them.
pub(super) fn unsent_reply(task: &TaskHandle, why: &str) -> CallReply {
    let message = format!("the answers could not be sent: {why}");
    CallReply::Task(TaskHandle { message: Some(shortened(&message)), ..task.clone() })
}

/// Reads the answer to `tasks/get`.
fn news(connection: &Connection, known: &TaskHandle, result: Value) -> Result<CallReply, Fault> {
    let Value::Object(mut result) = result else { return Err(Fault::Unreadable(excerpt(&result))) };
    let task = TaskHandle { id: known.id.clone(), ..task_handle::read(&result).map_err(Fault::Unreadable)? };
    let status = result.get("status").and_then(Value::as_str).unwrap_or_default().to_owned();
    let reply = match status.as_str() {
        "working" => return Ok(CallReply::Task(task)),
        "input_required" => return asks(connection, task, &result),
        "completed" => completed(result.remove("result")),
        "failed" => failed(&task, result.get("error")),
        "cancelled" => {
            let message = format!("the MCP server cancelled the task `{}`{}", task.id, words(&task));
            Outcome::failed(FailureKind::Cancelled, message)
        }
        _ => {
            let status = shortened(&status);
            return Err(Fault::Unreadable(format!("the task has the status `{status}`, which toolgate does not know")));
        }
    };
    connection.answered_elicitations.forget(&task.id);
    Ok(reply.into())
}

fn completed(result: Option<Value>) -> Outcome {
    let nested = |why: String| {
        Outcome::failed(FailureKind::Unreadable, format!("the task is completed, but its result is none: {why}"))
    };
    match result.map(answer::read) {
        Some(Ok(Answer::Output(output))) => Outcome::Returned(output),
        Some(Ok(Answer::Again { .. } | Answer::Task(_))) => nested("it asks for something again".into()),
        Some(Err(fault)) => nested(fault.to_string()),
        None => nested("it has no `result`".into()),
    }
}

fn failed(task: &TaskHandle, error: Option<&Value>) -> Outcome {
    let part = |name: &str| error.and_then(|error| error.get(name));
    let message = part("message").and_then(Value::as_str).map_or_else(|| words(task), |message| format!(": {message}"));
    let code = part("code").and_then(Value::as_i64).map(|code| format!(" (JSON-RPC error {code})"));
    let message = format!("the task `{}` failed at the MCP server{message}{}", task.id, code.unwrap_or_default());
    Outcome::failed(FailureKind::Refused, message)
}

/// A question stays in the server's answers until the server has processed our answer, and must not be asked twice.
fn asks(connection: &Connection, task: TaskHandle, result: &Map<String, Value>) -> Result<CallReply, Fault> {
    let Some(Value::Object(requests)) = result.get("inputRequests") else {
        return Err(Fault::Unreadable("the task wants input, but has no `inputRequests`".into()));
    };
    let mut questions: BTreeMap<String, Question> = elicitation::questions(requests).map_err(Fault::Demands)?;
    connection.answered_elicitations.leave_unanswered(&task.id, &mut questions);
    if questions.is_empty() {
        return Ok(CallReply::Task(task));
    }
    Ok(CallReply::NeedsInput(ElicitationRequest {
        questions,
        state: None,
        task: Some(task),
        restarts: false,
        interrupted: false,
    }))
}

fn gone(task: &McpTask<'_>, code: i32, message: &str) -> Outcome {
    let kept = match task.task.ttl_ms {
        Some(ttl) => format!("; it said that it keeps it for {} s", ttl / 1000),
        None => String::new(),
    };
    let message = format!(
        "the MCP server `{}` does not know the task `{}` any more: {message} (JSON-RPC error {code}){kept}. Whether it \
         was done is unknown",
        task.server, task.task.id
    );
    Outcome::failed(FailureKind::Unavailable, message)
}

fn words(task: &TaskHandle) -> String {
    task.message.as_ref().map(|message| format!(": {message}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_completed_task_ends_with_the_result_of_its_call() {
        let result = json!({"content": [{"type": "text", "text": "done"}], "isError": true});
        let Outcome::Returned(output) = completed(Some(result)) else { panic!("returned") };
        assert!(output.is_error);
        for (result, complaint) in [
            (None, "it has no `result`"),
            (Some(json!({})), "neither `content` nor"),
            (Some(json!({"resultType": "task", "taskId": "u"})), "asks for something again"),
        ] {
            let Outcome::Failed(failure) = completed(result) else { panic!("failed") };
            assert!(failure.kind == FailureKind::Unreadable && failure.message.contains(complaint), "{failure:?}");
        }
    }
}
