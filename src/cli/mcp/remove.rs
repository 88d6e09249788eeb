//! `toolgate mcp remove`: removes a server from the configuration file.

use std::path::PathBuf;

use clap::Args;

use super::add::{new_file, replace};
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::setup::{self, ConfigFlag};
use crate::cli::text::list;
use crate::config::{self, FILE_NAME};
use crate::core::id::ServerId;

const ABOUT: &str = "\
The command removes the lines of the server, and its name from the agents that list it. It changes no
other lines: comments stay. Saved grants and credentials of the server stay; `toolgate mcp logout` deletes
the credentials.

Exit codes: 0 removed, 2 wrong usage or configuration.";

/// Remove a server from the configuration file
#[derive(Args, Debug)]
#[command(after_help = ABOUT)]
pub(super) struct Remove {
    /// The id of the server
    name: String,

    #[command(flatten)]
    config: ConfigFlag,
}

impl Remove {
    pub(super) fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let path = self.config.config.clone().unwrap_or_else(|| PathBuf::from(FILE_NAME));
        let text =
            std::fs::read_to_string(&path).map_err(|error| CliError::file("the configuration", &path, &error))?;
        let before = setup::settings(&ConfigFlag { config: Some(path.clone()) })?;
        let id = ServerId::from(self.name.as_str());
        if !before.servers.contains_key(&id) {
            let message = format!("`{}` has no server `{id}`", path.display());
            let known = before.servers.keys();
            return Err(CliError::usage(message).with_remedy(format!("it has: {}", list(known))));
        }
        let by_hand = || {
            let message = "is in a form that this command does not change; nothing was written";
            let remedy = format!("remove `{id}` below `servers:` and from the agents that list it");
            CliError::usage(format!("`{}` {message}", path.display())).with_remedy(remedy)
        };
        let without = config::without_server(&text, id.as_str()).ok_or_else(by_hand)?;
        // The new file is loaded before it replaces the other one: a file that cannot be read must not be written.
        let written = new_file(&path, &without)?;
        let settings = setup::settings(&ConfigFlag { config: Some(written.path().to_path_buf()) });
        let settings = settings.map_err(|error| by_hand().with_remedy(error.to_string()))?;
        if settings.servers.len() + 1 != before.servers.len() || settings.servers.contains_key(&id) {
            return Err(by_hand());
        }
        replace(&path, written)?;
        out.line(format!("removed server {id} from {}", path.display()));
        Ok(Exit::Done)
    }
}
