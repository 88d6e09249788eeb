//! Workloads.

use serde_json::{Value, json};

/// The shape of the runs that are measured.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    pub name: &'static str,
    /// Turns with tools; one more turn with the answer ends the run.
    pub turns: usize,
    /// Concurrent tool calls in each turn.
    pub calls: usize,
    /// Tools of the MCP server.
    pub tools: usize,
    /// Concurrent runs.
    pub at_once: usize,
    /// Bytes of a result.
    pub result: usize,
}

const PLAIN: Workload = Workload { name: "10 turns x 1 call", turns: 10, calls: 1, tools: 3, at_once: 1, result: 200 };

pub const WORKLOADS: [Workload; 6] = [
    PLAIN,
    Workload { name: "3 turns x 8 calls", turns: 3, calls: 8, ..PLAIN },
    Workload { name: "5 turns x 2 calls, 256 at once", turns: 5, calls: 2, at_once: 256, ..PLAIN },
    Workload { name: "400 turns x 1 call", turns: 400, ..PLAIN },
    Workload { name: "20 turns, results of 200 KB", turns: 20, result: 200_000, ..PLAIN },
    Workload { name: "5 turns, 300 tools", turns: 5, tools: 300, ..PLAIN },
];

impl Workload {
    /// The name of the model, which tells the model server what to answer.
    pub fn model(&self) -> String {
        format!("{}x{}x{}", self.turns, self.calls, self.result)
    }

    /// The turns, calls and result bytes in the name of a model.
    pub fn parse(model: &str) -> [usize; 3] {
        let parts: Vec<usize> = model.split('x').map(|part| part.parse().unwrap()).collect();
        parts.try_into().unwrap()
    }
}

/// The reply of the model to a request: the next turn, or the answer.
pub fn reply(request: &Value) -> Value {
    let [turns, calls, result] = Workload::parse(request["model"].as_str().unwrap());
    let messages = request["messages"].as_array().unwrap();
    let turn = messages.iter().filter(|message| message["role"] == "assistant").count();
    let call = |number: usize| {
        let arguments = json!({ "text": format!("module {turn}, file {number}"), "size": result }).to_string();
        json!({ "id": format!("call_{turn}_{number}"), "type": "function", "function": { "name": "mcp_files_tool_0", "arguments": arguments } })
    };
    let calls: Vec<Value> = if turn < turns { (0..calls).map(call).collect() } else { Vec::new() };
    let (message, reason) = match calls.is_empty() {
        true => (json!({ "role": "assistant", "content": "Everything is read." }), "stop"),
        false => {
            (json!({ "role": "assistant", "content": "I read the next file.", "tool_calls": calls }), "tool_calls")
        }
    };
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": request["model"],
        "choices": [{ "index": 0, "message": message, "finish_reason": reason }],
        "usage": { "prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110 },
    })
}
