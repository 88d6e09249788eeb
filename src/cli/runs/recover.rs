//! `toolgate runs recover`: resumes orphaned runs, whose processes died.

use std::pin::pin;

use clap::Args;
use futures::TryStreamExt as _;

use crate::app::App;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::interrupt::{Interrupt, Interrupts};
use crate::cli::output::Output;
use crate::cli::setup::{self, ConfigFlag, ConfigOverrides};
use crate::cli::text::count;

/// Resume orphaned runs, whose processes died
#[derive(Args, Debug)]
pub(super) struct Recover {
    #[command(flatten)]
    config: ConfigFlag,

    #[command(flatten)]
    changes: ConfigOverrides,
}

impl Recover {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let mut settings = setup::settings(&self.config)?;
        self.changes.apply(&mut settings, None)?;
        let app = setup::open(settings).await?;
        let recovered = recover(&app, out).await;
        match &recovered {
            // The next process that recovers runs gets the runs in progress. This process gets them only after their
            // leases expire.
            Err(CliError::Interrupted) => app.abandon().await,
            _ => setup::close_after(&recovered, app, out).await,
        }
        recovered
    }
}

async fn recover(app: &App, out: &mut Output) -> Result<Exit, CliError> {
    let mut interrupts = Interrupts::listen();
    let mut recovered = 0;
    let mut exit = Exit::Done;
    let mut batches = pin!(app.operator().recover());
    while let Some(executions) = batches.try_next().await? {
        for execution in executions {
            recovered += 1;
            let run = execution.run.clone();
            let rested = tokio::select! {
                rested = execution.until_idle() => rested,
                interrupt = interrupts.next() => return Err(match interrupt {
                    Interrupt::Stop => CliError::Interrupted,
                    Interrupt::Leave => CliError::Terminated(run),
                }),
            };
            match rested {
                Ok(report) => out.line(format!("{run} {}", report.status.as_str())),
                Err(error) => {
                    out.note(format!("error: {run}: {error}"));
                    exit = Exit::Failed;
                }
            }
        }
    }
    out.note(format!("{} resumed", count(recovered, "run")));
    Ok(exit)
}
