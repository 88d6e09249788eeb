//! toolgate in an axum application: one call from a configuration file to a runner. The application answers
//! `POST /questions` itself, runs its own tools, and nests toolgate's HTTP API under `/agents`.
//!
//! `cargo run --example axum_application`
#![allow(clippy::print_stdout)]

use std::error::Error;

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Router, serve};
use serde_json::json;
use tokio::net::TcpListener;
use toolgate::gateway;
use toolgate::prelude::*;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let app = App::from_file("examples/http/memory.yaml").await?;
    let router = Router::new()
        .route("/questions", post(answer))
        .with_state(app.runner.clone())
        .nest("/agents", gateway::router(app.runner.clone()));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = tokio::spawn(async move { serve(listener, router).await });

    let client = reqwest::Client::new();
    let question = client.post(format!("http://{address}/questions")).body("How are A-1077 and A-1041?");
    println!("{}", question.send().await?.error_for_status()?.text().await?);
    let runs = client.get(format!("http://{address}/agents/v1/runs")).send().await?.error_for_status()?;
    println!("{}", runs.text().await?);

    server.abort();
    app.close().await;
    Ok(())
}

async fn answer(State(runner): State<AgentRunner>, question: String) -> Result<String, (StatusCode, String)> {
    let failed = |error: RunnerError| (StatusCode::INTERNAL_SERVER_ERROR, error.to_string());
    let mut report = runner.execute(Request::new("orders", question)).await.map_err(failed)?;
    while report.status == Status::Pending {
        let answers = report.pending.iter().fold(Resume::new(), run_tool);
        report = runner.resume(&report.run_id, answers).await.map_err(failed)?;
    }
    match (report.output, report.error) {
        (Some(output), _) => Ok(output.text),
        (None, error) => Err((StatusCode::BAD_GATEWAY, error.map(|error| error.to_string()).unwrap_or_default())),
    }
}

/// The tools of this application.
fn run_tool(answers: Resume, item: &PendingItem) -> Resume {
    let PendingItem::ExternalResult(call) = item else { return answers };
    match call.tool.name() {
        "lookup_order" => answers.output(call.call_id.clone(), json!({"state": "late"})),
        "send_message" => answers.output(call.call_id.clone(), json!({"state": "sent"})),
        other => answers.error(call.call_id.clone(), format!("this application has no tool {other}")),
    }
}
