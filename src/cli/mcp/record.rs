//! `toolgate mcp record`: a run as a recording, either a new run or one of the store.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;

use super::target::TargetFlags;
use super::wire_proxy;
use crate::app::App;
use crate::app::testing::recorded_address;
use crate::cli::drive_to_idle::settle;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::follow::Display;
use crate::cli::follow_options::Tasks;
use crate::cli::output::Output;
use crate::cli::run_arg::find;
use crate::cli::setup::{self, ConfigOverrides, RunChoice};
use crate::cli::text::{count, shell_word};
use crate::cli::view::RepeatedFlags;
use crate::config::{Settings, StoreSettings};
use crate::core::error::ErrorCode;
use crate::core::id::{AgentName, RunId};
use crate::core::redact::Style;
use crate::lab::recording::{Format, RecordedServer, Recording, RecordingContext, Unrecordable};
use crate::runner::Request;

const EXAMPLES: &str = "\
Examples:
  toolgate mcp record -o ada.yaml \"Which orders of Ada are late?\" -- node server.js
  toolgate mcp record -o ada.yaml --agent desk \"Which orders of Ada are late?\"
  toolgate mcp record -o ada.yaml --from-run last
  toolgate mcp replay ada.yaml

The file has the replies of the model, the tools of the servers, the calls and their results. Secrets
are redacted, call ids are numbered, and there are no times: two recordings of one run are equal byte
for byte. A name that ends in `.jsonl` selects JSON lines.

A server that is not configured replaces the servers of the agent for this run. --policy bypass runs
its tools without approvals.

Exit codes: 0 recorded, 1 the run failed (and is recorded), 2 wrong usage or configuration, 10 the run
is pending: finish it with `toolgate resume`, then use --from-run.";

/// Record a run of an agent as a file: the model's replies, the tools, the calls and their results
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Record {
    /// The message for the agent
    #[arg(required_unless_present = "from_run")]
    task: Option<String>,

    /// The file to write: YAML, or JSON lines if its name ends in `.jsonl`
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,

    /// Records a run of the store that has ended: its id, a unique beginning or end of it, or `last`
    #[arg(long, value_name = "RUN", conflicts_with_all = ["task", "agent", "model", "policy", "command", "program", "url", "server"])]
    from_run: Option<String>,

    /// Which agent [default: the only one, or else `assistant`]
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    #[command(flatten)]
    choice: RunChoice,

    #[command(flatten)]
    reach: TargetFlags,
}

impl Record {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let mut settings = self.reach.settings()?;
        if let Some(run) = &self.from_run {
            let app = setup::open(settings).await?;
            let recorded = self.record_stored(&app, run, out).await;
            setup::close(app, out).await;
            return recorded;
        }
        let agent = setup::agent(&settings, self.agent.as_deref())?;
        self.choice.apply(&mut settings, Some(&agent))?;
        setup::require_model(&settings, &agent)?;
        let addresses = self.use_server(&mut settings, &agent)?;
        let app = setup::open(settings).await?;
        let again = setup::again(self.reach.config(), &ConfigOverrides::default());
        let recorded = self.record_new(&app, agent, addresses, &again, out).await;
        setup::close_after(&recorded, app, out).await;
        recorded
    }

    /// Gives the agent the selected server in place of its own ones. Returns how a server that is not configured is
    /// reached.
    fn use_server(
        &self,
        settings: &mut Settings,
        agent: &AgentName,
    ) -> Result<BTreeMap<String, RecordedServer>, CliError> {
        if !self.reach.is_given() {
            self.reach.refuse_wire()?;
            return Ok(BTreeMap::new());
        }
        let (target, direct) = (wire_proxy::target(&self.reach, None)?, self.reach.target(None)?);
        let is_configured = self.reach.server().is_some();
        let address = (!is_configured).then(|| (target.id.to_string(), recorded_address(&direct.settings)));
        if let Some(agent) = settings.agents.get_mut(agent) {
            agent.servers = vec![target.id.clone()];
        }
        settings.servers.insert(target.id, target.settings);
        Ok(address.into_iter().collect())
    }

    async fn record_new(
        &self,
        app: &App,
        agent: AgentName,
        addresses: BTreeMap<String, RecordedServer>,
        again: &RepeatedFlags,
        out: &mut Output,
    ) -> Result<Exit, CliError> {
        let mut request = Request::new(agent, self.task.clone().unwrap_or_default());
        request.mode.clone_from(&self.choice.policy);
        let execution = app.runner.start(request).await?;
        let run = execution.run.clone();
        let display = Display::choose(false, false, out);
        let exit = settle(app, execution, &[], display, Tasks::Everywhere.into(), again, out).await?;
        if exit == Exit::Pending {
            if !addresses.is_empty() {
                out.note(
                    "not recorded: the run is pending, and no other command can resume it, because its server is not \
                     configured; with --policy bypass no call requires approval",
                );
            } else if app.settings.store != StoreSettings::Memory {
                let file = shell_word(&self.output.display().to_string());
                let words = ["mcp", "record", "-o", file.as_str(), "--from-run", run.as_str()];
                out.note(format!("not recorded: the run is pending; after it ended: {}", again.command(&words)));
            }
            return Ok(exit);
        }
        self.write(app, &run, addresses, out).await?;
        Ok(exit)
    }

    async fn record_stored(&self, app: &App, run: &str, out: &mut Output) -> Result<Exit, CliError> {
        let run = find(app, run).await?;
        self.write(app, &run, BTreeMap::new(), out).await?;
        Ok(Exit::Done)
    }

    async fn write(
        &self,
        app: &App,
        run: &RunId,
        servers: BTreeMap<String, RecordedServer>,
        out: &mut Output,
    ) -> Result<(), CliError> {
        let context = RecordingContext { servers, secrets: app.settings.secrets().build(Style::MESSAGE) };
        let journal = app.runner.journal(run).await?;
        let recording = Recording::of_ended_run(&journal, &context).map_err(|error| unrecordable(run, &error))?;
        let text = recording.to_text(Format::of_path(&self.output));
        write_file(&self.output, &text.map_err(|error| CliError::new(ErrorCode::Internal, error.to_string()))?)?;
        let (turns, calls) = (count(recording.turns.len(), "turn"), count(recording.calls().count(), "call"));
        out.note(format!("recorded {turns} with {calls}: {}", self.output.display()));
        Ok(())
    }
}

fn unrecordable(run: &RunId, error: &Unrecordable) -> CliError {
    let refused = CliError::usage(format!("{run} cannot be recorded: {error}"));
    match error {
        Unrecordable::NotEnded => refused.with_remedy(format!("finish it with `toolgate resume {run}`")),
        Unrecordable::Continues => refused.with_remedy("record a run that was started without --session"),
        Unrecordable::Empty | Unrecordable::Unredacted => refused,
    }
}

fn write_file(path: &Path, text: &str) -> Result<(), CliError> {
    std::fs::write(path, text).map_err(|error| CliError::file("the recording", path, &error))
}
