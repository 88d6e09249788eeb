//! `toolgate approvals expire`: settles pending items whose deadline passed. Intended for a timer.

use clap::Args;
use serde_json::json;

use crate::app::App;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::setup::{self, ConfigFlag, ConfigOverrides};
use crate::cli::text::{block, count, list};
use crate::runner::{ExpiredItems, ExpiredRun};

const EXAMPLES: &str = "\
Deadlines are enforced without this command: a late decision is rejected in any case. The command only
resumes the runs at once, so that the model learns that no answer came in time. From a crontab:
  */5 * * * *  cd /srv/desk && toolgate approvals expire";

/// Resume runs with pending items whose deadline passed
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Expire {
    #[command(flatten)]
    config: ConfigFlag,

    /// Prints one JSON object per run: run_id, expired, status; or run_id, error
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    changes: ConfigOverrides,
}

impl Expire {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let mut settings = setup::settings(&self.config)?;
        self.changes.apply(&mut settings, None)?;
        let app = setup::open(settings).await?;
        let expired = self.expire(&app, out).await;
        setup::close(app, out).await;
        expired
    }

    async fn expire(&self, app: &App, out: &mut Output) -> Result<Exit, CliError> {
        let overdue = app.operator().expire_due().await?;
        let found = overdue.iter().filter(|overdue| overdue.late != ExpiredItems::Unknown).count();
        let mut exit = Exit::Done;
        for ExpiredRun { run, late, taken } in overdue {
            let rested = match taken {
                Ok(execution) => execution.until_idle().await,
                Err(error) => Err(error),
            };
            let calls: Vec<String> = match &late {
                ExpiredItems::Calls(calls) => calls.iter().map(ToString::to_string).collect(),
                ExpiredItems::Run | ExpiredItems::Unknown => Vec::new(),
            };
            match rested {
                Ok(report) if self.json => {
                    out.json(&json!({"run_id": run, "expired": calls, "status": report.status}));
                }
                Ok(report) => {
                    let what = if calls.is_empty() { "the run's own deadline passed".to_owned() } else { list(&calls) };
                    out.line(format!("{run} {}  not answered in time: {what}", report.status.as_str()));
                }
                Err(error) => {
                    let error = CliError::from(error);
                    if self.json {
                        out.json(&json!({"run_id": run, "error": error.failure()}));
                    }
                    out.note(format!("error: {run}: {}", block(&error.to_string())));
                    exit = Exit::Failed;
                }
            }
        }
        if !self.json {
            out.note(format!("{} with overdue items", count(found, "run")));
        }
        Ok(exit)
    }
}
