//! External results: the run waits for the application, the application runs the calls, and the run resumes.
//!
//! `cargo run --example external_results`
//!
//! The run is stored in an SQLite file. A second runner, as in another process, resumes it: the two share only the
//! run's id.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::sync::Arc;

use serde_json::{Value, json};
use toolgate::core::tool::Arguments;
use toolgate::models::scripted::{Script, ScriptedModel};
use toolgate::prelude::*;

const CONVERSATION: &str = r#"{"turns": [
    {"say": "I look the orders up.", "calls": [
        {"name": "ext_get_order", "arguments": {"id": "77"}},
        {"name": "ext_get_order", "arguments": {"id": "78"}}
    ]},
    {"say": "Order 77 is paid; order 78 does not exist."}
]}"#;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let database = folder.path().join("runs.db");

    let report = {
        let runner = runner(&database).await?;
        let request = Request::new("support", "How are orders 77 and 78?").external_tool(get_order());
        let report = runner.execute(request).await?;
        runner.close().await;
        report
    };
    println!("{} is {}: it waits for {} results", report.run_id, report.status.as_str(), report.pending.len());

    // Hours later, in another process.
    let runner = runner(&database).await?;
    let answers: Resume = report.pending.iter().filter_map(execute).collect();
    let report: Report = runner.resume(&report.run_id, answers).await?;
    runner.close().await;

    assert_eq!(report.status, Status::Completed);
    println!("{}", report.output.map(|output| output.text).unwrap_or_default());
    Ok(())
}

/// The tool of this application. An error is a result as well: the model reads it and continues.
fn execute(item: &PendingItem) -> Option<(toolgate::core::id::CallId, Answer)> {
    let PendingItem::ExternalResult(call) = item else { return None };
    println!("  {} {}", call.tool.name(), call.arguments.to_value());
    let id = match &call.arguments {
        Arguments::Object(object) => object.get("id").and_then(Value::as_str),
        Arguments::Malformed(_) => None,
    };
    Some(match id {
        Some("77") => (call.call_id.clone(), Answer::output(json!({"status": "paid"}))),
        other => {
            (call.call_id.clone(), Answer::error(format!("there is no order {}", other.unwrap_or("without an id"))))
        }
    })
}

fn get_order() -> ExternalTool {
    ExternalTool::new("get_order", "Looks an order up by its id.")
        .input_schema(json!({"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}))
        .result_schema(json!({"type": "object", "required": ["status"]}))
}

async fn runner(database: &std::path::Path) -> Result<AgentRunner, Box<dyn Error>> {
    let store = SqliteStore::open(database).await?;
    let model = ScriptedModel::new("scripted", Script::from_json(CONVERSATION)?);
    let agent = Agent::new("support", Arc::new(model));
    Ok(AgentRunner::builder().store(Arc::new(store)).agent(agent).build()?)
}
