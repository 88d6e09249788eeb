//! Result of a `tools/call` response: an output, elicitation requests, or a task. [`content`](super::content) reads
//! the output itself.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use toolgate_core::tool::{Question, TaskHandle, ToolOutput};

use super::fault::Fault;
use super::measure::excerpt;
use super::{content, elicitation, task_handle};

/// A server's answer to a call.
#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    /// The final output.
    Output(ToolOutput),
    /// A request to call again with answers to these questions and with the server's `requestState`. Without a
    /// question the server wants the call repeated as it is.
    Again { questions: BTreeMap<String, Question>, state: Option<String> },
    /// A task: the server continues the call on its own.
    Task(TaskHandle),
}

/// Reads a result.
pub(super) fn read(result: Value) -> Result<Answer, Fault> {
    let Value::Object(result) = result else {
        return Err(Fault::Unreadable(format!("expected an object, got {}", excerpt(&result))));
    };
    let kind = match result.get("resultType") {
        None | Some(Value::Null) => None,
        Some(Value::String(kind)) => Some(kind.as_str()),
        Some(other) => return Err(Fault::Unreadable(format!("`resultType` is {}, not a string", excerpt(other)))),
    };
    match kind {
        None | Some("complete") => content::read(result).map(Answer::Output).map_err(Fault::Unreadable),
        Some("input_required") => again(&result),
        Some("task") => task_handle::read(&result).map(Answer::Task).map_err(Fault::Unreadable),
        Some(kind) => Err(Fault::Unreadable(format!("it is of the type `{kind}`, which toolgate does not know"))),
    }
}

fn again(result: &Map<String, Value>) -> Result<Answer, Fault> {
    let questions = match result.get("inputRequests") {
        None | Some(Value::Null) => BTreeMap::new(),
        Some(Value::Object(requests)) => elicitation::questions(requests).map_err(Fault::Demands)?,
        Some(other) => {
            return Err(Fault::Unreadable(format!("`inputRequests` is {}, not an object", excerpt(other))));
        }
    };
    let state = elicitation::state(result).map_err(Fault::Demands)?;
    if questions.is_empty() && state.is_none() {
        return Err(Fault::Unreadable("it wants input, but has neither `inputRequests` nor `requestState`".into()));
    }
    Ok(Answer::Again { questions, state })
}

/// The error in the type of a result that is not an answer to a call. The stateless revision allows one type for it
/// and counts any other as invalid.
pub(super) fn wrong_result_type(result: &Value) -> Option<String> {
    match result.get("resultType") {
        None | Some(Value::Null) => None,
        Some(Value::String(kind)) if kind == "complete" => None,
        Some(other) => Some(format!("its `resultType` is {}, which toolgate does not know", excerpt(other))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_type_of_result_is_distinguished() {
        let output = json!({"content": [{"type": "text", "text": "t"}]});
        assert_eq!(read(output.clone()), Ok(Answer::Output(ToolOutput::text("t"))));
        let mut complete = output;
        complete["resultType"] = "complete".into();
        assert_eq!(read(complete), Ok(Answer::Output(ToolOutput::text("t"))));
        let state_only = json!({"resultType": "input_required", "requestState": "s"});
        assert_eq!(read(state_only), Ok(Answer::Again { questions: BTreeMap::new(), state: Some("s".into()) }));
        let asking = json!({"resultType": "input_required", "inputRequests": {
            "k": {"method": "elicitation/create", "params": {"message": "m", "requestedSchema": {}}},
        }});
        let question = Question::Form { message: "m".into(), schema: json!({}) };
        let questions = BTreeMap::from([("k".to_owned(), question)]);
        assert_eq!(read(asking), Ok(Answer::Again { questions, state: None }));
        let task = json!({"resultType": "task", "taskId": "t1", "status": "working"});
        assert!(matches!(read(task), Ok(Answer::Task(task)) if task.id == "t1"));
    }

    #[test]
    fn an_invalid_result_is_refused_with_the_reason() {
        for (result, complaint) in [
            (json!([1]), "expected an object, got [1]"),
            (json!({}), "neither `content` nor `structuredContent`: {}"),
            (json!({"resultType": "input_required", "content": []}), "neither `inputRequests` nor `requestState`"),
            (json!({"resultType": "input_required", "inputRequests": [1]}), "`inputRequests` is [1], not an object"),
            (json!({"resultType": "task"}), "no `taskId`"),
            (json!({"resultType": "riddle", "content": []}), "`riddle`"),
            (json!({"resultType": 1, "content": []}), "`resultType` is 1, not a string"),
        ] {
            let error = read(result).expect_err("refused").to_string();
            assert!(error.contains(complaint), "{error}");
        }
        let sampling =
            json!({"resultType": "input_required", "inputRequests": {"k": {"method": "sampling/createMessage"}}});
        assert!(matches!(read(sampling), Err(Fault::Demands(_))));
    }
}
