//! `toolgate sessions messages`: the conversation of a session.

use clap::Args;
use serde::Serialize;

use crate::app::App;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::session_arg::{TenantFlag, find};
use crate::cli::setup::{self, ConfigFlag};
use crate::cli::view::message_lines;
use crate::core::chat::{Part, Role};
use crate::core::id::RunId;
use crate::runner::SessionMessage;

/// Print the conversation of a session, oldest message first
#[derive(Args, Debug)]
pub(super) struct Messages {
    /// The session: its id, a unique beginning of it, or `last`
    session: String,

    #[command(flatten)]
    tenant: TenantFlag,

    #[command(flatten)]
    config: ConfigFlag,

    /// Prints one JSON object per line
    #[arg(long)]
    json: bool,
}

/// A line of `--json`.
#[derive(Serialize)]
struct MessageLine<'a> {
    index: usize,
    run_id: &'a RunId,
    role: Role,
    content: &'a [Part],
}

impl Messages {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let app = setup::open(setup::settings(&self.config)?).await?;
        let messages = self.messages(&app).await;
        setup::close(app, out).await;
        for (index, SessionMessage { run, message }) in messages?.iter().enumerate() {
            if self.json {
                out.json(&MessageLine { index, run_id: run, role: message.role, content: &message.content });
            } else {
                message_lines(message).iter().for_each(|line| out.line(line));
            }
        }
        Ok(Exit::Done)
    }

    async fn messages(&self, app: &App) -> Result<Vec<SessionMessage>, CliError> {
        let tenant = self.tenant.tenant();
        let session = find(app, &tenant, &self.session).await?;
        Ok(app.runner.session_messages(&tenant, &session).await?)
    }
}
