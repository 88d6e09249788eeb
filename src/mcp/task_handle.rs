//! Task handle, as results of calls and of `tasks/get` carry it.

use serde_json::{Map, Value};
use toolgate_core::tool::TaskHandle;

use super::measure::{excerpt, shortened};

/// The longest task id that is kept, in bytes.
const MAX_ID: usize = 1024;

/// Reads a task as results carry it. The error states what is wrong with it.
pub(super) fn read(task: &Map<String, Value>) -> Result<TaskHandle, String> {
    let text = |name: &str| task.get(name).and_then(Value::as_str).map(str::to_owned);
    let milliseconds = |name: &str| task.get(name).and_then(Value::as_u64);
    let id = text("taskId")
        .filter(|id| !id.is_empty())
        .ok_or_else(|| format!("it is a task, but has no `taskId`: {}", excerpt(&Value::Object(task.clone()))))?;
    if id.len() > MAX_ID {
        return Err(format!("it is a task, but its `taskId` is longer than {MAX_ID} bytes: {}", shortened(&id)));
    }
    Ok(TaskHandle {
        id,
        message: task.get("statusMessage").and_then(Value::as_str).map(shortened),
        poll_ms: milliseconds("pollIntervalMs"),
        ttl_ms: milliseconds("ttlMs"),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_handle_keeps_the_servers_data_of_the_task() {
        let task =
            json!({"taskId": "t", "status": "working", "statusMessage": "half", "pollIntervalMs": 5, "ttlMs": null});
        let expected = TaskHandle { id: "t".into(), message: Some("half".into()), poll_ms: Some(5), ttl_ms: None };
        assert_eq!(read(task.as_object().expect("an object")), Ok(expected));
    }

    #[test]
    fn a_handle_is_kept_to_a_measure() {
        let task = json!({"taskId": "t", "statusMessage": "x".repeat(1_000_000)});
        let kept = read(task.as_object().expect("an object")).expect("a handle");
        assert!(kept.message.expect("its words").len() < 1000);
        let endless = json!({"taskId": "t".repeat(MAX_ID + 1)});
        let why = read(endless.as_object().expect("an object")).expect_err("beyond measure");
        assert!(why.contains("its `taskId` is longer than 1024 bytes") && why.len() < 1000, "{why}");
    }
}
