//! `toolgate sessions show`: the record of a session, and its runs.

use clap::Args;
use serde::Serialize;

use super::latest_runs::LatestRuns;
use super::list::with_total_usage;
use crate::app::App;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::paint::Paint;
use crate::cli::session_arg::{TenantFlag, find};
use crate::cli::setup::{self, ConfigFlag};
use crate::cli::text::{count, one_line};
use crate::cli::view::{clock, cost};
use crate::core::tool::escape_untrusted;
use crate::ports::{RunFilter, RunRow, SessionLimits, SessionRow};

/// The number of runs that are shown.
const RUNS: usize = 20;

/// Show a session: its title, its agent, its metadata and its latest runs
#[derive(Args, Debug)]
pub(super) struct Show {
    /// The session: its id, a unique beginning of it, or `last`
    session: String,

    #[command(flatten)]
    tenant: TenantFlag,

    #[command(flatten)]
    config: ConfigFlag,

    /// Prints the record as JSON
    #[arg(long)]
    json: bool,
}

/// The record of a session as JSON.
#[derive(Serialize)]
struct SessionJson<'a> {
    #[serde(flatten)]
    row: &'a SessionRow,
    /// Its latest runs, newest first.
    latest_runs: &'a [RunRow],
}

impl Show {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let app = setup::open(setup::settings(&self.config)?).await?;
        let printed = self.print(&app, out).await;
        setup::close(app, out).await;
        printed.map(|()| Exit::Done)
    }

    async fn print(&self, app: &App, out: &mut Output) -> Result<(), CliError> {
        let (row, runs) = self.read(app).await?;
        match self.json {
            true => out.pretty(&SessionJson { row: &with_total_usage(&row), latest_runs: &runs }),
            false => lines(app, &row, &runs, out.paint()).await?.iter().for_each(|line| out.line(line)),
        }
        Ok(())
    }

    async fn read(&self, app: &App) -> Result<(SessionRow, Vec<RunRow>), CliError> {
        let tenant = self.tenant.tenant();
        let id = find(app, &tenant, &self.session).await?;
        let missing = || CliError::not_found(format!("there is no session `{id}`"));
        let row = app.runner.session(&tenant, &id).await?.ok_or_else(missing)?;
        let filter = RunFilter { session: Some(id), tenant: Some(tenant), limit: RUNS, ..RunFilter::default() };
        Ok((row, app.runner.list(&filter).await?))
    }
}

/// The record of a session, and these runs.
pub(super) async fn lines(app: &App, row: &SessionRow, runs: &[RunRow], paint: Paint) -> Result<Vec<String>, CliError> {
    let latest = LatestRuns::of(app, row).await?;
    let mut lines = vec![
        format!("{}  {}", paint.bold(escape_untrusted(row.id.as_str())), state(row, &latest, paint)),
        format!("    {}", one_line(&row.title, 100)),
        format!(
            "    agent {}{}, {}, cost {}, since {}, changed {}{}",
            escape_untrusted(row.agent.as_str()),
            row.principal.as_ref().map_or_else(String::new, |name| format!(" for {}", escape_untrusted(name.as_str()))),
            count(usize::try_from(row.runs).unwrap_or(usize::MAX), "run"),
            cost(&row.total_usage(), latest.missing),
            clock(row.created_at),
            clock(row.updated_at),
            row.head.as_ref().map_or_else(String::new, |head| format!(", last used {}", clock(head.updated_at))),
        ),
    ];
    lines.extend(limits(row).map(|limits| format!("    limits {limits}")));
    lines.extend(row.settings.mode.as_ref().map(|mode| format!("    mode {}", escape_untrusted(mode))));
    lines.extend(app.runner.session_expires_at(row).map(|at| format!("    expires {}", clock(at))));
    if let Some(folder) = row.runtime.as_ref().and_then(|runtime| runtime.working_directory.as_ref()) {
        lines.push(format!("    working directory {}", escape_untrusted(folder)));
    }
    let metadata = row.settings.metadata.iter().map(|(name, value)| format!("    {name}: {value}"));
    lines.extend(metadata.map(|line| escape_untrusted(&line)));
    lines.extend(runs.iter().map(|run| run_line(run, paint)));
    Ok(lines)
}

/// The limits of a session with what its runs used of them; `None` without limits.
fn limits(row: &SessionRow) -> Option<String> {
    let SessionLimits { max_iterations, max_tokens, max_cost_usd, deadline_s } = &row.settings.limits;
    let used = row.total_usage();
    let tokens = used.total_tokens().unwrap_or(0);
    let limits = [
        max_iterations.map(|max| format!("{} of {max} turns", row.total_iterations())),
        max_tokens.map(|max| format!("{tokens} of {max} tokens")),
        max_cost_usd.map(|max| format!("${} of ${max}", used.cost_usd.unwrap_or_default())),
        deadline_s.map(|max| format!("{max} s since its creation")),
    ];
    let limits: Vec<String> = limits.into_iter().flatten().collect();
    (!limits.is_empty()).then(|| limits.join(", "))
}

fn state(row: &SessionRow, latest: &LatestRuns, paint: Paint) -> String {
    match (row.deleted_at, latest.open_status(row).zip(row.head.as_ref())) {
        (Some(at), _) => paint.red(format!("deleted {}", clock(at))),
        (None, Some((status, head))) => paint.yellow(format!("{status} {}", head.run)),
        (None, None) => "idle".to_owned(),
    }
}

fn run_line(run: &RunRow, paint: Paint) -> String {
    let status = paint.dim(format!("{:<11}", run.status_word()));
    format!("    {}  {status}  {}  {}", run.id, clock(run.created_at), one_line(&run.title_or_trigger(), 60))
}
