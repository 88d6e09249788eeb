//! `toolgate sessions list`: sessions, newest first.

use clap::Args;
use jiff::Timestamp;

use super::latest_runs::LatestRuns;
use crate::app::App;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::run_arg;
use crate::cli::session_arg::TenantFlag;
use crate::cli::setup::{self, ConfigFlag};
use crate::cli::table;
use crate::cli::text::{age, one_line};
use crate::cli::view::cost;
use crate::core::tool::escape_untrusted;
use crate::ports::{SessionFilter, SessionRow};

/// List sessions, newest first
#[derive(Args, Debug)]
pub(super) struct List {
    /// Only sessions of this agent
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    #[command(flatten)]
    tenant: TenantFlag,

    /// The maximum number of sessions
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,

    #[command(flatten)]
    config: ConfigFlag,

    /// Prints one JSON object per line
    #[arg(long)]
    json: bool,
}

impl List {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let app = setup::open(setup::settings(&self.config)?).await?;
        setup::warn_of_unknown(self.agent.as_deref(), &app.settings, out);
        let filter = SessionFilter {
            tenant: self.tenant.tenant(),
            agent: self.agent.as_deref().map(Into::into),
            limit: self.limit as usize,
            ..SessionFilter::default()
        };
        let rows = read(&app, &filter, self.json).await;
        setup::close(app, out).await;
        let (rows, latest): (Vec<SessionRow>, Vec<LatestRuns>) = rows?.into_iter().unzip();
        if self.json {
            rows.iter().for_each(|row| out.json(&with_total_usage(row)));
        } else if rows.is_empty() {
            out.note("no sessions; `toolgate chat` begins one, and so does a run that another continues");
        } else {
            let now = Timestamp::now();
            let ids = run_arg::shown(rows.iter().map(|row| row.id.as_str()), out);
            let cells = rows.iter().zip(latest).zip(ids).map(|((row, latest), id)| cells(row, &latest, &id, now));
            table::print(&["SESSION", "STATUS", "RUNS", "AGE", "USED", "AGENT", "COST", "TITLE"], cells, out);
        }
        Ok(Exit::Done)
    }
}

/// The row with the usage and turns of all its runs. The row of the store has those of the runs before the latest one.
pub(super) fn with_total_usage(row: &SessionRow) -> SessionRow {
    SessionRow { usage: row.total_usage(), iterations: row.total_iterations(), ..row.clone() }
}

/// The sessions, each with what its runs tell, which the JSON does not have.
async fn read(app: &App, filter: &SessionFilter, is_json: bool) -> Result<Vec<(SessionRow, LatestRuns)>, CliError> {
    let mut read = Vec::new();
    for row in app.runner.sessions(filter).await? {
        let latest = if is_json { LatestRuns::default() } else { LatestRuns::of(app, &row).await? };
        read.push((row, latest));
    }
    Ok(read)
}

fn cells(row: &SessionRow, latest: &LatestRuns, id: &str, now: Timestamp) -> [String; 8] {
    [
        escape_untrusted(id),
        latest.open_status(row).unwrap_or("idle").to_owned(),
        row.runs.to_string(),
        age(row.created_at, now),
        row.head.as_ref().map_or_else(|| "-".to_owned(), |head| age(head.updated_at, now)),
        escape_untrusted(row.agent.as_str()),
        cost(&row.total_usage(), latest.missing),
        one_line(&row.title, 60),
    ]
}
