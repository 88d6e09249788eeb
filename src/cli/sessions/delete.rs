//! `toolgate sessions delete`: deletes a session and the content of its runs.

use clap::Args;

use crate::app::App;
use crate::cli::answers::who;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::session_arg::{TenantFlag, find};
use crate::cli::setup::{self, ConfigFlag};
use crate::core::id::SessionId;
use crate::core::tool::escape_untrusted;

/// Permanently delete a session, the content of its runs and its grants
///
/// The session must have no live run. Its id is not used again. A second deletion changes nothing, and finishes one
/// that was interrupted.
#[derive(Args, Debug)]
pub(super) struct Delete {
    /// The session: its id, a unique beginning of it, or `last`
    session: String,

    /// Who revokes its grants [default: the user of this terminal]
    #[arg(long, value_name = "NAME")]
    by: Option<String>,

    #[command(flatten)]
    tenant: TenantFlag,

    #[command(flatten)]
    config: ConfigFlag,
}

impl Delete {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let app = setup::open(setup::settings(&self.config)?).await?;
        let deleted = self.delete(&app).await;
        setup::close(app, out).await;
        out.line(format!("{} deleted", escape_untrusted(deleted?.as_str())));
        Ok(Exit::Done)
    }

    async fn delete(&self, app: &App) -> Result<SessionId, CliError> {
        let tenant = self.tenant.tenant();
        let session = find(app, &tenant, &self.session).await?;
        let by = self.by.clone().unwrap_or_else(who);
        app.runner.delete_session(&tenant, &session, &by, None).await?;
        Ok(session)
    }
}
