//! `toolgate policy import`: makes a policy from the permissions of another program.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::json;

use super::check::warning_in_words;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::new_file;
use crate::cli::output::Output;
use crate::cli::text::count;
use crate::config::{self, ImportSettings, PermissionSource, PolicyImport, ToolMapping};
use crate::core::policy::analysis::rule_warnings;

const EXAMPLES: &str = "\
Examples:
  toolgate policy import .claude/settings.json --tool Bash=work/run --tool Read=files/read_file
  toolgate policy import ~/.claude/settings.json .claude/settings.json -o claude.yaml
  toolgate policy import ~/.codex/rules/default.rules --tool shell=work/run_command:cmd

The policy asks where no rule matches, and allows nothing that the source does not allow. What has
no exact translation is listed on standard error and at the end of the policy. Without --tool for
the shell, its rules are about each tool with a command, and allow only those of trusted servers.
Exit codes: 0 done, 2 a file cannot be read.";

/// Make a policy from the permissions of Claude Code or codex
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Import {
    /// `settings.json` of Claude Code, or `*.rules` of codex; the rules of several files hold together
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// The program that the files are of [default: by the ending, `.rules` is codex]
    #[arg(long, value_enum)]
    from: Option<Source>,

    /// A tool that stands for a built-in tool, with the argument that has the command, path or address:
    /// `Bash=work/run_command:line` (repeatable)
    #[arg(long = "tool", value_name = "NAME=SERVER/TOOL[:ARGUMENT]", value_parser = str::parse::<ToolMapping>)]
    tools: Vec<ToolMapping>,

    /// Folder of the project, to which paths in rules are relative [default: the current folder]
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,

    /// Name of the policy
    #[arg(long, value_name = "NAME", default_value = "imported")]
    name: String,

    /// Writes the policy to this file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Replaces an existing file
    #[arg(long, requires = "output")]
    force: bool,

    /// Prints JSON: `policy` (the text), `rules` (their number), `untranslated`
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Source {
    Claude,
    Codex,
}

impl Import {
    pub(super) fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let root = self.root.clone().unwrap_or_else(|| PathBuf::from("."));
        let root = std::path::absolute(&root).map_err(|error| CliError::file("cannot use", &root, &error))?;
        let root: PathBuf = root.components().collect();
        let home = std::env::home_dir();
        let settings = ImportSettings { tools: &self.tools, root: &root, home: home.as_deref() };
        let files: Vec<(PathBuf, PermissionSource)> =
            self.files.iter().map(|file| (file.clone(), self.source_of(file))).collect();
        let import = config::import_policy(&files, &settings)?;
        let text = import.yaml(&self.name);
        // The policy is checked as `toolgate policy check` does before it is printed.
        let policy = config::policy_text(&self.name, &text)?;
        if let Some(path) = &self.output {
            new_file::write(path, text.as_bytes(), self.force)?;
        }
        match (self.json, &self.output) {
            (true, _) => {
                out.pretty(&json!({
                    "policy": text, "rules": policy.rules.len(), "untranslated": import.untranslated,
                }));
            }
            (false, Some(path)) => {
                out.line(format!("wrote {}: {}", path.display(), count(policy.rules.len(), "rule")));
            }
            (false, None) => out.bytes(text.as_bytes()),
        }
        if !self.json {
            report(&import, out);
        }
        for warning in rule_warnings(&policy) {
            out.warning(warning_in_words(&warning));
        }
        if let Some(path) = self.output.as_ref().filter(|_| !self.json) {
            let path = path.display();
            out.note(format!("use it with `policy: {path}` in the agent, after:\n  toolgate policy check {path}"));
        }
        Ok(Exit::Done)
    }

    fn source_of(&self, file: &Path) -> PermissionSource {
        let is_rules = file.extension().is_some_and(|ending| ending == "rules" || ending == "codexpolicy");
        match self.from {
            Some(Source::Codex) => PermissionSource::Codex,
            Some(Source::Claude) => PermissionSource::Claude,
            None if is_rules => PermissionSource::Codex,
            None => PermissionSource::Claude,
        }
    }
}

fn report(import: &PolicyImport, out: &mut Output) {
    let differences = import.difference_of_paths().map(str::to_owned);
    for difference in differences.into_iter().chain(import.untranslated.iter().map(ToString::to_string)) {
        out.note(format!("{} {difference}", out.note_paint().yellow("not exact:")));
    }
}
