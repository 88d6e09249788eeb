//! Import of the permissions of other programs into a policy: `permissions` in the settings of Claude Code, and the rules
//! of codex.
//!
//! An imported policy never allows a call that the source does not allow. Its default is to ask. A rule that allows and
//! cannot be expressed is left out. A rule that asks or denies and cannot be expressed asks about more calls than the source
//! does. Both are reported ([`PolicyImport::untranslated`]).

mod claude_permissions;
mod claude_rule;
mod command_criteria;
mod exec_rules;
mod imported_rule;
mod path_criteria;
mod starlark;
mod tool_mapping;

use std::path::{Path, PathBuf};

use super::error::ConfigError;
use super::yaml;
pub use imported_rule::{PolicyImport, UntranslatedRule};
pub use tool_mapping::ToolMapping;

/// The program that a file of permissions was written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PermissionSource {
    /// `settings.json` of Claude Code.
    Claude,
    /// `*.rules` of codex.
    Codex,
}

/// The settings of an import.
pub struct ImportSettings<'a> {
    /// The tools that stand for built-in tools of the source.
    pub tools: &'a [ToolMapping],
    /// The absolute folder of the project, to which paths in rules are relative.
    pub root: &'a Path,
    /// The home folder of the user, for `~` in rules.
    pub home: Option<&'a Path>,
}

/// Reads files of permissions. Rules of several files hold together, as in the source.
pub fn import_policy(
    files: &[(PathBuf, PermissionSource)],
    settings: &ImportSettings<'_>,
) -> Result<PolicyImport, ConfigError> {
    let mut import = PolicyImport::default();
    for (path, source) in files {
        match source {
            PermissionSource::Claude => {
                let file = yaml::read_foreign(path)?;
                claude_permissions::import(&file, settings.tools, settings.root, settings.home, &mut import)?;
            }
            PermissionSource::Codex => {
                let file = yaml::read(path)?;
                exec_rules::import(&file, settings.tools, &mut import)?;
            }
        }
    }
    claude_permissions::guard_file_commands(settings.tools, &mut import);
    Ok(import)
}

#[cfg(test)]
mod tests;
