//! `toolgate approvals extend`: extends the deadline of a pending item.

use clap::Args;
use jiff::Timestamp;

use crate::app::App;
use crate::cli::answers::who;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::refusal;
use crate::cli::run_arg::find;
use crate::cli::setup::{self, ConfigFlag};
use crate::cli::time_arg::Moment;
use crate::cli::view::clock;
use crate::core::id::CallId;
use crate::core::run::PendingItem;

/// Extend the deadline of a pending item
#[derive(Args, Debug)]
pub(super) struct Extend {
    /// The run: its id, a unique beginning or end of it, or `last`
    run: String,

    /// The call
    call: String,

    /// The new deadline: a time, or a duration from now
    #[arg(long, value_name = "WHEN", conflicts_with = "for")]
    until: Option<Moment>,

    /// The new deadline as a duration from now (30m, 8h, 2d)
    #[arg(long, value_name = "DURATION")]
    r#for: Option<Moment>,

    /// Who extends it, stored in the journal [default: the user of this terminal]
    #[arg(long, value_name = "NAME")]
    by: Option<String>,

    #[command(flatten)]
    config: ConfigFlag,

    /// Prints the pending item as JSON
    #[arg(long)]
    json: bool,
}

impl Extend {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let until = self.until.or(self.r#for);
        let until = until.ok_or_else(|| {
            CliError::usage("the new deadline is missing")
                .with_remedy("set it with --for 8h or --until 2027-01-01T09:00:00Z")
        })?;
        let until = until.after(Timestamp::now()).map_err(CliError::usage)?;
        let app = setup::open(setup::settings(&self.config)?).await?;
        let extended = self.extend(&app, until).await;
        setup::close(app, out).await;
        let item = extended?;
        match (self.json, item) {
            (true, Some(item)) => out.json(&item),
            (true, None) | (false, None) => {}
            (false, Some(item)) => {
                let until = item.expires_at().unwrap_or(until);
                out.line(format!("{}: deadline extended to {}", self.call, clock(until)));
            }
        }
        Ok(Exit::Done)
    }

    async fn extend(&self, app: &App, until: Timestamp) -> Result<Option<PendingItem>, CliError> {
        let run = find(app, &self.run).await?;
        let by = self.by.clone().unwrap_or_else(who);
        let call = CallId::from(self.call.as_str());
        let report = match app.operator().extend(&run, call.clone(), until, by).await {
            Ok(report) => report,
            Err(error) => return Err(refusal::with_journal_details(error, &app.runner.journal(&run).await?)),
        };
        Ok(report.pending.into_iter().find(|item| item.call_id() == Some(&call)))
    }
}
