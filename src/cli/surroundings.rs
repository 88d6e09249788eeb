//! Surroundings of a configuration: the keys, model servers and MCP files that a machine has already. `toolgate init`
//! offers them, `toolgate doctor` names them. Of a key, only the name of its variable is looked at.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::setup::environment;
use crate::app::{self, LocalModelServer};
use crate::config::{self, ConfigError, ImportableServer};

/// The variables that name a model, or hold the key of a provider.
const MODEL_VARIABLES: [&str; 4] = ["TOOLGATE_MODEL_URL", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"];

/// Files with MCP servers below the current folder.
const OF_PROJECT: [&str; 3] = [".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json"];

/// Files with MCP servers below the home folder: Cursor, Claude Code, Claude Desktop and VS Code.
const OF_HOME: [&str; 6] = [
    ".cursor/mcp.json",
    ".claude.json",
    ".config/Claude/claude_desktop_config.json",
    "Library/Application Support/Claude/claude_desktop_config.json",
    ".config/Code/User/mcp.json",
    "Library/Application Support/Code/User/mcp.json",
];

/// What a machine has already.
pub(super) struct Surroundings {
    /// The set variables, by name.
    pub(super) keys: Vec<&'static str>,
    pub(super) model_servers: Vec<LocalModelServer>,
    pub(super) mcp_files: Vec<McpFile>,
}

/// A file with MCP servers.
pub(super) struct McpFile {
    pub(super) path: PathBuf,
    /// Its servers, or why it cannot be read.
    pub(super) servers: Result<Vec<ImportableServer>, ConfigError>,
}

impl McpFile {
    /// The path for people, with `~` for the home folder.
    pub(super) fn name(&self) -> String {
        let below_home = home().and_then(|home| self.path.strip_prefix(home).ok().map(Path::to_owned));
        below_home.map_or_else(|| self.path.display().to_string(), |path| format!("~/{}", path.display()))
    }
}

/// Looks at the environment, the default ports of model servers, and the files of editors.
pub(super) async fn look() -> Surroundings {
    let is_set = |name: &&str| environment(name).is_some_and(|value| !value.is_empty());
    Surroundings {
        keys: MODEL_VARIABLES.into_iter().filter(is_set).collect(),
        model_servers: app::local_model_servers().await,
        mcp_files: mcp_files(),
    }
}

/// The files of editors that have servers, or cannot be read.
pub(super) fn mcp_files() -> Vec<McpFile> {
    let of_project = OF_PROJECT.iter().map(PathBuf::from);
    let of_home = home().into_iter().flat_map(|home| OF_HOME.iter().map(move |path| home.join(path)));
    let mut seen = BTreeSet::new();
    // In the home folder, both lists name the same file.
    let is_new = |path: &PathBuf| fs::canonicalize(path).is_ok_and(|real| seen.insert(real));
    files(of_project.chain(of_home).filter(is_new).collect())
}

/// These files, without those that have no servers.
pub(super) fn files(paths: Vec<PathBuf>) -> Vec<McpFile> {
    let project = std::env::current_dir().unwrap_or_default();
    let read = config::importable_servers(&paths, &project);
    let files = paths.into_iter().zip(read).map(|(path, servers)| McpFile { path, servers });
    files.filter(|file| file.servers.as_ref().map_or(true, |servers| !servers.is_empty())).collect()
}

fn home() -> Option<PathBuf> {
    environment("HOME").or_else(|| environment("USERPROFILE")).filter(|home| !home.is_empty()).map(PathBuf::from)
}
