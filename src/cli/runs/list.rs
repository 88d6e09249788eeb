//! `toolgate runs list`: runs, newest first.

use clap::Args;
use jiff::Timestamp;
use serde::Serialize;

use super::selection::RunSelection;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::run_arg;
use crate::cli::setup::{self, ConfigFlag};
use crate::cli::table;
use crate::cli::text::{age, duration, one_line};
use crate::cli::view::{MissingUsage, cost};
use crate::core::id::AgentName;
use crate::core::tool::escape_untrusted;
use crate::ports::{RunFilter, RunRow};

/// List runs, newest first
#[derive(Args, Debug)]
pub(super) struct List {
    #[command(flatten)]
    config: ConfigFlag,

    #[command(flatten)]
    selection: RunSelection,

    /// The maximum number of runs
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,

    /// Prints one JSON object per line
    #[arg(long)]
    json: bool,
}

impl List {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let app = setup::open(setup::settings(&self.config)?).await?;
        setup::warn_of_unknown(self.selection.agent.as_deref(), &app.settings, out);
        let filter = self.selection.filter(self.limit as usize);
        let is_filtered = filter != RunFilter { limit: filter.limit, ..RunFilter::default() };
        let rows = app.runner.list(&filter).await;
        let runner = app.runner.clone();
        setup::close(app, out).await;
        let mut rows = rows?;
        rows.retain(|row| self.selection.admits(row));
        rows.truncate(self.limit as usize);
        let is_blocked = |row: &&RunRow| !row.status.is_ended() && runner.agent(&row.agent).is_err();
        let blocked = |row| Some(row).filter(is_blocked).map(|row| no_such_agent(&row.agent));
        if self.json {
            rows.iter().for_each(|row| out.json(&RunListRow { row, blocked: blocked(row) }));
        } else if rows.is_empty() {
            out.note(if is_filtered { "no runs match" } else { "no runs; `toolgate run \"…\"` starts one" });
        } else {
            let now = Timestamp::now();
            let ids = run_arg::shown(rows.iter().map(|row| row.id.as_str()), out);
            let cells = rows.iter().zip(ids).map(|(row, id)| cells(row, id, now));
            table::print(&["RUN", "STATUS", "AGE", "DURATION", "AGENT", "COST", "MESSAGE"], cells, out);
        }
        for row in rows.iter().filter(|row| !self.json && is_blocked(row)) {
            let remedy = format!("configure it again, or end the run with `toolgate runs cancel {}`", row.id);
            out.note(format!("{} is blocked: {}; {remedy}", row.id, no_such_agent(&row.agent)));
        }
        Ok(Exit::Done)
    }
}

/// A row of `--json`.
#[derive(Serialize)]
struct RunListRow<'a> {
    #[serde(flatten)]
    row: &'a RunRow,
    /// Why the run cannot resume with this configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    blocked: Option<String>,
}

fn no_such_agent(name: &AgentName) -> String {
    format!("its agent `{}` is not configured", escape_untrusted(name.as_str()))
}

fn cells(row: &RunRow, id: String, now: Timestamp) -> [String; 7] {
    let took = row.result.as_ref().and_then(|result| result.duration_ms);
    [
        id,
        row.status_word().to_owned(),
        age(row.created_at, now),
        took.map_or_else(|| "-".to_owned(), duration),
        row.agent.as_str().to_owned(),
        cost(&row.usage, MissingUsage::default()),
        one_line(&row.title_or_trigger(), 60),
    ]
}
