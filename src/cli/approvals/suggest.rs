//! `toolgate approvals suggest`: suggests rules that would have avoided past approvals.

use clap::Args;

use serde_json::json;

use crate::app::App;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::setup::{self, ConfigFlag};
use crate::cli::text::{COMPACT, arguments_line, count, list};
use crate::core::id::AgentName;
use crate::core::policy::analysis::{
    DecisionHistory, ExclusionReason, SkipReason, SkippedTool, SuggestedRule, Suggestion, condition_in_words,
    nearest_command_criteria, suggestions,
};
use crate::core::tool::{Origin, escape_untrusted, external_name, mcp_name};
use crate::ports::{GrantFilter, RunFilter};

const ABOUT: &str = "\
The output is a policy file that allows the calls that were approved in recorded runs: the same tool, agent and
principal, with the same arguments, or with arguments that meet the condition that a person gave to such an
approval. It never contains a call that a person or a policy also denied, nor a tool that changed or for which a grant was revoked, nor a call that no condition can express;
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

    /// Only for calls that were approved, and conditions that were given, at least this often
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
        for skipped in &left_out {
            out.note(format!("not suggested: {}", skipped_in_words(skipped, self.at_least)));
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
        for grant in grants.iter().filter(|grant| grant.revoked.is_some()) {
            past.bar(&grant.origin, ExclusionReason::Revoked);
        }
        Ok(past)
    }
}

/// The tool that is skipped, the number of its approvals, and the reason.
fn skipped_in_words(skipped: &SkippedTool<'_>, at_least: u32) -> String {
    let SkippedTool { origin, agent, principal, approvals, arguments, reason } = skipped;
    let tool = match origin {
        Origin::Mcp { server, tool } => mcp_name(server, tool).to_string(),
        Origin::External { tool } => external_name(tool).to_string(),
        Origin::Builtin { tool } => escape_untrusted(tool),
    };
    let of_principal =
        principal.map(|principal| format!(" for {}", escape_untrusted(principal.as_str()))).unwrap_or_default();
    let reason = match reason {
        SkipReason::Excluded(ExclusionReason::Refused { by, run }) => {
            format!("the same call was denied by {} in run {run}", escape_untrusted(by))
        }
        SkipReason::Excluded(ExclusionReason::Denied { run }) => {
            format!("the same call was denied by a policy in run {run}")
        }
        SkipReason::Excluded(ExclusionReason::Changed { run }) => format!("it changed during run {run}"),
        SkipReason::Excluded(ExclusionReason::Revoked) => "a grant for it was revoked".to_owned(),
        SkipReason::ConditionOfCommands(condition) => {
            let condition_in_words = condition_in_words(condition).unwrap_or_else(|| condition.to_string());
            let nearest = nearest_command_criteria(condition).map(|criteria| {
                let rules = criteria.iter().map(|command| format!("`match: {{ command: {command} }}`"));
                let rules = escape_untrusted(&rules.collect::<Vec<_>>().join(" and "));
                format!("; a rule with {rules} covers more: words that name files outside of the folder as well")
            });
            format!(
                "no rule covers exactly what their grants do: {}{}",
                escape_untrusted(&condition_in_words),
                nearest.unwrap_or_default()
            )
        }
        SkipReason::ConditionMetByDenied(condition) => {
            format!(
                "no rule with the condition of these grants, which a denied call meets: {}",
                escape_untrusted(condition)
            )
        }
        SkipReason::DefinitionChanged => "its definition changed between the approvals".to_owned(),
        SkipReason::TooFewApprovals => format!("no call with the same arguments {at_least} times (`--at-least`)"),
        SkipReason::NotExpressible => "no rule can match exactly these calls".to_owned(),
    };
    let arguments = arguments.map(|arguments| format!(" ({})", arguments_line(&json!(arguments), COMPACT)));
    let arguments = arguments.unwrap_or_default();
    format!("{tool}{arguments}, agent {agent}{of_principal}, approved {}: {reason}", count(*approvals, "time"))
}

fn policy(suggested: &[Suggestion]) -> Vec<String> {
    let head = ["name: suggested", "default: ask", "rules:"].map(str::to_owned);
    head.into_iter().chain(suggested.iter().flat_map(yaml)).collect()
}

/// The rule as lines of a policy file. JSON is valid YAML, so no name or value can break out of its position.
fn yaml(suggestion: &Suggestion) -> Vec<String> {
    let SuggestedRule { id, r#match, when, verdict, reason, examples } = &suggestion.rule;
    let mut lines = vec![format!("  # would have covered {}", count(suggestion.covered, "past approval"))];
    lines.extend((!suggestion.asked_by.is_empty()).then(|| {
        let rules = list(suggestion.asked_by.iter().map(|rule| escape_untrusted(rule)));
        format!("  # approval was required by {rules}, which is stricter and stays in effect: narrow that rule as well")
    }));
    lines.push(format!("  - id: {}", json!(id)));
    lines.push(format!("    match: {conditions}", conditions = r#match));
    lines.push(format!("    when: {}", json!(when)));
    lines.push(format!("    verdict: {verdict}"));
    lines.push(format!("    reason: {}", json!(reason)));
    lines.push(format!("    examples: {examples}"));
    lines
}

#[cfg(test)]
mod tests;
