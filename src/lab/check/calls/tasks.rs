//! Calls that run as tasks: the tasks of 2025-11-25, and the extension `io.modelcontextprotocol/tasks` since then.
//!
//! One task is followed to its end, a second one is cancelled. A call that waits for an approval is such a task too.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::approvals;
use super::caller::Caller;
use super::results;
use crate::check::context::{Context, Session};
use crate::check::finding::one_line;
use crate::check::rules::{Rule, tasks as rules};
use crate::check::wire::answer::Answer;

/// The extension that clients announce with each request.
const EXTENSION: &str = "io.modelcontextprotocol/tasks";
const RELATED: &str = "/_meta/io.modelcontextprotocol~1related-task/taskId";
const ENDS: [&str; 3] = ["completed", "failed", "cancelled"];
const UNENDED: [&str; 2] = ["working", "input_required"];
const UNKNOWN: &str = "toolgate-no-such-task";
const INVALID_PARAMS: i64 = -32602;
const METHOD_NOT_FOUND: i64 = -32601;
/// The lifetime that is requested for a task.
const TTL_MS: u64 = 60_000;
/// Bounds of the interval between two polls, whatever the server suggests.
const POLLS: (u64, u64) = (50, 1_000);
/// The most pages of tasks that are read.
const MAX_PAGES: usize = 20;

/// Whether a tool runs as a task, by its definition and by the capabilities of its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Support {
    /// Never, or the server does not say so.
    None,
    /// If the client asks for it.
    Optional,
    /// Always.
    Required,
    /// If the server decides so: the extension.
    ServerDirected,
}

impl Support {
    /// The support of a tool.
    pub(super) fn of(session: &Session, tool: &Value) -> Self {
        let capabilities = session.capabilities();
        if session.revision.is_modern() {
            let is_declared = capabilities.pointer("/extensions").and_then(|all| all.get(EXTENSION)).is_some();
            return if is_declared { Self::ServerDirected } else { Self::None };
        }
        let is_declared = capabilities.pointer("/tasks/requests/tools/call").is_some();
        match tool.pointer("/execution/taskSupport").and_then(Value::as_str) {
            Some("required") if is_declared => Self::Required,
            Some("optional") if is_declared => Self::Optional,
            _ => Self::None,
        }
    }
}

/// The tasks of one tool.
struct Tasks<'a> {
    context: &'a Context,
    session: Session,
    name: &'a str,
    is_modern: bool,
}

/// Runs the tool as a task. Returns why it could not be judged to its end, if so.
pub(super) async fn examine(
    caller: &mut Caller<'_>,
    tool: &Value,
    name: &str,
    arguments: &Value,
    support: Support,
) -> Option<String> {
    let session = caller.session().await?;
    let (context, is_modern) = (caller.context, session.revision.is_modern());
    let tasks = Tasks { context, session, name, is_modern };
    if support == Support::Required {
        tasks.without_task(caller.params(name, Some(arguments))).await;
    }
    let created = tasks.create(caller.params(name, Some(arguments)), support).await?;
    let is_gated = approvals::judge_pending(context, &tasks.session, name, &created);
    let last = tasks.follow(&created, is_gated).await?;
    if !ends(&last) {
        let waits = if is_gated { "waits for an approval" } else { "runs" };
        tasks.cancel(&created).await;
        return Some(format!("its task still {waits}: {}", one_line(status(&last), 40)));
    }
    tasks.judge_result(tool, &last).await;
    if is_gated {
        approvals::judge_end(context, &tasks.session, name, &last);
    }
    tasks.after_end(&last).await;
    tasks.unknown().await;
    let second = tasks.create(caller.params(name, Some(arguments)), support).await?;
    tasks.cancel(&second).await;
    None
}

impl Tasks<'_> {
    fn report(&self, rule: &'static Rule, text: impl AsRef<str>) {
        self.context.findings.add(self.session.finding(rule, text).tool(self.name));
    }

    async fn request(&self, method: &str, mut params: Value) -> Option<Answer> {
        self.announce(&mut params);
        self.session.connection.request(method, params).await.ok()
    }

    /// Announces the extension, which a client does with each request.
    fn announce(&self, params: &mut Value) {
        let Some(params) = params.as_object_mut().filter(|_| self.is_modern) else { return };
        if let Some(meta) = params.entry("_meta").or_insert_with(|| json!({})).as_object_mut() {
            let announced = json!({"extensions": {EXTENSION: {}}});
            meta.insert("io.modelcontextprotocol/clientCapabilities".into(), announced);
        }
    }

    /// A call without a task of a tool that requires one.
    async fn without_task(&self, params: Value) {
        let limit = self.context.limits.call;
        let Ok(answer) = self.session.connection.request_within("tools/call", params, limit).await else { return };
        if answer.error_code() == Some(METHOD_NOT_FOUND) {
            return;
        }
        let text = "taskSupport is required, and a call without a task was answered with ";
        self.report(&rules::TASK_REQUIRED_IGNORED, format!("{text}{}", described(&answer)));
    }

    /// A new task; `None` if the server made none.
    async fn create(&self, mut params: Value, support: Support) -> Option<Value> {
        if let Some(params) = params.as_object_mut().filter(|_| !self.is_modern) {
            params.insert("task".into(), json!({ "ttl": TTL_MS }));
        }
        self.announce(&mut params);
        let limit = self.context.limits.call;
        let answer = self.session.connection.request_within("tools/call", params, limit).await.ok()?;
        let result = answer.result();
        let task = match self.is_modern {
            true => result.filter(|result| result.get("resultType").is_some_and(|kind| kind == "task")),
            false => result.and_then(|result| result.get("task")),
        };
        let Some(task) = task else {
            if support != Support::ServerDirected {
                let text = format!("a call with `task` was answered with {}", described(&answer));
                self.report(&rules::TASK_REFUSED, text);
            }
            return None;
        };
        if self.is_modern {
            self.judge_members(task, "the answer to tools/call");
        } else if status(task) != "working" {
            let text = format!("a new task has the status `{}`", one_line(status(task), 40));
            self.report(&rules::TASK_STATUS_INVALID, text);
        }
        Some(task.clone())
    }

    /// Polls a task until it ended, asks for input, or the time limit of a call passed. Returns its last state.
    async fn follow(&self, created: &Value, is_gated: bool) -> Option<Value> {
        let began = Instant::now();
        let mut last = created.clone();
        while !ends(&last) && status(&last) != "input_required" && began.elapsed() < self.context.limits.call {
            tokio::time::sleep(interval(&last)).await;
            let answer = self.get(created).await?;
            let Some(state) = answer.result() else {
                let text = format!("tasks/get of a new task was answered with {}", described(&answer));
                self.report(&rules::TASK_FORGOTTEN, text);
                return None;
            };
            self.judge_members(state, "the answer to tasks/get");
            self.judge_step(&last, state);
            if is_gated && !ends(state) && !approvals::judge_pending(self.context, &self.session, self.name, state) {
                self.report(
                    &rules::APPROVAL_ENVELOPE_DROPPED,
                    "tasks/get of a call that waits for an approval lacks it",
                );
            }
            last = state.clone();
        }
        Some(last)
    }

    async fn get(&self, task: &Value) -> Option<Answer> {
        self.request("tasks/get", json!({ "taskId": id(task) })).await
    }

    fn judge_members(&self, state: &Value, place: &str) {
        let ttl = if self.is_modern { "ttlMs" } else { "ttl" };
        let is_present = |name: &str| match state.get(name) {
            Some(Value::String(text)) => name != ttl && !text.is_empty(),
            Some(Value::Number(_) | Value::Null) => name == ttl,
            Some(Value::Bool(_) | Value::Array(_) | Value::Object(_)) | None => false,
        };
        let wanted = ["taskId", "status", "createdAt", "lastUpdatedAt", ttl];
        let missing: Vec<&str> = wanted.into_iter().filter(|name| !is_present(name)).collect();
        if !missing.is_empty() {
            self.report(&rules::TASK_INCOMPLETE, format!("{place} lacks {}", missing.join(", ")));
        }
    }

    fn judge_step(&self, before: &Value, now: &Value) {
        let (from, to) = (status(before), status(now));
        let is_known = ENDS.contains(&to) || UNENDED.contains(&to);
        if !is_known {
            self.report(&rules::TASK_STATUS_INVALID, format!("no task has the status `{}`", one_line(to, 40)));
        } else if ENDS.contains(&from) && from != to {
            self.report(&rules::TASK_STATUS_INVALID, format!("the task was {from}, and then {to}"));
        }
    }

    /// The result of a task that ended.
    async fn judge_result(&self, tool: &Value, last: &Value) {
        if status(last) == "cancelled" {
            return;
        }
        if self.is_modern {
            let member = if status(last) == "failed" { "error" } else { "result" };
            if last.get(member).is_none() {
                self.report(&rules::TASK_RESULT_MISSING, format!("a {} task has no `{member}`", status(last)));
            }
            return;
        }
        let params = json!({ "taskId": id(last) });
        let Ok(answer) = self.session.connection.request("tasks/result", params).await else {
            return self.report(&rules::TASK_RESULT_MISSING, "tasks/result of a task that ended has no answer");
        };
        match answer.result() {
            Some(result) => {
                if result.pointer(RELATED).is_none_or(|related| related != id(last)) {
                    let text = "the result lacks `io.modelcontextprotocol/related-task` in its `_meta`";
                    self.report(&rules::TASK_UNRELATED, text);
                }
                results::judge(self.context, self.session.revision, tool, self.name, &answer);
            }
            None if status(last) == "completed" => {
                let text = format!("tasks/result of a completed task was answered with {}", described(&answer));
                self.report(&rules::TASK_RESULT_MISSING, text);
            }
            None => {}
        }
    }

    /// A task that ended stays as it is, cannot be cancelled, and is in the list.
    async fn after_end(&self, last: &Value) {
        let tasks = self.session.capabilities().get("tasks").unwrap_or(&Value::Null);
        if tasks.get("list").is_some() && !self.is_listed(last).await {
            self.report(&rules::TASK_UNLISTED, "tasks/get knows a task that tasks/list does not have");
        }
        if tasks.get("cancel").is_some() {
            let answer = self.request("tasks/cancel", json!({ "taskId": id(last) })).await;
            if let Some(answer) = answer.filter(|answer| answer.error_code() != Some(INVALID_PARAMS)) {
                let text = format!("tasks/cancel of a {} task was answered with {}", status(last), described(&answer));
                self.report(&rules::TASK_CANCELLED_LATE, text);
            }
        }
        if let Some(state) = self.get(last).await.as_ref().and_then(Answer::result) {
            self.judge_step(last, state);
        }
    }

    async fn is_listed(&self, task: &Value) -> bool {
        let mut params = json!({});
        for _ in 0..MAX_PAGES {
            // A list without an answer is no statement about this task.
            let Some(answer) = self.request("tasks/list", params).await else { return true };
            let Some(result) = answer.result() else { return false };
            if result.get("tasks").and_then(Value::as_array).into_iter().flatten().any(|one| id(one) == id(task)) {
                return true;
            }
            let Some(cursor) = result.get("nextCursor").filter(|cursor| cursor.is_string()) else { return false };
            params = json!({ "cursor": cursor });
        }
        true
    }

    async fn unknown(&self) {
        let Some(answer) = self.request("tasks/get", json!({ "taskId": UNKNOWN })).await else { return };
        if answer.result().is_some() {
            let text = format!("tasks/get of the task `{UNKNOWN}` was answered with {}", described(&answer));
            self.report(&rules::TASK_UNKNOWN_SUCCEEDS, text);
        }
    }

    /// Cancels a task that runs. Without sessions the server may go on with it, so only its answer counts.
    async fn cancel(&self, task: &Value) {
        let can_cancel = self.is_modern || self.session.capabilities().pointer("/tasks/cancel").is_some();
        if !can_cancel {
            return;
        }
        let Some(answer) = self.request("tasks/cancel", json!({ "taskId": id(task) })).await else { return };
        match answer.result() {
            // It may have ended a moment before.
            None if answer.error_code() == Some(INVALID_PARAMS) && !self.is_modern => return,
            None => {
                let text = format!("tasks/cancel of a running task was answered with {}", described(&answer));
                return self.report(&rules::TASK_CANCEL_FAILED, text);
            }
            Some(state) if !self.is_modern && status(state) != "cancelled" => {
                let text = format!("after tasks/cancel the task has the status `{}`", one_line(status(state), 40));
                return self.report(&rules::TASK_CANCEL_FAILED, text);
            }
            Some(_) => {}
        }
        if self.is_modern {
            return;
        }
        tokio::time::sleep(Duration::from_millis(POLLS.0 * 4)).await;
        // It may have been deleted.
        if let Some(state) = self.get(task).await.as_ref().and_then(Answer::result)
            && status(state) != "cancelled"
        {
            let text = format!("a cancelled task has the status `{}` later", one_line(status(state), 40));
            self.report(&rules::TASK_CANCEL_FAILED, text);
        }
    }
}

/// Reports a task for a client that announced no support of tasks.
pub(super) fn judge_uninvited(context: &Context, session: &Session, name: &str, answer: &Answer) {
    let kind = answer.result().and_then(|result| result.get("resultType"));
    if kind.is_some_and(|kind| kind == "task") {
        let text = "the call became a task, and the client did not announce the extension";
        context.findings.add(session.finding(&rules::TASK_UNINVITED, text).tool(name));
    }
}

fn id(task: &Value) -> &Value {
    task.get("taskId").unwrap_or(&Value::Null)
}

fn status(task: &Value) -> &str {
    task.get("status").and_then(Value::as_str).unwrap_or_default()
}

fn ends(task: &Value) -> bool {
    ENDS.contains(&status(task))
}

/// The time to the next poll, as the server suggests it.
fn interval(task: &Value) -> Duration {
    let suggested = ["pollInterval", "pollIntervalMs"].iter().find_map(|name| task.get(*name)?.as_u64());
    Duration::from_millis(suggested.unwrap_or(200).clamp(POLLS.0, POLLS.1))
}

/// The answer in a few words.
fn described(answer: &Answer) -> String {
    match &answer.outcome {
        Ok(result) => format!("the result {}", one_line(&result.to_string(), 120)),
        Err(error) => format!("the error {}: {}", error.code, one_line(&error.message, 120)),
    }
}
