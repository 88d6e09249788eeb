//! Commands that look at a conversation and change nothing: `/show`, `/cost` and `/trace`.

use super::conversation::{Conversation, nothing_yet};
use crate::cli::error::CliError;
use crate::cli::output::Output;
use crate::cli::runs::{print_call, print_waterfall};
use crate::cli::sessions::LatestRuns;
use crate::cli::text::count;
use crate::cli::view::total;
use crate::core::id::{RunId, Tenant};
use crate::core::tool::escape_untrusted;
use crate::ports::{RunFilter, RunRow};

impl Conversation<'_> {
    /// Prints the call with this number or id, or else the last call that the views of the conversation have shown.
    pub(super) async fn show_call(&self, named: Option<&str>, out: &mut Output) -> Result<(), CliError> {
        let (run, call) = self.views.call(named).ok_or_else(|| match named {
            Some(named) => {
                let message = format!("this conversation has shown no call `{}`", escape_untrusted(named));
                CliError::not_found(message).with_remedy("/show alone shows the last call")
            }
            None => CliError::usage("this conversation has shown no call yet"),
        })?;
        print_call(self.app, &run, call.as_str(), out).await
    }

    /// Prints the number of runs, their tokens and their cost.
    pub(super) async fn cost(&self, out: &mut Output) -> Result<(), CliError> {
        let session = self.session().ok_or_else(nothing_yet)?;
        let row = self.app.runner.session(&Tenant::default(), session).await?.ok_or_else(nothing_yet)?;
        let latest = LatestRuns::of(self.app, &row).await?;
        let runs = usize::try_from(row.runs).unwrap_or(usize::MAX).saturating_sub(latest.ineffective);
        out.line(format!("{}, {}", count(runs, "run"), total(&row.total_usage(), latest.missing)));
        Ok(())
    }

    /// Prints the spans of the last run, other than a compaction that replaced nothing.
    pub(super) async fn trace(&self, out: &mut Output) -> Result<(), CliError> {
        let mut run = self.last_run().await?;
        while let Some(row) = self.row(&run).await?.filter(RunRow::is_ineffective_compaction)
            && let Some(before) = row.predecessor
        {
            run = before;
        }
        print_waterfall(self.app, &run, out).await
    }

    async fn row(&self, run: &RunId) -> Result<Option<RunRow>, CliError> {
        let filter = RunFilter { run: Some(run.clone()), limit: 1, ..RunFilter::default() };
        Ok(self.app.runner.list(&filter).await?.pop())
    }
}
