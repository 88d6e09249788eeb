//! `toolgate usage`: tokens and cost of runs, from the index alone. It reads no journal.

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};
use jiff::Timestamp;
use serde::Serialize;

use super::error::CliError;
use super::exit::Exit;
use super::output::Output;
use super::setup::{self, ConfigFlag};
use super::table;
use super::text::{count, one_line};
use super::time_arg::Moment;
use super::view::{UsageJson, dollars, tokens};
use crate::core::chat::Usage;
use crate::core::id::ModelName;
use crate::core::run::Status;
use crate::ports::{RunFilter, RunRow};
use crate::runner::AgentRunner;

/// The number of rows of one query.
const PAGE: usize = 500;

/// The most characters of a name.
const NAME: usize = 40;

const EXAMPLES: &str = "\
Examples:
  toolgate usage                          by the day on which a run began, in UTC
  toolgate usage --by agent --since 7d
  toolgate usage --by run --since 2027-01-01T00:00:00Z --json | jq '.groups[0]'

A total counts what providers reported: `at least` marks one that lacks the cost of a whole run. The
index has one sum a run, so a run with several models is under all of their names together.";

/// Show what runs cost, by day, agent, model or run
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct UsageReport {
    #[command(flatten)]
    config: ConfigFlag,

    /// What the rows of the table are
    #[arg(long, value_name = "WHAT", default_value = "day")]
    by: Grouping,

    /// Only runs that began since then: how long ago (30m, 8h, 7d), or when (2027-01-01T09:00:00Z)
    #[arg(long, value_name = "WHEN")]
    since: Option<Moment>,

    /// Only runs of this agent
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// Prints JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
enum Grouping {
    Day,
    Agent,
    Model,
    Run,
}

/// The sum of some runs.
#[derive(Clone, Debug, Default)]
struct Sum {
    runs: usize,
    usage: Usage,
    /// Runs that have or may have used a model, and whose cost is not known.
    without_cost: usize,
    /// The same for tokens.
    without_tokens: usize,
}

/// A sum as `--json` prints it.
#[derive(Serialize)]
struct SumJson<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    runs: usize,
    usage: UsageJson,
    runs_without_cost: usize,
    runs_without_tokens: usize,
}

/// The report as `--json` prints it.
#[derive(Serialize)]
struct ReportJson<'a> {
    by: Grouping,
    since: Option<Timestamp>,
    groups: Vec<SumJson<'a>>,
    total: SumJson<'a>,
}

impl UsageReport {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let since = self.since.map(|moment| moment.before(Timestamp::now())).transpose().map_err(CliError::usage)?;
        let app = setup::open(setup::settings(&self.config)?).await?;
        setup::warn_of_unknown(self.agent.as_deref(), &app.settings, out);
        let summed = self.sums(&app.runner, since).await;
        setup::close(app, out).await;
        let (groups, total) = summed?;
        let groups = self.in_order(groups);
        if self.json {
            let groups = groups.iter().map(|(name, sum)| sum.to_json(Some(name))).collect();
            out.pretty(&ReportJson { by: self.by, since, groups, total: total.to_json(None) });
        } else if groups.is_empty() {
            out.note("no runs in this time");
        } else {
            let headings = [self.by.heading(), "RUNS", "INPUT", "CACHED", "OUTPUT", "COST"];
            table::print(&headings, groups.iter().map(|(name, sum)| sum.cells(name)), out);
            out.line(total.describe());
        }
        Ok(Exit::Done)
    }

    /// The sums by name, and the sum of all.
    async fn sums(
        &self,
        runner: &AgentRunner,
        since: Option<Timestamp>,
    ) -> Result<(BTreeMap<String, Sum>, Sum), CliError> {
        let (mut groups, mut total) = (BTreeMap::<String, Sum>::new(), Sum::default());
        let agent = self.agent.as_deref().map(Into::into);
        // A run whose content was deleted has cost what it did.
        let mut page = RunFilter { agent, purged: true, limit: PAGE, ..RunFilter::default() };
        loop {
            let rows = runner.list(&page).await?;
            let is_recent = |row: &&RunRow| since.is_none_or(|since| row.created_at >= since);
            for row in rows.iter().filter(is_recent).filter(|row| !row.is_ineffective_compaction()) {
                groups.entry(self.by.name(row)).or_default().add(row);
                total.add(row);
            }
            // The newest runs come first.
            match rows.last() {
                Some(last) if rows.len() == PAGE && is_recent(&last) => page.before = Some(last.id.clone()),
                Some(_) | None => return Ok((groups, total)),
            }
        }
    }

    /// Days and runs newest first, the others by cost.
    fn in_order(&self, groups: BTreeMap<String, Sum>) -> Vec<(String, Sum)> {
        let mut groups: Vec<(String, Sum)> = groups.into_iter().rev().collect();
        match self.by {
            Grouping::Day | Grouping::Run => {}
            Grouping::Agent | Grouping::Model => groups.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.usage.cost_usd)),
        }
        groups
    }
}

impl Grouping {
    fn heading(self) -> &'static str {
        match self {
            Self::Day => "DAY (UTC)",
            Self::Agent => "AGENT",
            Self::Model => "MODEL",
            Self::Run => "RUN",
        }
    }

    /// The name of the group of a run.
    fn name(self, row: &RunRow) -> String {
        match self {
            Self::Day => row.created_at.strftime("%Y-%m-%d").to_string(),
            Self::Agent => row.agent.as_str().to_owned(),
            Self::Run => row.id.as_str().to_owned(),
            Self::Model => match row.result.as_ref().map(|result| result.models.as_slice()) {
                None => "not known".to_owned(),
                Some([]) => "no reply".to_owned(),
                Some(models) => models.iter().map(ModelName::as_str).collect::<Vec<_>>().join(" + "),
            },
        }
    }
}

impl Sum {
    fn add(&mut self, row: &RunRow) {
        self.runs += 1;
        self.usage.add(&row.usage);
        // A run that ended without a reply has most likely used nothing; a running one may wait for a reply.
        let may_have_cost = row.result.as_ref().is_none_or(|result| result.iterations > 0);
        if may_have_cost || row.status == Status::Running {
            self.without_cost += usize::from(row.usage.cost_usd.is_none());
            self.without_tokens += usize::from(row.usage.total_tokens().is_none());
        }
    }

    fn cells(&self, name: &str) -> [String; 6] {
        let figure = |tokens: Option<u64>| tokens.map_or_else(|| "-".to_owned(), |tokens| tokens.to_string());
        [
            one_line(name, NAME),
            self.runs.to_string(),
            figure(self.usage.input_tokens),
            figure(self.usage.cache_read_tokens),
            figure(self.usage.output_tokens),
            self.cost(),
        ]
    }

    fn cost(&self) -> String {
        match (self.usage.cost_usd, self.without_cost) {
            (Some(cost), 0) => dollars(cost),
            (Some(cost), _) => format!("at least {}", dollars(cost)),
            (None, 0) => "-".to_owned(),
            (None, _) => "unknown".to_owned(),
        }
    }

    fn describe(&self) -> String {
        let gaps = [(self.without_cost, "cost"), (self.without_tokens, "tokens")];
        let gaps = gaps.iter().filter(|(runs, _)| *runs > 0);
        let gaps: String =
            gaps.map(|(runs, what)| format!("; the {what} of {} not known", count(*runs, "run"))).collect();
        let cost = if self.usage.cost_usd.is_some() { self.cost() } else { "cost unknown".to_owned() };
        format!("{}: {}, {cost}{gaps}", count(self.runs, "run"), tokens(&self.usage))
    }

    fn to_json<'a>(&self, name: Option<&'a str>) -> SumJson<'a> {
        let Self { runs, usage, without_cost, without_tokens } = self;
        let (runs_without_cost, runs_without_tokens) = (*without_cost, *without_tokens);
        SumJson { name, runs: *runs, usage: (*usage).into(), runs_without_cost, runs_without_tokens }
    }
}
