//! `toolgate approvals approve`: approves calls, bound to the digests of the calls that are pending now.

use clap::{Args, ValueEnum};
use jiff::Timestamp;

use super::calls::CallSelection;
use super::continue_run::ContinueOptions;
use crate::app::App;
use crate::cli::answers::{GrantMatch, approval, edited_arguments};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::run_arg::find;
use crate::cli::time_arg::Moment;
use crate::cli::view::any_arguments_warning;
use crate::core::run::{Coverage, Decision, PendingItem, Scope};
use crate::core::tool::Arguments;

const EXAMPLES: &str = "\
Examples:
  toolgate approvals approve last call_2
  toolgate approvals approve last call_2 --digest 9f86d081884c
  toolgate approvals approve last --all
  toolgate approvals approve last call_2 --scope always --expires 30d
  toolgate approvals approve last call_2 --scope session --match tool
  toolgate approvals approve last call_2 --scope always --when 'args.amount < 100'
  toolgate approvals approve last call_2 --edit '{\"city\": \"Oslo\"}'

An approval with the scope `session` or `always` creates a grant: `toolgate approvals grants` lists
grants, `toolgate approvals revoke` revokes them. Exit codes are those of `toolgate run`, and 8 if the
pending call is not the one that was seen, or if it changed before it was sent.";

/// Approve calls and resume the run
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Approve {
    #[command(flatten)]
    calls: CallSelection,

    /// Scope of the approval: this call, this session, or every later call of this agent
    #[arg(long, value_enum, default_value_t = GrantScope::Once)]
    scope: GrantScope,

    /// Which later calls it covers: those with exactly the same arguments, or all of the tool [default: arguments]
    #[arg(long = "match", value_name = "MATCH", value_enum)]
    coverage: Option<GrantMatch>,

    /// Condition that covered later calls meet, a CEL expression as in policies: 'args.amount < 100'
    #[arg(long, value_name = "CONDITION", conflicts_with = "coverage")]
    when: Option<String>,

    /// When it stops covering later calls: a duration from now (8h, 30d) or a time
    #[arg(long, value_name = "WHEN")]
    expires: Option<Moment>,

    /// Arguments to use instead of the model's; they are validated, and the model receives a note
    #[arg(long, value_name = "JSON")]
    edit: Option<String>,

    /// Reason, stored in the journal
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,

    #[command(flatten)]
    on: ContinueOptions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum GrantScope {
    Once,
    Session,
    Always,
}

impl Approve {
    /// Whether the last output line must be a result, even after an error.
    pub(super) fn ends_with_result(&self) -> bool {
        self.on.json
    }

    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        // Reject invalid flags before the store is opened.
        self.calls.check()?;
        let decision = self.decision()?;
        let app = self.on.open().await?;
        let ended = self.decide(&app, decision, out).await;
        ContinueOptions::close(ended, app, out).await
    }

    async fn decide(&self, app: &App, decision: Decision, out: &mut Output) -> Result<Exit, CliError> {
        let run = find(app, &self.calls.run).await?;
        let chosen = self.calls.choose(app, &run).await?;
        if decision.coverage == Coverage::Tool {
            let calls = chosen.items().iter().filter_map(PendingItem::call);
            let wide = calls.filter_map(|call| any_arguments_warning(&call, decision.scope));
            wide.for_each(|line| out.warning(line));
        }
        self.on.give(app, &run, chosen.decided(&decision), out).await
    }

    fn decision(&self) -> Result<Decision, CliError> {
        let scope = match self.scope {
            GrantScope::Once => Scope::Once,
            GrantScope::Session => Scope::Session,
            GrantScope::Always => Scope::Always,
        };
        let is_wider = self.coverage.is_some() || self.when.is_some() || self.expires.is_some();
        if scope == Scope::Once && is_wider {
            let message = "an approval of one call covers nothing else and does not expire";
            return Err(CliError::usage(message)
                .with_remedy("--match, --when and --expires go with --scope session or --scope always"));
        }
        let expires_at = self.expires.map(|moment| moment.after(Timestamp::now())).transpose();
        let expires_at = expires_at.map_err(|why| CliError::usage(format!("--expires: {why}")))?;
        let condition = self.when.clone().map(Coverage::When);
        let coverage = condition.or_else(|| self.coverage.map(Into::into));
        Ok(Decision {
            by: self.on.by(),
            reason: self.reason.clone(),
            expires_at,
            ..approval(scope, coverage, self.edited()?)
        })
    }

    fn edited(&self) -> Result<Option<Arguments>, CliError> {
        let Some(text) = &self.edit else { return Ok(None) };
        if !self.calls.is_one() {
            return Err(CliError::usage("--edit changes the arguments of one call").with_remedy("name that one call"));
        }
        edited_arguments(text).map(Some).map_err(|why| CliError::usage(format!("--edit: {why}")))
    }
}
