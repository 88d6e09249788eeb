//! `toolgate sessions rename`: changes the title of a session.

use clap::Args;

use crate::app::App;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::session_arg::{TenantFlag, find};
use crate::cli::setup::{self, ConfigFlag};
use crate::core::tool::escape_untrusted;
use crate::ports::SessionRow;
use crate::runner::{MemberChange, SessionChange};

/// Change the title of a session
#[derive(Args, Debug)]
pub(super) struct Rename {
    /// The session: its id, a unique beginning of it, or `last`
    session: String,

    /// The new title, at most 256 bytes; an empty one is replaced by the beginning of the next message
    title: String,

    #[command(flatten)]
    tenant: TenantFlag,

    #[command(flatten)]
    config: ConfigFlag,
}

impl Rename {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let app = setup::open(setup::settings(&self.config)?).await?;
        let renamed = self.rename(&app).await;
        setup::close(app, out).await;
        let row = renamed?;
        out.line(format!("{} {}", escape_untrusted(row.id.as_str()), escape_untrusted(&row.title)).trim_end());
        Ok(Exit::Done)
    }

    async fn rename(&self, app: &App) -> Result<SessionRow, CliError> {
        let tenant = self.tenant.tenant();
        let session = find(app, &tenant, &self.session).await?;
        let title = match self.title.trim() {
            "" => MemberChange::Clear,
            title => MemberChange::Set(title.to_owned()),
        };
        let change = SessionChange { title, ..SessionChange::default() };
        Ok(app.runner.change_session(&tenant, &session, change, None).await?)
    }
}
