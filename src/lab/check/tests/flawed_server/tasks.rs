//! Calls of the flawed server that run as tasks: those of 2025-11-25, and the extension of the stateless revision. With
//! `--approval` a task waits for an approval.

use serde_json::{Value, json};

use super::Server;

const EXTENSION: &str = "io.modelcontextprotocol/tasks";
const ENVELOPE: &str = "io.modelcontextprotocol/authorization";

/// A task: it works at its first poll, and has ended at the second one.
#[derive(Default)]
pub(super) struct Task {
    polls: usize,
    is_cancelled: bool,
}

/// The answer to a request: the result, or code and text of an error.
type Reply = Result<Value, (i64, String)>;

/// What the server declares about tasks.
pub(super) fn declare(server: &Server, capabilities: &mut Value, is_modern: bool) {
    if server.has("--tasks") && is_modern {
        capabilities["extensions"] = json!({EXTENSION: {}, "io.modelcontextprotocol/tool-approval": {}});
    } else if server.has("--tasks") {
        capabilities["tasks"] = json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}});
    }
}

/// A call of the tool `report`.
pub(super) fn call(server: &Server, params: &Value) -> Reply {
    let done = || Ok(json!({"content": [{"type": "text", "text": "done"}]}));
    let meta = &params["_meta"];
    let is_modern = meta["io.modelcontextprotocol/protocolVersion"].is_string();
    if is_modern {
        let extensions = &meta["io.modelcontextprotocol/clientCapabilities"]["extensions"];
        if !extensions[EXTENSION].is_object() && !server.has("task-uninvited") {
            return Err((-32021, "the extension io.modelcontextprotocol/tasks is required".into()));
        }
    } else if params.get("task").is_none() {
        return if server.has("task-required-ignored") { done() } else { Err((-32601, "call it as a task".into())) };
    }
    if server.has("task-refused") {
        return done();
    }
    let mut tasks = server.tasks.lock().unwrap();
    let id = format!("task-{}", tasks.len() + 1);
    tasks.insert(id.clone(), Task::default());
    let status = if server.has("task-begins-pending") { "pending" } else { "working" };
    let mut task = state(server, &id, status, is_modern, true);
    if is_modern {
        task["resultType"] = json!("task");
        return Ok(task);
    }
    Ok(json!({"task": task}))
}

/// A request about a task.
pub(super) fn request(server: &Server, method: &str, params: &Value, is_modern: bool) -> Reply {
    let id = params["taskId"].as_str().unwrap_or_default();
    let mut tasks = server.tasks.lock().unwrap();
    if method == "tasks/list" {
        let all = tasks.keys().filter(|_| !server.has("task-unlisted"));
        return Ok(json!({"tasks": all.map(|id| state(server, id, "working", false, false)).collect::<Vec<_>>()}));
    }
    if server.has("task-unknown-succeeds") && !tasks.contains_key(id) {
        return Ok(state(server, id, "completed", is_modern, false));
    }
    let Some(task) = tasks.get_mut(id).filter(|_| !server.has("task-forgotten")) else {
        return Err((-32602, "unknown task".into()));
    };
    let has_ended = task.polls >= 2 || task.is_cancelled;
    match method {
        "tasks/cancel" if has_ended && !is_modern && !server.has("task-cancelled-late") => {
            Err((-32602, "the task has ended".into()))
        }
        "tasks/cancel" => {
            task.is_cancelled = !server.has("task-cancel-ignored");
            let status = if task.is_cancelled { "cancelled" } else { "working" };
            Ok(if is_modern { json!({}) } else { state(server, id, status, false, false) })
        }
        "tasks/result" if server.has("task-result-missing") => Err((-32603, "the result is gone".into())),
        "tasks/result" => {
            let mut result = json!({"content": [{"type": "text", "text": "done"}]});
            if !server.has("task-unrelated") {
                result["_meta"] = json!({"io.modelcontextprotocol/related-task": {"taskId": id}});
            }
            Ok(result)
        }
        _ => {
            task.polls += 1;
            let status = match task.polls {
                _ if task.is_cancelled => "cancelled",
                1 => "working",
                2 => "completed",
                _ if server.has("task-reopened") => "working",
                _ => "completed",
            };
            let mut state = state(server, id, status, is_modern, !server.has("approval-envelope-dropped"));
            if is_modern && status == "completed" && !server.has("task-result-missing") {
                state["result"] = result(server);
            }
            Ok(state)
        }
    }
}

fn result(server: &Server) -> Value {
    let mut result = json!({"content": [{"type": "text", "text": "done"}], "isError": false});
    if server.has("--approval") && !server.has("approval-disposition-missing") {
        result["_meta"] = json!({"io.modelcontextprotocol/tool-approval-disposition": "approved-executed"});
    }
    result
}

/// The envelope of a denial.
pub(super) fn envelope(server: &Server, remediation: &str) -> Value {
    let mut envelope = json!({"reason": "insufficient_authorization", "remediation": remediation});
    if server.has("denial-without-reason") {
        envelope.as_object_mut().unwrap().remove("reason");
    }
    json!({ENVELOPE: envelope})
}

fn state(server: &Server, id: &str, status: &str, is_modern: bool, is_told: bool) -> Value {
    let ttl = if is_modern { "ttlMs" } else { "ttl" };
    let time = "2026-11-28T12:00:00Z";
    let mut state = json!({"taskId": id, "status": status, "createdAt": time, "lastUpdatedAt": time, ttl: 60000,
        "pollInterval": 50});
    if server.has("task-incomplete") {
        state.as_object_mut().unwrap().remove(ttl);
    }
    if server.has("--approval") && status == "working" && is_told {
        state["_meta"] = envelope(server, "available");
    }
    state
}
