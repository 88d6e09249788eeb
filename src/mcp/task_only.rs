//! Tools that can be called as tasks only, as defined by the revision 2025-11-25 (`execution.taskSupport: required`).
//! toolgate supports the tasks of the modern era, where the server decides which call becomes a task. It does not
//! support the older tasks, and such a server refuses any other call. The SDK drops this part of a definition, so it
//! is read from the raw message while the list passes through.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;
use toolgate_core::tool::McpTool;

use super::transport::contains;

const REASON: &str = "it can only be called as a task of the revision 2025-11-25 (its `execution.taskSupport` is \
                      `required`), which toolgate does not do; make that `optional`, or let the server speak 2026-07-28, \
                      whose tasks toolgate knows";

/// The names of such tools on one connection, from lists that were not processed yet.
#[derive(Clone, Debug, Default)]
pub(super) struct TaskOnly(Arc<Mutex<BTreeSet<String>>>);

impl TaskOnly {
    /// Checks whether a message lists such tools. Almost no message does, and those are not parsed.
    pub(super) fn look_at(&self, message: &[u8]) {
        if !contains(message, br#""taskSupport""#) {
            return;
        }
        if let Ok(ListResponse { result: Page { tools } }) = serde_json::from_slice(message) {
            let required = tools.into_iter().filter_map(|tool| match tool {
                Tool { name: Some(name), execution: Some(Execution { task_support: Some(support) }) } => {
                    (support == "required").then_some(name)
                }
                Tool { .. } => None,
            });
            self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(required);
        }
    }

    /// Removes them from the listed tools.
    pub(super) fn leave_out(&self, tools: &mut Vec<McpTool>, left_out: &mut Vec<(Option<String>, String)>) {
        let names = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        tools.retain(|tool| !names.contains(&tool.name));
        left_out.extend(names.into_iter().map(|name| (Some(name), REASON.to_owned())));
    }
}

#[derive(Deserialize)]
struct ListResponse {
    result: Page,
}

#[derive(Deserialize)]
struct Page {
    tools: Vec<Tool>,
}

#[derive(Deserialize)]
struct Tool {
    name: Option<String>,
    execution: Option<Execution>,
}

#[derive(Deserialize)]
struct Execution {
    #[serde(rename = "taskSupport")]
    task_support: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use toolgate_core::tool::Annotations;

    impl TaskOnly {
        fn look_at_text(&self, message: &str) {
            self.look_at(message.as_bytes());
        }
    }

    fn tool(name: &str) -> McpTool {
        McpTool {
            name: name.into(),
            description: String::new(),
            input_schema: json!({}),
            output_schema: None,
            annotations: Annotations::default(),
            pinned: None,
        }
    }

    #[test]
    fn only_tools_that_have_to_be_tasks_are_left_out_of_the_list_they_were_in() {
        let task_only = TaskOnly::default();
        let with = |name: &str, support: Value| json!({"name": name, "inputSchema": {}, "execution": support});
        let page = |tools: Value| json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}}).to_string();
        task_only.look_at_text(&page(json!([with("a", json!({"taskSupport": "required"})), with("b", json!({}))])));
        let others = [with("c", json!({"taskSupport": "optional"})), with("d", json!({"taskSupport": "required"}))];
        task_only.look_at_text(&page(json!(others)));
        task_only.look_at_text(r#"{"result": {"content": [{"text": "\"taskSupport\": required"}]}}"#);
        let (mut tools, mut left_out) = (["a", "b", "c", "d"].map(tool).to_vec(), Vec::new());
        task_only.leave_out(&mut tools, &mut left_out);
        assert_eq!(tools, ["b", "c"].map(tool));
        assert_eq!(left_out, ["a", "d"].map(|name| (Some(name.to_owned()), REASON.to_owned())));
        task_only.leave_out(&mut tools, &mut left_out);
        assert_eq!((tools.len(), left_out.len()), (2, 2), "the next list is independent");
    }
}
