//! `toolgate approvals suggest`: suggests rules that would have avoided past approvals.

mod decision_history;
mod rule;

use clap::Args;

use decision_history::DecisionHistory;
use rule::{SkippedTool, Suggestion, suggestions};

use crate::app::App;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::setup::{self, ConfigFlag};
use crate::cli::text::count;
use crate::core::id::AgentName;
use crate::ports::{GrantFilter, RunFilter};

const ABOUT: &str = "\
The output is a policy file that allows exactly the calls that were approved in recorded runs:
the same tool, agent and principal, with the same arguments. It never contains a tool that was denied
before, that changed, or for which a grant was revoked, nor a call that no condition can express;
standard error lists what is left out. Review it, widen it as needed, and check it with `toolgate policy check`.";

/// Print the narrowest policy rules that cover the approvals given so far
#[derive(Args, Debug)]
#[command(after_help = ABOUT)]
pub(super) struct Suggest {
    #[command(flatten)]
    config: ConfigFlag,

    /// Only from runs of this agent
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// Only for calls that were approved at least this often
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    at_least: u32,

    /// Prints one JSON object per rule: rule, covers, asked_by
    #[arg(long)]
    json: bool,
}

impl Suggest {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let app = setup::open(setup::settings(&self.config)?).await?;
        let past = self.past(&app).await;
        setup::close(app, out).await;
        let past = past?;
        for unread in &past.unread {
            let warning = out.note_paint().yellow("warning: not read, so denials in it are unknown:");
            out.note(format!("{warning} {unread}"));
        }
        let agent = self.agent.as_deref().map(AgentName::from);
        let (suggested, left_out) = suggestions(&past, agent.as_ref(), self.at_least as usize);
        for SkippedTool { what, approvals, why } in &left_out {
            out.note(format!("not suggested: {what}, approved {}: {why}", count(*approvals, "time")));
        }
        match (self.json, suggested.is_empty()) {
            (true, _) => suggested.iter().for_each(|suggestion| out.json(suggestion)),
            (false, true) => {
                let approvals = count(left_out.iter().map(|left| left.approvals).sum(), "approval");
                out.note(format!("nothing to suggest from {approvals}"));
                // A file that the output is redirected to then explains itself.
                if !out.is_terminal() {
                    out.line(format!("# nothing to suggest from {approvals}: no policy"));
                }
            }
            (false, false) => policy(&suggested).into_iter().for_each(|line| out.line(line)),
        }
        Ok(Exit::Done)
    }

    /// The decisions about the calls of all agents: a denial counts for every agent.
    async fn past(&self, app: &App) -> Result<DecisionHistory, CliError> {
        let mut past = DecisionHistory::default();
        for row in app.operator().runs(RunFilter::default()).await? {
            match app.runner.journal(&row.id).await {
                Ok(journal) => past.read(&row.id, &journal),
                Err(error) => past.unread.push(format!("{}: {error}", row.id)),
            }
        }
        let grants = app.runner.grants(&GrantFilter { ended: true, ..GrantFilter::default() }).await?;
        grants.iter().for_each(|grant| past.granted(grant));
        Ok(past)
    }
}

fn policy(suggested: &[Suggestion]) -> Vec<String> {
    let head = ["name: suggested", "default: ask", "rules:"].map(str::to_owned);
    head.into_iter().chain(suggested.iter().flat_map(Suggestion::yaml)).collect()
}
