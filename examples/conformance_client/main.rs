//! Client under test of the official MCP conformance suite: runs a scenario of the suite against a server, through
//! [`Servers`](toolgate::mcp::Servers) like any run. The suite observes the messages and judges.
//!
//! The suite starts this program with the scenario in the environment and the server's address as the last argument
//! (`scripts/check-conformance`).
//!
//! Nearly every scenario does the same: list the tools, call each, stop. `ScenarioRun` contains the differences.
#![allow(clippy::print_stderr)]

mod arguments;
mod oauth;
mod scenario_run;

use std::process::ExitCode;

use serde_json::Value;
use toolgate::mcp::auth::CredentialFile;
use toolgate::mcp::{ServerSettings, Transport};

use oauth::oauth_settings;
use scenario_run::ScenarioRun;

#[tokio::main]
async fn main() -> ExitCode {
    let Some(url) = std::env::args().skip(1).last() else {
        eprintln!("Usage: conformance_client URL");
        return ExitCode::from(2);
    };
    match Scenario::from_environment().run(&url).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("conformance_client: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A scenario of the suite.
struct Scenario {
    name: String,
    context: Value,
}

impl Scenario {
    /// The scenario that the suite names in the environment: `MCP_CONFORMANCE_SCENARIO` and, as JSON,
    /// `MCP_CONFORMANCE_CONTEXT`. Without a name the scenario lists and calls every tool.
    fn from_environment() -> Self {
        let context = std::env::var("MCP_CONFORMANCE_CONTEXT").ok();
        Self {
            name: std::env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default(),
            context: context.and_then(|context| serde_json::from_str(&context).ok()).unwrap_or_default(),
        }
    }

    /// Runs the scenario against the server at this address. The error states which step failed.
    async fn run(&self, url: &str) -> Result<(), String> {
        let run = ScenarioRun::begin(self.settings(url));
        let outcome = match self.name.as_str() {
            "initialize" => run.tools().await.map(drop),
            "elicitation-sep1034-client-defaults" => run.with_answer(scenario_run::defaults_question()).await,
            "json-schema-2020-12-preservation" => run.echo_schema("json_schema_2020_12_tool", "json_schema_echo").await,
            _ => match self.calls() {
                Some(calls) => run.calls(calls).await,
                None => run.every_tool().await,
            },
        };
        run.end().await;
        if let Some(folder) = self.credentials().path().parent() {
            let _ = std::fs::remove_dir_all(folder);
        }
        outcome
    }

    /// The calls that the suite requests, if it does.
    fn calls(&self) -> Option<&Vec<Value>> {
        self.context.get("toolCalls")?.as_array()
    }

    /// The settings of the server. The scenarios `auth/...` provide credentials in their context.
    fn settings(&self, url: &str) -> ServerSettings {
        let mut settings = ServerSettings::http(url);
        if let Transport::Http(http) = &mut settings.transport {
            http.oauth = Some(oauth_settings(&self.name, &self.context, self.credentials()));
        }
        settings
    }

    /// A new credential file: credentials of a scenario are worthless after it.
    fn credentials(&self) -> CredentialFile {
        let folder = format!("toolgate-conformance-{}", std::process::id());
        CredentialFile::new(std::env::temp_dir().join(folder).join("tokens.json"))
    }
}
