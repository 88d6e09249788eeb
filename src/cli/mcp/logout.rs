//! `toolgate mcp logout`: deletes the stored credentials of a server.

use clap::Args;
use serde::Serialize;

use super::super::error::CliError;
use super::super::exit::Exit;
use super::super::output::Output;
use super::super::setup::{self, ConfigFlag};
use crate::app;
use crate::core::id::ServerId;

/// Delete the stored credentials of a server
#[derive(Args, Debug)]
#[command(after_help = "The authorization server is not notified; its tokens stay valid until they expire.")]
pub(super) struct LogOut {
    /// The server
    #[arg(value_name = "NAME")]
    server: String,

    #[command(flatten)]
    config: ConfigFlag,

    /// Prints a line of JSON at the end
    #[arg(long)]
    pub(super) json: bool,
}

/// The result line.
#[derive(Serialize)]
struct LoggedOut<'a> {
    server: &'a ServerId,
    /// Whether credentials were stored.
    forgotten: bool,
}

impl LogOut {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let settings = setup::settings(&self.config)?;
        let server = ServerId::from(self.server.as_str());
        let forgotten = app::logout(&settings, &server).await?;
        match (self.json, forgotten) {
            (true, _) => out.json(&LoggedOut { server: &server, forgotten }),
            (false, true) => out.line(format!("logged out of {server}")),
            (false, false) => out.line(format!("not logged in to {server}")),
        }
        Ok(Exit::Done)
    }
}
