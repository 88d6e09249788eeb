//! `toolgate mcp remove`: removes a server from the configuration file.

use clap::Args;

use super::config_file::ConfigFile;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::setup::ConfigFlag;
use crate::cli::text::list;
use crate::config;
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
        let file = ConfigFile::open(&self.config)?;
        let (id, known) = (ServerId::from(self.name.as_str()), &file.settings.servers);
        if !known.contains_key(&id) {
            let message = format!("`{}` has no server `{id}`", file.path.display());
            return Err(CliError::usage(message).with_remedy(format!("it has: {}", list(known.keys()))));
        }
        let by_hand = || file.by_hand(format!("remove `{id}` below `servers:` and from the agents that list it"));
        let changed = file.changed(&config::without_server(&file.text, id.as_str()).ok_or_else(by_hand)?)?;
        if changed.settings.servers.len() + 1 != known.len() || changed.settings.servers.contains_key(&id) {
            return Err(by_hand());
        }
        changed.save()?;
        out.line(format!("removed server {id} from {}", file.path.display()));
        Ok(Exit::Done)
    }
}
