//! `toolgate tools`: the tools that an agent's model would get now, and the policy for their calls.

mod compatibility;

use clap::Args;

use super::error::CliError;
use super::exit::Exit;
use super::output::Output;
use super::setup::{self, ConfigFlag, ConfigOverrides, RunChoice};
use super::table;
use super::text::{count, gutter, one_line};
use super::view::left_out_lines;
use super::waiting::{Wait, WaitOutcome};
use crate::core::policy::{Policy, Subject, ToolJudgement, Verdict};
use crate::core::tool::{Origin, Tool, Toolset, escape_untrusted};
use crate::gateway::views::ToolsView;
use crate::runner::Agent;

/// The length limit of a description. Descriptions are written for models, so people see only the start.
const DESCRIPTION: usize = 160;

const EXAMPLES: &str = "\
Examples:
  toolgate tools
  toolgate tools --mcp-config ~/.cursor/mcp.json --policy accept-edits
  toolgate tools --for main
  toolgate tools --for gemini -- node server.js
  toolgate tools --schema --json | jq '.tools[].input_schema'

POLICY: `allow` runs, `ask` requires approval, `deny` is rejected, `depends` is decided by the
arguments of a call. Of the calls in one reply, only those with the highest priority run.

Omitted tools are listed on standard error. Exit codes: 0 listed, 2 wrong usage or configuration,
5 an MCP server is unavailable or did not list all of its tools; the others are still listed.

`--for` shows how each tool is declared to a model: unchanged, with losses, or left out with the
reason. Arguments are still checked against the tool's own schema.";

/// List the tools of an agent, and what was left out and why
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Tools {
    #[command(flatten)]
    config: ConfigFlag,

    /// Which agent [default: the only one, or else `assistant`]
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// Shows how each tool fits the tool format of this model, or of any model of this kind (`openai_chat`, …)
    #[arg(long = "for", value_name = "MODEL", conflicts_with = "schema")]
    fits: Option<String>,

    /// With --for: the tools of this stdio server, without a configuration
    #[arg(last = true, value_name = "COMMAND", requires = "fits", conflicts_with_all = ["agent", "mcp_config"])]
    program: Vec<String>,

    /// Shows the whole description of each tool
    #[arg(long, conflicts_with = "fits")]
    long: bool,

    /// Shows the whole description of each tool, and the JSON Schema of its arguments
    #[arg(long)]
    schema: bool,

    /// Prints JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    changes: ConfigOverrides,

    #[command(flatten)]
    choice: RunChoice,
}

impl Tools {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        setup::log(setup::QUIET_LOG)?;
        if let (Some(model), false) = (&self.fits, self.program.is_empty()) {
            return compatibility::of_command(model, &self.program, self.json, out).await;
        }
        let mut settings = setup::settings(&self.config)?;
        let agent = setup::agent(&settings, self.agent.as_deref())?;
        self.changes.apply(&mut settings, Some(&agent))?;
        self.choice.apply(&mut settings, Some(&agent))?;
        let app = setup::open(settings).await?;
        let model = self.fits.as_deref().map(|name| compatibility::model(&app.models, name).map(|model| (name, model)));
        let mut wait = Wait::new();
        let tools = wait.until("starting the servers", app.runner.tools(&agent, None), out).await;
        let agent = app.runner.agent(&agent);
        setup::close(app, out).await;
        let WaitOutcome::Done(tools) = tools else { return Ok(Exit::Cancelled) };
        let (model, agent, tools) = (model.transpose()?, agent?, tools?);
        let tools = match model {
            Some(_) => tools,
            None => agent.within_tool_limit(&agent.model_name, tools),
        };
        match model {
            Some((name, model)) => compatibility::print(name, model.as_ref(), &tools, self.json, out),
            None if self.json => {
                out.pretty(&ToolsView::new(&agent, tools.iter().map(|tool| subject(&agent, tool)), tools.left_out()));
            }
            None if self.long || self.schema => print_long(&agent, &tools, self.schema, out),
            None => print(&agent, None, &tools, out),
        }
        if !self.json {
            let paint = out.note_paint();
            left_out_lines(tools.left_out()).iter().for_each(|line| out.note(paint.yellow(line)));
            tools.warnings().for_each(|text| out.warning(escape_untrusted(&text)));
        }
        // One omitted tool is a problem of its server; a missing server is a problem of the operator.
        let is_missing = tools.left_out().iter().any(|left| left.server.is_some() && left.tool.is_none());
        Ok(if is_missing { Exit::ServerFailed } else { Exit::Done })
    }
}

/// Prints the tools as a table, with the verdicts of the agent's policy, or of the one that a mode names.
pub(super) fn print(agent: &Agent, mode: Option<&str>, tools: &Toolset, out: &mut Output) {
    let chosen = agent.policies().find(|policy| Some(policy.name.as_str()) == mode);
    let policy = chosen.unwrap_or(&agent.policy);
    let rows = tools.iter().map(|tool| row(tool, verdict(agent, policy, tools, tool)));
    table::print(&["TOOL", "POLICY", "PRIORITY", "FROM", "DESCRIPTION"], rows, out);
    out.line(count(tools.iter().count(), "tool"));
}

fn row(tool: &Tool, verdict: String) -> [String; 5] {
    let description = one_line(&tool.description, DESCRIPTION);
    [tool.name.to_string(), verdict, tool.priority.to_string(), origin(tool), description]
}

/// Each tool with its whole description, and the schema of its arguments if it is wanted.
fn print_long(agent: &Agent, tools: &Toolset, schemas: bool, out: &mut Output) {
    let paint = out.paint();
    for tool in tools.iter() {
        let about =
            format!("{}, priority {}, {}", origin(tool), tool.priority, verdict(agent, &agent.policy, tools, tool));
        out.line(format!("{}  {}", paint.bold(&tool.name), paint.dim(about)));
        gutter(&tool.description).iter().for_each(|line| out.line(format!("  {line}")));
        if !schemas {
            continue;
        }
        let schema = serde_json::to_string_pretty(&*tool.input_schema).unwrap_or_default();
        out.line(format!("  {}", schema.replace('\n', "\n  ")));
    }
}

fn origin(tool: &Tool) -> String {
    match &tool.origin {
        Origin::Mcp { server, tool } => one_line(&format!("{server}/{tool}"), DESCRIPTION),
        Origin::External { .. } => "your application".into(),
        Origin::Builtin { .. } => "toolgate".into(),
    }
}

fn subject<'a>(agent: &'a Agent, tool: &'a Tool) -> Subject<'a> {
    Subject { tool, agent: Some(&agent.name), principal: None, arguments: None }
}

/// The policy's verdict, and whether the model sees the tool only once it is granted.
fn verdict(agent: &Agent, policy: &Policy, tools: &Toolset, tool: &Tool) -> String {
    let hidden = if tool.hidden { ", hidden" } else { "" };
    let ToolJudgement { judgement, depends_on_arguments } = policy.judge_tool(&subject(agent, tool));
    // Calls that a misspelled rule may have meant require approval whatever their arguments are.
    let is_meant = tools.unmatched_rules().iter().any(|rule| rule.may_restrict(tool));
    let verdict = match depends_on_arguments && !is_meant {
        true => "depends",
        false if is_meant => judgement.verdict.max(Verdict::Ask).as_str(),
        false => judgement.verdict.as_str(),
    };
    format!("{verdict}{hidden}")
}
