//! `toolgate mcp add`: adds a server to the configuration file, once it was started and listed its tools.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use clap::Args;
use serde_json::json;

use super::config_file::ConfigFile;
use super::connected_server::{ConnectedServer, milliseconds, new_trace};
use crate::app::{self, ToolServers};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::setup::{self, ConfigFlag};
use crate::cli::text::{block, count, duration};
use crate::cli::waiting::{Wait, WaitOutcome};
use crate::config::{self, AgentSettings, ServerDefinition, Settings};
use crate::core::id::{AgentName, ServerId};
use crate::core::policy::{Subject, Verdict};
use crate::core::tool::{Tool, Toolset};

const EXAMPLES: &str = "\
Examples:
  toolgate mcp add git -- uvx mcp-server-git --repository .
  toolgate mcp add docs --url https://example.com/mcp
  toolgate mcp add crm --url https://crm.example.com/mcp --header 'X-Key: ${CRM_KEY}'
  toolgate mcp add git --agent reviewer -- uvx mcp-server-git
  toolgate mcp add files --trusted -- npx -y @modelcontextprotocol/server-filesystem .

The command starts the server first, and writes nothing if that fails. It adds lines to the file
and changes no others: comments stay.

Exit codes: 0 added, 2 wrong usage or configuration, 5 the server is unavailable, 130 interrupted.";

/// Add a server to the configuration file, after a check that it starts
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
#[command(
    override_usage = "toolgate mcp add [OPTIONS] NAME -- COMMAND…\n       toolgate mcp add [OPTIONS] NAME --url URL"
)]
pub(super) struct Add {
    /// The id of the server; part of the tool names that a model sees
    name: String,

    /// A streamable HTTP server
    #[arg(long, conflicts_with = "program", required_unless_present = "program")]
    url: Option<String>,

    /// Sends an HTTP header with every request; write secrets as `${NAME}` (repeatable)
    #[arg(long, value_name = "NAME: VALUE", requires = "url")]
    header: Vec<String>,

    /// Sets an environment variable of the program, or passes one on (repeatable)
    #[arg(long, value_name = "NAME[=VALUE]", requires = "program")]
    env: Vec<String>,

    /// The agent that may use it [default: the only agent]
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// Believes what the server says of its tools, such as that one changes nothing
    #[arg(long)]
    trusted: bool,

    /// Writes the file also if the server does not start, for example because it needs `toolgate mcp login` first
    #[arg(long)]
    unchecked: bool,

    #[command(flatten)]
    config: ConfigFlag,

    /// The command of a stdio server, and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    program: Vec<String>,
}

impl Add {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        setup::log(setup::QUIET_LOG)?;
        let file = ConfigFile::open(&self.config)?;
        let id = ServerId::from(self.name.as_str());
        if file.settings.servers.contains_key(&id) {
            let message = format!("`{}` has a server `{id}` already", file.path.display());
            return Err(CliError::usage(message).with_remedy("choose another name, or change it in the file"));
        }
        let definition = self.definition()?;
        if let Some((name, problem)) = definition.variables.iter().find_map(|name| Some((name, self.conflict(name)?))) {
            let message = format!("the environment variable `{name}` {problem}, and the file would refer to it");
            let remedy = format!("`export {name}=…` first: values that look like secrets are not written to the file");
            return Err(CliError::usage(message).with_remedy(remedy));
        }
        for flag in self.program.iter().filter(|word| ["--trusted", "--unchecked"].contains(&word.as_str())) {
            out.warning(format!("`{flag}` after `--` goes to the program; for toolgate it stands before `--`"));
        }
        let agent = self.user(&file.settings)?;
        let by_hand = || file.by_hand(format!("add it below `servers:`:\n{}", definition.yaml.trim_end()));
        let added = config::with_server(&file.text, &definition.yaml).ok_or_else(by_hand)?;
        let used = agent.as_ref().and_then(|agent| config::with_server_of_agent(&added, agent.as_str(), id.as_str()));
        if let (Some(agent), None) = (&self.agent, &used) {
            let remedy = format!(
                "add `{id}` to the `servers` of agent `{agent}` in that file, after the same command without --agent"
            );
            return Err(file.by_hand(remedy));
        }
        let changed = file.changed(used.as_deref().unwrap_or(&added))?;
        let servers = &changed.settings.servers;
        if servers.len() != file.settings.servers.len() + 1 || !servers.contains_key(&id) {
            return Err(by_hand());
        }
        let mut tools = Toolset::default();
        match check(&changed.settings, &id, out).await? {
            WaitOutcome::Interrupted(_) => return Ok(Exit::Cancelled),
            WaitOutcome::Done(Err(problem)) if !self.unchecked => {
                let paint = out.note_paint();
                out.note(format!("{} {}", paint.red("error:"), block(&problem)));
                out.note(format!("nothing was written; --unchecked adds it to {} all the same", file.path.display()));
                return Ok(Exit::ServerFailed);
            }
            WaitOutcome::Done(Err(problem)) => out.warning(block(&problem)),
            WaitOutcome::Done(Ok(listed)) => tools = listed,
        }
        let user = agent.as_ref().and_then(|agent| changed.settings.agents.get(agent));
        let hint = user.and_then(|agent| trust_hint(agent, &tools));
        changed.save()?;
        out.line(format!("added server {id} to {}: {}", file.path.display(), definition.summary));
        match agent.filter(|_| used.is_some()) {
            Some(agent) => {
                out.line(format!("agent {agent} may use it: `toolgate tools` shows which calls require approval"));
                hint.iter().for_each(|hint| out.line(hint));
            }
            None => out.line(format!("no agent uses it yet: add `{id}` to the `servers` of an agent in that file")),
        }
        Ok(Exit::Done)
    }

    /// The definition, read as an editor's file has it, so that values that look like secrets become references.
    fn definition(&self) -> Result<ServerDefinition, CliError> {
        let pairs = |named: &[String], between: char| -> serde_json::Map<String, serde_json::Value> {
            let pair = |text: &String| match text.split_once(between) {
                Some((name, value)) => (name.trim().to_owned(), json!(value.trim_start())),
                None => (text.clone(), json!(format!("${{{text}}}"))),
            };
            named.iter().map(pair).collect()
        };
        let server = match &self.url {
            Some(url) => json!({"url": url, "headers": pairs(&self.header, ':')}),
            None => {
                let (command, args) = self
                    .program
                    .split_first()
                    .map_or((String::new(), &[][..]), |(first, rest)| (found_here(first), rest));
                json!({"command": command, "args": args, "env": pairs(&self.env, '=')})
            }
        };
        let failed = |error: std::io::Error| CliError::file("a temporary file", Path::new("mcp.json"), &error);
        let mut file = tempfile::Builder::new().prefix("toolgate-").suffix(".json").tempfile().map_err(failed)?;
        write!(file, "{}", json!({"mcpServers": {&self.name: server}})).map_err(failed)?;
        let here = std::env::current_dir().unwrap_or_default();
        let read = config::importable_servers(&[file.path().to_path_buf()], &here).pop();
        let server = read.transpose()?.and_then(|mut servers| servers.pop());
        let server = server.filter(|server| server.id == self.name).ok_or_else(|| {
            CliError::usage(format!("`{}` cannot be the name of a server", self.name))
                .with_remedy("use 1 to 64 letters, digits, `-` and `_`")
        })?;
        let mut definition = server.definition.map_err(CliError::usage)?;
        if self.trusted {
            definition.yaml = definition.trusted_yaml();
        }
        Ok(definition)
    }

    /// Why the server would not get the value that the command line gives to a variable, if so.
    fn conflict(&self, variable: &str) -> Option<&'static str> {
        let Some(current) = setup::environment(variable) else { return Some("is not set") };
        let mut given = self.env.iter().filter_map(|pair| pair.split_once('='));
        let differs = |value: &str| !value.contains("${") && value.trim_start() != current;
        let is_other = given.any(|(name, value)| name.trim() == variable && differs(value));
        is_other.then_some("has another value")
    }

    /// The agent that may use the server.
    fn user(&self, settings: &Settings) -> Result<Option<AgentName>, CliError> {
        match (&self.agent, settings.agents.keys().collect::<Vec<_>>().as_slice()) {
            (Some(name), _) => setup::agent(settings, Some(name)).map(Some),
            (None, [only]) => Ok(Some((*only).clone())),
            (None, _) => Ok(None),
        }
    }
}

/// A program that is named by a path, as seen from the folder of the user.
fn found_here(program: &str) -> String {
    let is_path = program.contains('/') && !program.starts_with('$');
    let whole = is_path.then(|| std::path::absolute(program).ok()).flatten();
    whole.map_or_else(|| program.to_owned(), |whole| whole.display().to_string())
}

/// Starts the server and lists its tools. Returns why it cannot be used, if so.
async fn check(
    settings: &Settings,
    id: &ServerId,
    out: &mut Output,
) -> Result<WaitOutcome<Result<Toolset, String>>, CliError> {
    let one = settings.servers.iter().filter(|(other, _)| *other == id);
    let one = one.map(|(id, settings)| (id.clone(), settings.clone())).collect();
    let servers = ToolServers::new(&one, &settings.credentials, app::propagation()?);
    let (mut wait, trace) = (Wait::new(), new_trace());
    let visited = wait.until("starting", ConnectedServer::new(&servers, id, &trace), out).await;
    wait.until("stopping", servers.close(), out).await;
    Ok(match visited {
        WaitOutcome::Interrupted(interrupt) => WaitOutcome::Interrupted(interrupt),
        WaitOutcome::Done(visit) => WaitOutcome::Done(match visit.as_ref() {
            Some(visit) if visit.is_ready() => {
                let (tools, took) = (count(visit.tools.len(), "tool"), duration(milliseconds(visit.took)));
                out.line(format!("{}: {tools}, ready after {took}", visit.about()));
                Ok(visit.tools.clone())
            }
            visit => Err(visit.and_then(ConnectedServer::fault).unwrap_or("the server is not ready").to_owned()),
        }),
    })
}

/// What `--trusted` would change, if the policy of the agent believes hints and the server is not trusted.
fn trust_hint(agent: &AgentSettings, tools: &Toolset) -> Option<String> {
    let verdict = |tool: &Tool| {
        let subject = Subject { tool, agent: Some(&agent.name), principal: None, arguments: None };
        agent.policy.judge_tool(&subject).judgement.verdict
    };
    let is_freed = |tool: &&Arc<Tool>| {
        let trusted = Tool { trusted: true, ..(***tool).clone() };
        verdict(tool) != Verdict::Allow && verdict(&trusted) == Verdict::Allow
    };
    let freed = tools.iter().filter(|tool| !tool.trusted).filter(is_freed).count();
    (freed > 0).then(|| {
        let (tools, policy) = (count(freed, "tool"), &agent.policy.name);
        format!(
            "policy `{policy}` believes hints (readOnlyHint, …) only of trusted servers: with --trusted, or `trusted: true` \
             in the file, {tools} would run without approval"
        )
    })
}
