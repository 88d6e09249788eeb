//! Calls that become tasks (the extension `io.modelcontextprotocol/tasks`), whether the client declared support for
//! tasks or not.

use serde_json::{Value, json};

use crate::asking::{answered, elicitation, input_requests, response_of};
use crate::faults::Fault;
use crate::message::{self, INVALID_PARAMS, text, with};
use crate::script::Action;
use crate::server::{Request, Server};

/// A fixed time, because this server has no clock. Clients must not depend on it.
const CREATED: &str = "2026-07-28T00:00:00Z";
/// The poll interval for clients.
const POLL_MS: u64 = 50;

/// A call that runs as a task.
pub(crate) struct Task {
    polls_left: u64,
    result: Value,
    stage: Stage,
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
        let kinds = [Fault::TaskInput, Fault::TaskFails, Fault::TaskForgotten];
        self.polls().is_some() || kinds.iter().any(|kind| self.faults.has(kind))
    }

    /// Turns a call into a task with this result.
    pub(crate) fn start_task(&mut self, request: &Request<'_>, result: Value) -> Value {
        let id = format!("task-{}", self.tasks.len() + 1);
        let task = Task { polls_left: self.polls().unwrap_or(1), result, stage: Stage::Working };
        self.tasks.insert(id.clone(), task);
        request.result(with(json!({"resultType": "task"}), description(&id, "working")))
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
            _ => task.look(id, fails, asks),
        };
        vec![Action::answer(request.result(result))]
    }

    fn polls(&self) -> Option<u64> {
        self.faults.find(|fault| if let Fault::Task(polls) = fault { Some(polls) } else { None })
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
                ("working", json!({"statusMessage": "still at it"}))
            }
            Stage::Working if asks => {
                let (method, params) = elicitation();
                ("input_required", json!({"inputRequests": input_requests(method, params)}))
            }
            Stage::Working if fails => ("failed", json!({"error": {"code": -32603, "message": "the task fell over"}})),
            Stage::Working => ("completed", json!({"result": self.result})),
        };
        with(description(id, status), more)
    }
}

fn description(id: &str, status: &str) -> Value {
    json!({
        "taskId": id, "status": status, "createdAt": CREATED, "lastUpdatedAt": CREATED, "ttlMs": 600_000,
        "pollIntervalMs": POLL_MS,
    })
}
