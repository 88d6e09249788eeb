//! Scenario file: tasks in words, the model and the server that work on them, and the expectations about the run.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};
use toolgate_core::tool::{ElicitationResponse, ExternalTool};
use toolgate_models::scripted::ScriptedTurn;

use super::expect::Expect;
use super::tool_pattern::ToolPattern;

/// A scenario file. The keys beside `scenarios` apply to each scenario that does not set them itself. A scenario is a JSON
/// value until its variables are filled in: a variable may stand where the scenario has a number.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioFile<S = Scenario> {
    pub server: Option<ServerChoice>,
    pub model: Option<ModelChoice>,
    /// A matrix: each case runs with each of these models, by the names for the report.
    #[serde(default)]
    pub models: BTreeMap<String, ModelChoice>,
    /// The agent of the configuration whose policy, limits and instructions apply.
    pub agent: Option<String>,
    /// The instructions in place of those of the agent.
    pub instructions: Option<String>,
    /// The approval policy in place of that of the agent.
    pub policy: Option<String>,
    #[serde(default)]
    pub external_tools: Vec<ExternalTool>,
    pub answers: Option<Answers>,
    pub live: Option<Live>,
    pub scenarios: Vec<S>,
}

/// A task with expectations.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    pub name: String,
    /// The user's message. `{{name}}` is replaced by the variable of the case.
    pub task: String,
    /// A table: the scenario runs once for each row. Empty in the scenario of a row.
    #[serde(default)]
    pub cases: Vec<Case>,
    pub server: Option<ServerChoice>,
    pub model: Option<ModelChoice>,
    #[serde(default)]
    pub models: BTreeMap<String, ModelChoice>,
    pub agent: Option<String>,
    pub instructions: Option<String>,
    pub policy: Option<String>,
    #[serde(default)]
    pub external_tools: Vec<ExternalTool>,
    pub answers: Option<Answers>,
    pub live: Option<Live>,
    /// Seconds after which the run is cancelled; 300 by default.
    pub timeout_s: Option<u64>,
    #[serde(default)]
    pub expect: Expect,
}

/// A row of a table of cases.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub name: String,
    /// The variables.
    #[serde(default)]
    pub with: Map<String, Value>,
}

/// The server of a scenario.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "WrittenServer")]
pub enum ServerChoice {
    /// A program to start.
    Stdio { name: String, program: Program },
    /// A streamable HTTP server.
    Http { name: String, endpoint: Endpoint },
    /// A server of the configuration.
    Configured(String),
    /// The servers of a recording, by the path of its file.
    Recorded(String),
}

/// A program that is an MCP server.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    pub command: String,
    #[serde(default)]
    pub args: Vec<String>,
    /// Variables; `${NAME}` in a value is read from the environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The folder in which it runs, relative to that of the file.
    pub cwd: Option<String>,
}

/// The endpoint of an HTTP server.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    pub url: String,
    /// Headers; `${NAME}` in a value is read from the environment.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenServer {
    /// The id of a server that is not configured.
    name: Option<String>,
    stdio: Option<Program>,
    http: Option<Endpoint>,
    configured: Option<String>,
    recorded: Option<String>,
}

impl TryFrom<WrittenServer> for ServerChoice {
    type Error = String;

    fn try_from(written: WrittenServer) -> Result<Self, String> {
        let WrittenServer { name, stdio, http, configured, recorded } = written;
        let own_name = || name.clone().unwrap_or_else(|| "server".to_owned());
        match (stdio, http, configured, recorded) {
            (Some(program), None, None, None) => Ok(Self::Stdio { name: own_name(), program }),
            (None, Some(endpoint), None, None) => Ok(Self::Http { name: own_name(), endpoint }),
            (None, None, Some(id), None) => Ok(Self::Configured(id)),
            (None, None, None, Some(file)) => Ok(Self::Recorded(file)),
            _ => Err("a server has one of `stdio: { command: … }`, `http: { url: … }`, `configured: NAME` and \
                      `recorded: FILE`"
                .to_owned()),
        }
    }
}

/// The model of a scenario.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "WrittenModel")]
pub enum ModelChoice {
    /// The turns of a script in the file itself.
    Scripted(Vec<ScriptedTurn>),
    /// A conversation file, by its path.
    Script(String),
    /// The model of a recording, by the path of its file.
    Recorded(String),
    /// A model of the configuration.
    Configured(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenModel {
    scripted: Option<Vec<ScriptedTurn>>,
    script: Option<String>,
    recorded: Option<String>,
    configured: Option<String>,
}

impl TryFrom<WrittenModel> for ModelChoice {
    type Error = String;

    fn try_from(written: WrittenModel) -> Result<Self, String> {
        let WrittenModel { scripted, script, recorded, configured } = written;
        match (scripted, script, recorded, configured) {
            (Some(turns), None, None, None) => Ok(Self::Scripted(turns)),
            (None, Some(file), None, None) => Ok(Self::Script(file)),
            (None, None, Some(file), None) => Ok(Self::Recorded(file)),
            (None, None, None, Some(name)) => Ok(Self::Configured(name)),
            _ => Err("a model has one of `scripted: [turns]`, `script: FILE`, `recorded: FILE` and `configured: NAME`"
                .to_owned()),
        }
    }
}

/// The answers to the pending items of a run.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Answers {
    /// The decisions about calls that require approval; the first rule that fits applies.
    pub approvals: Approvals,
    /// The results of external tools, by their own names.
    pub external: BTreeMap<String, ExternalAnswer>,
    /// The responses to elicitations, by the keys of the server, or `*` for any key.
    pub elicitations: BTreeMap<String, ElicitationResponse>,
    /// The answers to questions of the model, in their order: an option, or a text.
    pub questions: Vec<String>,
}

/// The decisions about calls that require approval.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Approvals {
    /// One decision for every call.
    All(ApprovalDecision),
    /// A decision for the calls of some tools.
    Rules(Vec<ApprovalRule>),
}

impl Default for Approvals {
    fn default() -> Self {
        Self::Rules(Vec::new())
    }
}

/// Approve or deny.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalDecision {
    Approve,
    Deny,
}

/// A decision for the calls of some tools.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalRule {
    pub tool: ToolPattern,
    pub decision: ApprovalDecision,
    /// The reason that the model reads when the call is denied.
    pub reason: Option<String>,
}

/// The result of an external tool.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "WrittenExternalAnswer")]
pub enum ExternalAnswer {
    Result(Value),
    /// The message of an error.
    Error(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenExternalAnswer {
    result: Option<Value>,
    error: Option<String>,
}

impl TryFrom<WrittenExternalAnswer> for ExternalAnswer {
    type Error = String;

    fn try_from(written: WrittenExternalAnswer) -> Result<Self, String> {
        match (written.result, written.error) {
            (Some(result), None) => Ok(Self::Result(result)),
            (None, Some(message)) => Ok(Self::Error(message)),
            _ => Err("the answer of an external tool has one of `result: …` and `error: MESSAGE`".to_owned()),
        }
    }
}

/// How often a case runs with a real model, and how many of its runs have to pass.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "WrittenLive")]
pub struct Live {
    /// The number of runs; at least 1.
    pub runs: u32,
    /// The part of the runs that has to pass, from 0 to 1.
    pub pass_rate: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenLive {
    #[serde(default = "one_run")]
    runs: u32,
    #[serde(default = "all_runs")]
    pass_rate: f64,
}

impl Default for Live {
    fn default() -> Self {
        Self { runs: one_run(), pass_rate: all_runs() }
    }
}

impl TryFrom<WrittenLive> for Live {
    type Error = String;

    fn try_from(written: WrittenLive) -> Result<Self, String> {
        if written.runs == 0 || !(written.pass_rate > 0.0 && written.pass_rate <= 1.0) {
            return Err("`live` has `runs` of at least 1, and a `pass_rate` above 0 and up to 1, such as \
                        `{ runs: 5, pass_rate: 0.8 }`"
                .to_owned());
        }
        Ok(Self { runs: written.runs, pass_rate: written.pass_rate })
    }
}

fn one_run() -> u32 {
    1
}

fn all_runs() -> f64 {
    1.0
}
