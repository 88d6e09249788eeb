//! `toolgate policy backtest`: applies a changed policy to past calls.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::app::App;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::setup::{self, ConfigFlag};
use crate::cli::table;
use crate::cli::text::{count, list};
use crate::cli::time_arg::Moment;
use crate::config;
use crate::core::id::AgentName;
use crate::core::policy::analysis::{PastCall, PastOutcome, past_calls};
use crate::core::policy::{Judgement, Policy, Verdict};
use crate::core::tool::{ToolRef, escape_untrusted};
use crate::ports::{RunFilter, RunRow};

/// Runs in one read of the index.
const PAGE: usize = 100;

const EXAMPLES: &str = "\
Examples:
  toolgate policy backtest strict.yaml
  toolgate policy backtest strict.yaml --agent desk --since 7d
  toolgate policy backtest strict.yaml --since 2026-11-01T00:00:00Z --json | jq '.calls[] | select(.changed)'

The file judges each call that a policy judged in the past, with the tool and the arguments of that
time. Nothing runs and nothing is written. Exit codes: 0 done, even if verdicts would change.";

/// Show which past calls would now be allowed, require approval or be denied
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Backtest {
    /// The policy file
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    config: ConfigFlag,

    /// Only runs of this agent
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// Only runs that began since: an age (`30m`, `12h`, `7d`) or a time (`2026-11-01T00:00:00Z`)
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<Timestamp>,

    /// Only calls whose verdict would change
    #[arg(long)]
    changed: bool,

    /// Prints JSON
    #[arg(long)]
    json: bool,
}

/// A past call and the policy's verdict on it now.
struct BacktestResult {
    past: PastCall,
    now: Judgement,
}

/// The calls and runs that were read.
#[derive(Default)]
struct History {
    runs: usize,
    /// Runs whose journals this version cannot read.
    unread: Vec<String>,
    tested: Vec<BacktestResult>,
}

fn since(text: &str) -> Result<Timestamp, String> {
    text.parse::<Moment>()?.before(Timestamp::now())
}

impl Backtest {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let policy = config::policy_file(&self.file)?;
        let settings = setup::settings(&self.config)?;
        let agents: Vec<AgentName> = settings.agents.keys().cloned().collect();
        let app = setup::open(settings).await?;
        let history = self.read(&app, &policy).await;
        setup::close(app, out).await;
        let mut history = history?;
        self.warn_of_unknown_agent(&agents, history.runs, out);
        let judged = history.tested.len();
        let changes = history.tested.iter().filter(|tested| tested.is_changed()).count();
        history.tested.retain(|tested| !self.changed || tested.is_changed());
        if self.json {
            out.pretty(&as_json(&policy, &history, judged, changes));
        } else {
            print_summary(&policy, &history, judged, changes, out);
        }
        Ok(Exit::Done)
    }

    /// Warns about an agent that is neither configured nor has runs: that is probably a typo. A removed agent may have
    /// runs.
    fn warn_of_unknown_agent(&self, known: &[AgentName], runs: usize, out: &mut Output) {
        let Some(agent) = self.agent.as_deref().filter(|agent| runs == 0 && !known.contains(&AgentName::from(*agent)))
        else {
            return;
        };
        let known = list(known);
        out.warning(format!(
            "unknown agent `{}`: it is not configured and has no runs; configured are: {known}",
            escape_untrusted(agent)
        ));
    }

    async fn read(&self, app: &App, policy: &Policy) -> Result<History, CliError> {
        let mut history = History::default();
        let mut filter =
            RunFilter { agent: self.agent.as_deref().map(Into::into), limit: PAGE, ..RunFilter::default() };
        loop {
            let rows = app.runner.list(&filter).await?;
            let Some(last) = rows.last() else { return Ok(history) };
            filter.before = Some(last.id.clone());
            // The rows are sorted newest first: all further runs began even earlier.
            let wanted = rows.iter().take_while(|row| self.since.is_none_or(|since| row.created_at >= since));
            let wanted: Vec<&RunRow> = wanted.collect();
            for row in &wanted {
                history.read(app, row, policy).await;
            }
            if wanted.len() < rows.len() || rows.len() < PAGE {
                return Ok(history);
            }
        }
    }
}

impl History {
    /// Reads one run. An unreadable journal (written by a newer version) does not stop the backtest.
    async fn read(&mut self, app: &App, row: &RunRow, policy: &Policy) {
        self.runs += 1;
        let calls = match app.runner.journal(&row.id).await {
            Ok(journal) => past_calls(&row.id, &journal).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        match calls {
            Ok(calls) => {
                let tested = |past: PastCall| BacktestResult { now: past.judge(policy), past };
                self.tested.extend(calls.into_iter().map(tested));
            }
            Err(error) => self.unread.push(format!("{}: {error}", row.id)),
        }
    }
}

impl BacktestResult {
    fn is_changed(&self) -> bool {
        self.past.became.verdict() != self.now.verdict
    }

    /// Whether the call would now run, although an approver refused it.
    fn overrides_refusal(&self) -> bool {
        self.past.became == PastOutcome::Refused && self.now.verdict == Verdict::Allow
    }

    fn change(&self) -> Change {
        match (self.overrides_refusal(), self.is_changed()) {
            (true, _) => Change::RefusalOverridden,
            (false, true) => Change::Verdict,
            (false, false) => Change::Same,
        }
    }
}

fn print_summary(policy: &Policy, history: &History, judged: usize, changes: usize, out: &mut Output) {
    for unread in &history.unread {
        out.note(format!("{} {unread}", out.note_paint().yellow("warning: not read:")));
    }
    if !history.tested.is_empty() {
        print_groups(history, out);
    }
    let (calls, runs) = (count(judged, "call"), count(history.runs, "run"));
    out.line(format!("policy {}: {calls} of {runs}, {changes} would change", policy.name));
    let overridden = history.tested.iter().filter(|tested| tested.overrides_refusal()).count();
    if overridden > 0 {
        let calls = count(overridden, "call");
        out.warning(format!("{calls} that an approver refused would now run without approval, marked `!`"));
    }
}

/// What a changed policy means for a past call, and the sign of its line; the first sorts first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    /// An approver refused the call, and it would run.
    RefusalOverridden,
    Verdict,
    Same,
}

/// The key by which calls are grouped into one line.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct GroupKey {
    change: Change,
    tool: String,
    then: PastOutcome,
    now: Verdict,
    rule: String,
}

fn print_groups(history: &History, out: &mut Output) {
    let mut groups: BTreeMap<GroupKey, (usize, &PastCall)> = BTreeMap::new();
    for tested in &history.tested {
        let alike = GroupKey {
            change: tested.change(),
            tool: tested.past.tool.name.to_string(),
            then: tested.past.became,
            now: tested.now.verdict,
            rule: tested.now.rule.clone().unwrap_or_else(|| "default".to_owned()),
        };
        groups.entry(alike).or_insert((0, &tested.past)).0 += 1;
    }
    let rows = groups.into_iter().map(|(GroupKey { change, tool, then, now, rule }, (calls, example))| {
        let sign = match change {
            Change::RefusalOverridden => "!",
            Change::Verdict => "≠",
            Change::Same => " ",
        };
        let example = format!("{} {}", example.run, example.call);
        let (then, now) = (outcome_in_words(then).to_owned(), now.as_str().to_owned());
        [sign.to_owned(), calls.to_string(), tool, then, now, example, rule]
    });
    table::print(&["", "CALLS", "TOOL", "THEN", "NOW", "FOR EXAMPLE", "BY RULE"], rows, out);
}

fn outcome_in_words(outcome: PastOutcome) -> &'static str {
    match outcome {
        PastOutcome::Allowed => "allowed",
        PastOutcome::Granted => "asked: covered by a grant",
        PastOutcome::Approved => "asked: approved",
        PastOutcome::Refused => "asked: refused",
        PastOutcome::Unanswered => "asked: not answered",
        PastOutcome::Denied => "denied",
    }
}

fn as_json(policy: &Policy, history: &History, judged: usize, changes: usize) -> Value {
    let calls = history.tested.iter().map(|tested| {
        let BacktestResult { past, now } = tested;
        json!({
            "run_id": past.run, "call_id": past.call, "at": past.at, "agent": past.agent,
            "tool": ToolRef::new(&past.tool), "tool_name": past.tool.name,
            "then": { "verdict": past.became.verdict(), "became": past.became },
            "now": { "verdict": now.verdict, "rule": now.rule, "reason": now.reason },
            "changed": tested.is_changed(), "overrides_refusal": tested.overrides_refusal(),
        })
    });
    json!({
        "policy": policy.mark(), "runs": history.runs, "judged": judged, "changed": changes,
        "not_read": history.unread, "calls": calls.collect::<Vec<Value>>(),
    })
}
