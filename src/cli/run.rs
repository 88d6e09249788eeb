//! `toolgate run`: runs an agent on a message.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::Value;

use super::attach::attach;
use super::caller::Caller;
use super::drive_to_idle::settle;
use super::error::CliError;
use super::exit::Exit;
use super::follow::Display;
use super::follow_options::{FollowOptions, Tasks};
use super::interrupt::OnInterrupt;
use super::output::Output;
use super::session_arg;
use super::setup::{self, ConfigFlag, ConfigOverrides, RunChoice};
use super::stdin;
use super::text::count;
use crate::app::{self, App};
use crate::config::{self, StoreSettings};
use crate::core::id::{AgentName, SessionId};
use crate::runner::{Cause, Request};
use crate::service::check_name;

const EXAMPLES: &str = "\
Examples:
  toolgate run \"Which orders of Ada are late?\"
  toolgate run -c \"And which of them are paid?\"
  git diff | toolgate run --agent reviewer -
  toolgate run --mcp-config ~/.cursor/mcp.json --policy bypass \"List the open issues\"
  toolgate run --attach receipt.png --attach terms.pdf \"Is this covered?\"
  toolgate run --external-tools tools.json --json \"Refund order A-1077\"

In a terminal, the command shows the run live, and asks you for approvals, for the results of
external tools, and for answers to MCP servers. Elsewhere, progress goes to standard error and the
answer to standard output, and each pending item is listed with the command that answers it.

Exit codes: 0 completed, 10 pending, 1 failed, 2 wrong usage or configuration, 130 cancelled.";

/// Run an agent on a message
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Run {
    /// The message for the agent; `-` reads it from standard input
    message: String,

    #[command(flatten)]
    config: ConfigFlag,

    /// Which agent [default: the only one, or else `assistant`]
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// Attaches a file: an image, a PDF or a text of at most 20 MiB (repeatable)
    #[arg(long, value_name = "FILE")]
    attach: Vec<PathBuf>,

    /// Tools that you run yourself: a JSON or YAML list of name, description, input_schema (OpenAI functions work too)
    #[arg(long, value_name = "FILE")]
    external_tools: Option<PathBuf>,

    /// Continues this conversation: the model sees the messages of its earlier runs. `last` is that of the last run
    #[arg(long, value_name = "ID")]
    session: Option<String>,

    /// Continues the last conversation, like `--session last`
    #[arg(long = "continue", short = 'c', conflicts_with = "session")]
    continues: bool,

    /// The name of the schedule that starts the run, such as a cron job, for `runs list --schedule`
    #[arg(long, value_name = "NAME", value_parser = schedule)]
    schedule: Option<String>,

    /// The JSON Schema of the answer
    #[arg(long, value_name = "FILE")]
    output_schema: Option<PathBuf>,

    /// Limits the run to this number of model turns
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_iterations: Option<u32>,

    /// Waits for MCP tasks (calls that continue at their servers), also without a terminal
    #[arg(long)]
    wait: bool,

    /// Whether the first Ctrl-C cancels the run, or pauses it after its step in progress
    #[arg(long, value_name = "EFFECT", value_enum, default_value_t)]
    on_interrupt: OnInterrupt,

    /// Prints one lifecycle event per line as JSON, and the result as the last line
    #[arg(long)]
    pub(super) json: bool,

    /// Prints nothing but the answer and what is pending
    #[arg(long, short, conflicts_with = "json")]
    quiet: bool,

    #[command(flatten)]
    changes: ConfigOverrides,

    #[command(flatten)]
    choice: RunChoice,

    #[command(flatten)]
    caller: Caller,
}

impl Run {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let mut settings = setup::settings(&self.config)?;
        let agent = setup::agent(&settings, self.agent.as_deref())?;
        self.changes.apply(&mut settings, Some(&agent))?;
        self.choice.apply(&mut settings, Some(&agent))?;
        setup::require_model(&settings, &agent)?;
        // The local user may change the configuration, so this limit may be higher than the configured one.
        if let (Some(most), Some(agent)) = (self.max_iterations, settings.agents.get_mut(&agent)) {
            agent.limits.max_iterations = most;
        }
        let mut request = self.request(&agent)?;
        request.mode = settings.agents.get(&agent).and_then(|agent| self.choice.mode(&self.changes, agent));
        request.trace = self.caller.trace(out)?;
        let scripted = setup::stand_in_warning(&settings, &agent);
        let app = setup::open(settings).await?;
        for warning in app.warnings_of(&agent).iter().chain(&scripted) {
            out.warning(warning);
        }
        if !self.quiet {
            self.name_interrupted(&app, out).await?;
        }
        let ended = self.start(&app, request, out).await;
        if ended.is_ok() && scripted.is_some() && !self.quiet && !self.json {
            out.warning(
                "a script was played, so this is no answer to your message; the first warning names the remedy",
            );
        }
        setup::close_after(&ended, app, out).await;
        ended
    }

    /// Lists interrupted runs of other processes, and leaves them unchanged: their tools act only when a person resumes
    /// them.
    async fn name_interrupted(&self, app: &App, out: &mut Output) -> Result<(), CliError> {
        let orphaned = app.runner.orphaned().await?;
        let Some(first) = orphaned.first() else { return Ok(()) };
        let again = setup::again(&self.config, &ConfigOverrides::default());
        let resume = again.command(&["resume", first.as_str()]);
        let runs = count(orphaned.len(), "interrupted run");
        out.note(match orphaned.len() {
            1 => format!("{runs}: {resume}"),
            _ => format!("{runs}: {resume} (or all of them: {})", again.command(&["runs", "recover"])),
        });
        Ok(())
    }

    async fn start(&self, app: &App, mut request: Request, out: &mut Output) -> Result<Exit, CliError> {
        if self.continues || self.session.as_deref() == Some("last") {
            request.session = Some(session_arg::find(app, &request.tenant, "last").await?);
        }
        if let Some(session) = request.session.as_ref().filter(|_| !self.quiet)
            && app.runner.session(&request.tenant, session).await?.is_none()
        {
            out.note(format!("session {session} is new"));
        }
        let execution = app.runner.start(request).await?;
        let display = Display::choose(self.json, self.quiet, out);
        let options = FollowOptions::new(Tasks::waited_for(self.wait), self.on_interrupt);
        let (is_live, again) = (display.is_live(), setup::again(&self.config, &self.changes));
        let exit = settle(app, execution, &[], display, options, &again, out).await?;
        if is_live && exit == Exit::Done && app.settings.store != StoreSettings::Memory {
            let again = setup::again_for_new(&self.config, &self.changes, &self.choice);
            let words = format!("continue with: {} \"…\"", again.command(&["run", "-c"]));
            out.note(out.note_paint().dim(words));
        }
        Ok(exit)
    }

    fn request(&self, agent: &AgentName) -> Result<Request, CliError> {
        let mut request = Request::new(agent.clone(), self.text()?);
        for file in &self.attach {
            request.input.content.push(attach(file)?);
        }
        request.session = self.session.as_deref().map(SessionId::from);
        if let Some(name) = &self.schedule {
            request.cause = Cause::Schedule { name: name.clone() };
        }
        if let Some(file) = &self.external_tools {
            request.external_tools = config::external_tools_file(file)?;
        }
        request.output_schema = self.output_schema.as_deref().map(schema).transpose()?;
        Ok(request)
    }

    fn text(&self) -> Result<String, CliError> {
        let mut text = self.message.clone();
        if text == "-" {
            let read = stdin::read();
            text = read
                .map_err(|error| CliError::usage(format!("the message cannot be read from standard input: {error}")))?;
        }
        if text.trim().is_empty() {
            return Err(CliError::usage("the message is empty").with_remedy("say what the agent is to do"));
        }
        Ok(text)
    }
}

fn schedule(name: &str) -> Result<String, String> {
    check_name(name).map(|()| name.to_owned())
}

fn schema(path: &Path) -> Result<Value, CliError> {
    let schema: Value = config::read_file(path)?;
    if !schema.is_object() {
        let message = format!("`{}` is not a JSON Schema: it is not an object", path.display());
        return Err(CliError::usage(message));
    }
    if let Err(reason) = app::check_output_schema(&schema) {
        return Err(CliError::usage(format!("the schema in `{}` {reason}", path.display())));
    }
    Ok(schema)
}
