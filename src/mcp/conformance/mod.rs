//! Client under test of the official conformance suite: runs a scenario of the suite against a server, through
//! [`Servers`](super::Servers) like any run. The suite observes the messages and judges.
//!
//! Nearly every scenario does the same: list the tools, call each, stop. `ScenarioRun` contains the differences.

mod arguments;
mod scenario_run;

use serde_json::Value;

use super::auth::{CredentialFile, OAuthSettings};
use super::{ServerSettings, Transport};
use scenario_run::ScenarioRun;

/// A scenario of the suite.
#[derive(Clone, Debug)]
pub struct Scenario {
    name: String,
    context: Value,
}

impl Scenario {
    /// The scenario that the suite names in the environment: `MCP_CONFORMANCE_SCENARIO` and, as JSON,
    /// `MCP_CONFORMANCE_CONTEXT`. Without a name the scenario lists and calls every tool.
    pub fn from_environment() -> Self {
        let context = std::env::var("MCP_CONFORMANCE_CONTEXT").ok();
        Self {
            name: std::env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default(),
            context: context.and_then(|context| serde_json::from_str(&context).ok()).unwrap_or_default(),
        }
    }

    /// Runs the scenario against the server at this address. The error states which step failed.
    pub async fn play(&self, url: &str) -> Result<(), String> {
        let play = ScenarioRun::begin(self.settings(url));
        let played = match self.name.as_str() {
            "initialize" => play.tools().await.map(drop),
            "elicitation-sep1034-client-defaults" => play.with_answer(scenario_run::defaults_question()).await,
            "json-schema-2020-12-preservation" => {
                play.echo_schema("json_schema_2020_12_tool", "json_schema_echo").await
            }
            _ => match self.calls() {
                Some(calls) => play.calls(calls).await,
                None => play.every_tool().await,
            },
        };
        play.end().await;
        if let Some(folder) = self.credentials().path().parent() {
            let _ = std::fs::remove_dir_all(folder);
        }
        played
    }

    /// The calls that the suite requests, if it does.
    fn calls(&self) -> Option<&Vec<Value>> {
        self.context.get("toolCalls")?.as_array()
    }

    /// The settings of the server. The scenarios `auth/...` provide credentials in their context.
    fn settings(&self, url: &str) -> ServerSettings {
        let mut settings = ServerSettings::http(url);
        if let Transport::Http(http) = &mut settings.transport {
            http.oauth = Some(OAuthSettings::of_suite(&self.name, &self.context, self.credentials()));
        }
        settings
    }

    /// A new credential file: credentials of a scenario are worthless after it.
    fn credentials(&self) -> CredentialFile {
        let folder = format!("toolgate-conformance-{}", std::process::id());
        CredentialFile::new(std::env::temp_dir().join(folder).join("tokens.json"))
    }
}
