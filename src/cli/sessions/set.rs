//! `toolgate sessions set`: changes the title, limits, permission mode and time of expiry of a session.

use std::fmt::Display;
use std::str::FromStr;

use clap::Args;

use super::show;
use crate::app::App;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::session_arg::{TenantFlag, find};
use crate::cli::setup::{self, ConfigFlag};
use crate::core::chat::Usd;
use crate::ports::SessionRow;
use crate::runner::{MemberChange, SessionChange, SessionLimitsChange};

/// Change the title, limits, permission mode or time of expiry of a session
///
/// `none` removes a limit, the mode or the time of expiry. Limits hold from the next run on: it gets what the runs before
/// it left.
#[derive(Args, Debug)]
pub(super) struct Set {
    /// The session: its id, a unique beginning of it, or `last`
    session: String,

    /// The title, at most 256 bytes; an empty one is replaced by the beginning of the next message
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,

    /// The permission mode of the next runs: one of the agent's `modes`, or the name of its policy
    #[arg(long, value_name = "NAME", value_parser = change::<String>)]
    mode: Option<MemberChange<String>>,

    /// The most replies of models in all runs
    #[arg(long, value_name = "N", value_parser = change::<u32>)]
    max_iterations: Option<MemberChange<u32>>,

    /// The most input and output tokens of all runs
    #[arg(long, value_name = "N", value_parser = change::<u64>)]
    max_tokens: Option<MemberChange<u64>>,

    /// The most US dollars of all runs
    #[arg(long, value_name = "USD", value_parser = amount)]
    max_cost_usd: Option<MemberChange<Usd>>,

    /// The seconds from the creation of the session to the end of its last run
    #[arg(long, value_name = "SECONDS", value_parser = change::<u64>)]
    deadline_s: Option<MemberChange<u64>>,

    /// The seconds without use after which the next run does not continue the conversation
    #[arg(long, value_name = "SECONDS", value_parser = change::<u64>)]
    expire_after_s: Option<MemberChange<u64>>,

    #[command(flatten)]
    tenant: TenantFlag,

    #[command(flatten)]
    config: ConfigFlag,
}

/// A value, or its removal.
fn change<T: FromStr<Err: Display>>(text: &str) -> Result<MemberChange<T>, String> {
    match text {
        "none" => Ok(MemberChange::Clear),
        text => text.parse().map(MemberChange::Set).map_err(|error: T::Err| error.to_string()),
    }
}

fn amount(text: &str) -> Result<MemberChange<Usd>, String> {
    Ok(match change::<f64>(text)? {
        MemberChange::Set(dollars) => MemberChange::Set(Usd::try_from(dollars).map_err(|error| error.to_string())?),
        MemberChange::Clear | MemberChange::Keep => MemberChange::Clear,
    })
}

impl Set {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let app = setup::open(setup::settings(&self.config)?).await?;
        let lines = match self.change(&app).await {
            Ok(row) => show::lines(&app, &row, &[], out.paint()).await,
            Err(error) => Err(error),
        };
        setup::close(app, out).await;
        lines?.iter().for_each(|line| out.line(line));
        Ok(Exit::Done)
    }

    async fn change(self, app: &App) -> Result<SessionRow, CliError> {
        let tenant = self.tenant.tenant();
        let session = find(app, &tenant, &self.session).await?;
        let title = self.title.map_or(MemberChange::Keep, |title| match title.trim() {
            "" => MemberChange::Clear,
            title => MemberChange::Set(title.to_owned()),
        });
        let limits = SessionLimitsChange {
            max_iterations: self.max_iterations.unwrap_or_default(),
            max_tokens: self.max_tokens.unwrap_or_default(),
            max_cost_usd: self.max_cost_usd.unwrap_or_default(),
            deadline_s: self.deadline_s.unwrap_or_default(),
        };
        let change = SessionChange {
            title,
            limits: MemberChange::Set(limits),
            mode: self.mode.unwrap_or_default(),
            expire_after_s: self.expire_after_s.unwrap_or_default(),
            ..SessionChange::default()
        };
        Ok(app.runner.change_session(&tenant, &session, change, None).await?)
    }
}
