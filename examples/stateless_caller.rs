//! Stateless operation: between two requests the state of a run exists only in the envelope that the caller keeps.
//!
//! `cargo run --example stateless_caller`
//!
//! Each request goes to a different node with an empty store. The first node starts a run and hands it over. The second
//! node does not know the run and resumes it from the envelope. A changed
//! envelope is rejected.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::sync::Arc;

use serde_json::{Value, json};
use toolgate::core::policy::Policy;
use toolgate::core::run::Status;
use toolgate::core::tool::ExternalTool;
use toolgate::models::scripted::{Script, ScriptedModel};
use toolgate::runner::envelope::{Envelope, EnvelopeError, EnvelopeKey, EnvelopeKeys};
use toolgate::runner::{Agent, AgentRunner, Answer, Request, RunnerError};
use toolgate::stores::MemoryStore;

const CONVERSATION: &str = r#"{"turns": [
    {"say": "I look the order up.", "calls": [{"name": "ext_get_order", "arguments": {"id": "77"}}]},
    {"say": "Order 77 is paid."}
]}"#;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let handed_out = first_request().await?;
    println!("the caller keeps {} bytes", handed_out.len());

    let mut altered: Value = serde_json::from_str(&handed_out)?;
    *altered.pointer_mut("/pending/0/arguments/id").ok_or("no order is asked about")? = json!("78");
    let refused = second_request(&altered.to_string()).await;
    assert!(matches!(&refused, Err(RunnerError::Envelope(EnvelopeError::Altered))), "{refused:?}");
    println!("with another order number in it: {}", refused.err().map(|error| error.to_string()).unwrap_or_default());

    let answer = second_request(&handed_out).await?;
    println!("as it was: {answer}");
    assert_eq!(answer, "Order 77 is paid.");
    Ok(())
}

/// Starts a run, and hands it over when it becomes pending. The node and its store are discarded.
async fn first_request() -> Result<String, Box<dyn Error>> {
    let runner = node()?;
    let report = runner.execute(Request::new("support", "Is order 77 paid?").external_tool(get_order()?)).await?;
    assert_eq!(report.status, Status::Pending);
    Ok(serde_json::to_string(&runner.export(&report.run_id).await?)?)
}

/// Resumes a run with the results of its pending calls. The envelope contains everything the caller needs: `messages`
/// to show, `pending` to work on.
async fn second_request(body: &str) -> Result<String, RunnerError> {
    let envelope = Envelope::from_json(body.as_bytes())?;
    let answers = envelope
        .pending
        .iter()
        .filter_map(|item| Some((item.call_id()?.clone(), Answer::output(json!({"status": "paid"})))));
    let report = node().map_err(|_| RunnerError::Closed)?.resume_from(&envelope, answers.collect()).await?;
    Ok(report.output.map(|output| output.text).unwrap_or_default())
}

/// A node with an empty store. All nodes share the agent and the key.
fn node() -> Result<AgentRunner, Box<dyn Error>> {
    let model = ScriptedModel::new("scripted", Script::from_json(CONVERSATION)?);
    let agent = Agent { policy: Arc::new(Policy::allow_always()), ..Agent::new("support", Arc::new(model)) };
    // In production the key comes from the environment, generated with `openssl rand -base64 48`.
    let key = EnvelopeKey::hmac(b"an example is no place for a secret of 32 bytes")?;
    let keys = EnvelopeKeys::new("2026-11", [("2026-11".to_owned(), key)])?;
    Ok(AgentRunner::builder().store(Arc::new(MemoryStore::new())).agent(agent).envelope_keys(keys).build()?)
}

fn get_order() -> Result<ExternalTool, serde_json::Error> {
    serde_json::from_value(json!({
        "name": "get_order",
        "description": "Looks an order up by its id.",
        "input_schema": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
    }))
}
