//! `toolgate run`: a message for an agent.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use futures::FutureExt;
use futures::future::join_all;
use serde_json::Value;

use super::attach::attach;
use super::caller::Caller;
use super::config::cannot_act;
use super::error::CliError;
use super::exit::Exit;
use super::follow::Display;
use super::interrupt::Interrupts;
use super::output::Output;
use super::settle::{Tasks, settle};
use super::setup::{self, Changes, ConfigFlag};
use crate::app::{self, App};
use crate::config;
use crate::core::chat::Message;
use crate::core::id::{AgentName, SessionId};
use crate::ports::RunFilter;
use crate::runner::{Execution, Request};

const EXAMPLES: &str = "\
Examples:
  toolgate run \"Which orders of Ada are late?\"
  git diff | toolgate run --agent reviewer -
  toolgate run --mcp-config ~/.cursor/mcp.json --policy bypass \"List the open issues\"
  toolgate run --attach receipt.png --attach terms.pdf \"Is this covered?\"
  toolgate run --external-tools tools.json --json \"Refund order A-1077\"

In a terminal the run is shown live, and you are asked for approvals, for the results of external
tools, and for what MCP servers want to know. Elsewhere the story goes to standard error, the answer
to standard output, and what is pending is listed with the command that answers it.

Exit codes: 0 completed, 10 pending, 1 failed, 2 wrong usage or configuration, 130 cancelled.";

/// Run an agent on a message
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Run {
    /// What the agent is told; `-` reads it from standard input
    message: String,

    #[command(flatten)]
    config: ConfigFlag,

    /// Which agent [default: the only one, or else `assistant`]
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// Sends a file along: an image, a PDF or a text of at most 20 MiB (repeatable)
    #[arg(long, value_name = "FILE")]
    attach: Vec<PathBuf>,

    /// Tools that you run yourself: a JSON or YAML list of name, description, input_schema (OpenAI functions work too)
    #[arg(long, value_name = "FILE")]
    external_tools: Option<PathBuf>,

    /// Continues this conversation: the model sees what was said in its earlier runs
    #[arg(long, value_name = "ID")]
    session: Option<String>,

    /// JSON Schema that the answer has to fit
    #[arg(long, value_name = "FILE")]
    output_schema: Option<PathBuf>,

    /// Ends the run after so many model turns
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_iterations: Option<u32>,

    /// Waits for calls that go on at their servers as tasks, also where this is no terminal
    #[arg(long)]
    wait: bool,

    /// Prints one lifecycle event per line as JSON, and the result as the last line
    #[arg(long)]
    pub(super) json: bool,

    /// Prints nothing but the answer and what is pending
    #[arg(long, short, conflicts_with = "json")]
    quiet: bool,

    #[command(flatten)]
    changes: Changes,

    #[command(flatten)]
    caller: Caller,
}

impl Run {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let mut settings = setup::settings(&self.config)?;
        let agent = setup::agent(&settings, self.agent.as_deref())?;
        self.changes.apply(&mut settings, Some(&agent))?;
        setup::require_model(&settings, &agent)?;
        // Whoever sits here may change the configuration, so this may also be more than it says.
        if let (Some(most), Some(agent)) = (self.max_iterations, settings.agents.get_mut(&agent)) {
            agent.limits.max_iterations = most;
        }
        let mut request = self.request(&agent)?;
        request.trace = self.caller.trace(out)?;
        let app = setup::open(settings).await?;
        for limit in app.idle_cost_limits().into_iter().filter(|limit| limit.agent == agent) {
            out.note(format!("{} {}", out.note_paint().yellow("warning:"), cannot_act(&limit)));
        }
        let adopted = if self.changes.is_empty() { self.recover(&app, out).await? } else { Vec::new() };
        let ended = self.start(&app, request, out).await;
        match ended {
            Ok(exit) if !rest(adopted, exit, out).await => app.abandon().await,
            _ => super::close_after(&ended, app, out).await,
        }
        ended
    }

    /// A process that starts drives on what dead ones left behind, beside its own run. Not with flags for this command
    /// only: what was begun under one policy is not to go on under another.
    async fn recover(&self, app: &App, out: &mut Output) -> Result<Vec<Execution>, CliError> {
        let adopted = app.runner.recover().await?;
        for execution in adopted.iter().filter(|_| !self.quiet) {
            out.note(format!("also driving on {}, which a dead process left behind", execution.run));
        }
        Ok(adopted)
    }

    async fn start(&self, app: &App, mut request: Request, out: &mut Output) -> Result<Exit, CliError> {
        if let Some(session) = &request.session {
            request.history = conversation(app, session).await?;
        }
        let execution = app.runner.start(request).await?;
        let display = Display::choose(self.json, self.quiet, out);
        let tasks = Tasks::waited_for(self.wait);
        settle(app, execution, &[], display, tasks, &setup::again(&self.config, &self.changes), out).await
    }

    fn request(&self, agent: &AgentName) -> Result<Request, CliError> {
        let mut request = Request::new(agent.clone(), self.text()?);
        for file in &self.attach {
            request.input.content.push(attach(file)?);
        }
        request.session = self.session.as_deref().map(SessionId::from);
        if let Some(file) = &self.external_tools {
            request.external_tools = config::external_tools_file(file)?;
        }
        request.output_schema = self.output_schema.as_deref().map(schema).transpose()?;
        Ok(request)
    }

    fn text(&self) -> Result<String, CliError> {
        let mut text = self.message.clone();
        if text == "-" {
            text.clear();
            let read = std::io::stdin().read_to_string(&mut text);
            read.map_err(|error| CliError::usage(format!("the message cannot be read from standard input: {error}")))?;
        }
        if text.trim().is_empty() {
            return Err(CliError::usage("the message is empty").with_remedy("say what the agent is to do"));
        }
        Ok(text)
    }
}

/// Waits for adopted runs to rest, unless somebody does not want to: they can be left as they were found. Whether they
/// rest.
async fn rest(adopted: Vec<Execution>, exit: Exit, out: &mut Output) -> bool {
    let left: Vec<String> = adopted.iter().map(|execution| execution.run.to_string()).collect();
    let resting = join_all(adopted.into_iter().map(Execution::rest));
    tokio::pin!(resting);
    if resting.as_mut().now_or_never().is_some() {
        return true;
    }
    if exit == Exit::Cancelled {
        return false;
    }
    // Listened for before it is offered: who reads the line may press at once.
    let mut interrupts = Interrupts::listen();
    let runs = left.join(", ");
    out.note(format!("still driving on {runs}; Ctrl-C leaves it to `toolgate resume`, or to the next `toolgate run`"));
    tokio::select! {
        _ = resting => true,
        _ = interrupts.next() => false,
    }
}

fn schema(path: &Path) -> Result<Value, CliError> {
    let schema: Value = config::read_file(path)?;
    if !schema.is_object() {
        let message = format!("`{}` holds no JSON Schema: it is no object", path.display());
        return Err(CliError::usage(message));
    }
    if let Err(reason) = app::check_output_schema(&schema) {
        return Err(CliError::usage(format!("the schema in `{}` {reason}", path.display())));
    }
    Ok(schema)
}

/// The conversation of a session so far: that of its latest run, however it ended, up to the last turn that was answered.
async fn conversation(app: &App, session: &SessionId) -> Result<Vec<Message>, CliError> {
    let filter = RunFilter { session: Some(session.clone()), ..RunFilter::default() };
    let rows = app.runner.list(&filter).await?;
    if let Some(open) = rows.iter().find(|row| !row.status.is_ended()) {
        let message = format!("session `{session}` has a run that is {}: {}", open.status.as_str(), open.id);
        return Err(CliError::usage(message).with_remedy(format!("finish it with `toolgate resume {}`", open.id)));
    }
    let Some(latest) = rows.first() else { return Ok(Vec::new()) };
    Ok(app.runner.load(&latest.id).await?.conversation())
}
