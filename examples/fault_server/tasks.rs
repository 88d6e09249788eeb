//! Calls that become tasks (the extension `io.modelcontextprotocol/tasks`), whether the client declared support for
//! tasks or not.

use serde_json::{Value, json};

use crate::asking::{answered, elicitation, input_requests, response_of};
use crate::faults::Fault;
use crate::message::{self, INVALID_PARAMS, text, with};
use crate::script::Action;
use crate::server::{Request, Server};
use crate::tools;

/// A fixed time, because this server has no clock. Clients must not depend on it.
const CREATED: &str = "2026-07-28T00:00:00Z";
/// The poll interval for clients.
const POLL_MS: u64 = 50;

/// A call that runs as a task.
pub(crate) struct Task {
    polls_left: u64,
    result: Value,
    stage: Stage,
    gate: Gate,
}

/// Whether the call waits for an approval, and what becomes of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gate {
    Open,
    Approved,
    Executed,
    Denied,
}

/// The progress of a task.
enum Stage {
    Working,
    Answered(Value),
    Cancelled,
}

impl Server {
    /// Whether calls become tasks.
    pub(crate) fn makes_tasks(&self) -> bool {
        let kinds = [Fault::TaskInput, Fault::TaskFails, Fault::TaskForgotten, Fault::TaskDenied];
        self.polls().is_some() || kinds.iter().any(|kind| self.faults.has(kind))
    }

    /// The extensions that a server with tasks declares.
    pub(crate) fn task_extensions(&self) -> Option<Value> {
        let tasks = json!({"io.modelcontextprotocol/tasks": {}});
        let approval = json!({"io.modelcontextprotocol/tool-approval": {}});
        let all = if self.gate() == Gate::Open { tasks } else { with(tasks, approval) };
        self.makes_tasks().then_some(all)
    }

    /// Turns a call into a task with this result.
    pub(crate) fn start_task(&mut self, request: &Request<'_>, result: Value) -> Value {
        let id = format!("task-{}", self.tasks.len() + 1);
        let gate = self.gate();
        if gate != Gate::Open {
            self.executed = self.executed.saturating_sub(1);
        }
        let task = Task { polls_left: self.polls().unwrap_or(1), result, stage: Stage::Working, gate };
        self.tasks.insert(id.clone(), task);
        request.result(with(json!({"resultType": "task"}), with(description(&id, "working"), gate.pending())))
    }

    /// Handles a request about a task.
    pub(crate) fn about_task(&mut self, request: &Request<'_>) -> Vec<Action> {
        let id = text(request.params, "taskId");
        let (fails, asks) = (self.faults.has(&Fault::TaskFails), self.faults.has(&Fault::TaskInput));
        let forgets = self.faults.has(&Fault::TaskForgotten);
        let Some(task) = self.tasks.get_mut(id).filter(|_| !forgets) else {
            let unknown = message::refusal(request.id, INVALID_PARAMS, &format!("there is no task `{id}`"));
            return vec![Action::answer(unknown)];
        };
        let result = match request.method {
            "tasks/cancel" => {
                task.stage = Stage::Cancelled;
                json!({})
            }
            "tasks/update" => {
                task.stage =
                    response_of(request.params).map_or(Stage::Working, |answer| Stage::Answered(answer.clone()));
                json!({})
            }
            _ => {
                let before = task.gate;
                let state = task.look(id, fails, asks);
                self.executed += u64::from(before == Gate::Approved && task.gate == Gate::Executed);
                state
            }
        };
        vec![Action::answer(request.result(result))]
    }

    fn polls(&self) -> Option<u64> {
        self.faults
            .find(|fault| if let Fault::Task(polls) | Fault::TaskApproval(polls) = fault { Some(polls) } else { None })
    }

    fn gate(&self) -> Gate {
        let approved = |fault| matches!(fault, Fault::TaskApproval(_)).then_some(());
        match () {
            () if self.faults.has(&Fault::TaskDenied) => Gate::Denied,
            () if self.faults.find(approved).is_some() => Gate::Approved,
            () => Gate::Open,
        }
    }
}

impl Task {
    /// The answer to `tasks/get`. Each poll advances the task.
    fn look(&mut self, id: &str, fails: bool, asks: bool) -> Value {
        let (status, more) = match &self.stage {
            Stage::Cancelled => ("cancelled", json!({})),
            Stage::Answered(answer) => ("completed", json!({"result": answered(answer, self.result.clone())})),
            Stage::Working if self.polls_left > 0 => {
                self.polls_left -= 1;
                ("working", with(json!({"statusMessage": "still at it"}), self.gate.pending()))
            }
            Stage::Working if asks => {
                let (method, params) = elicitation();
                ("input_required", json!({"inputRequests": input_requests(method, params)}))
            }
            Stage::Working if fails => ("failed", json!({"error": {"code": -32603, "message": "the task fell over"}})),
            Stage::Working => {
                if self.gate == Gate::Approved {
                    self.gate = Gate::Executed;
                }
                ("completed", json!({"result": self.gate.ended(&self.result)}))
            }
        };
        with(description(id, status), more)
    }
}

impl Gate {
    /// The envelope of the denial (SEP-2643), while the approval is pending.
    fn pending(self) -> Value {
        if self == Self::Open { json!({}) } else { json!({"_meta": envelope("available")}) }
    }

    /// The result with its disposition.
    fn ended(self, result: &Value) -> Value {
        let disposition = |word: &str| json!({"io.modelcontextprotocol/tool-approval-disposition": word});
        match self {
            Self::Open => result.clone(),
            Self::Approved | Self::Executed => {
                let has_failed = result.get("isError") == Some(&json!(true));
                let word = if has_failed { "execution-error" } else { "approved-executed" };
                with(result.clone(), json!({"_meta": disposition(word)}))
            }
            Self::Denied => {
                let meta = with(envelope("unavailable"), disposition("denied-not-executed"));
                with(tools::failed("the approval was denied; the call was not executed"), json!({"_meta": meta}))
            }
        }
    }
}

fn envelope(remediation: &str) -> Value {
    let hints = if remediation == "available" { json!([{"type": "task"}]) } else { json!([]) };
    json!({"io.modelcontextprotocol/authorization": {
        "reason": "insufficient_authorization", "remediation": remediation, "remediationHints": hints,
    }})
}

fn description(id: &str, status: &str) -> Value {
    json!({
        "taskId": id, "status": status, "createdAt": CREATED, "lastUpdatedAt": CREATED, "ttlMs": 600_000,
        "pollIntervalMs": POLL_MS,
    })
}
