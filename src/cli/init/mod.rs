//! `toolgate init`: a commented configuration that works at once. In a terminal it asks for the model, the MCP servers
//! and the policy, and offers what the machine has already.

mod choices;
mod offers;

use std::collections::BTreeMap;
use std::fs;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use clap::Args;

use self::choices::Choices;
use super::error::CliError;
use super::exit::Exit;
use super::output::Output;
use super::preset_policies::trusted_effect;
use super::prompt::{self, Console, Prompt};
use super::setup::{self, ConfigFlag, stand_in_warning};
use super::text::{list, shell_word};
use super::wrap::visible_width;
use crate::config::{DEMO_MESSAGE, FILE_NAME, Starter, StarterModel, USUAL_MESSAGE};

/// What the store of the starter configuration adds to a folder.
const IGNORED: &str = ".toolgate/";

/// The files with the permissions of Claude Code in a project.
const PERMISSIONS: [&str; 2] = [".claude/settings.json", ".claude/settings.local.json"];

const EXAMPLES: &str = "\
Examples:
  toolgate init                           in a terminal, asks about the policy and what it finds
  toolgate init support-desk              writes into that folder, and creates the folder
  toolgate init --yes                     asks nothing, and takes what it finds here
  toolgate init --model anthropic --mcp-config ~/.cursor/mcp.json
  toolgate init --mcp-config ~/.cursor/mcp.json --policy accept-edits --trust files
  toolgate init --model qwen3 --model-url http://localhost:11434/v1

With a flag, and without a terminal, it asks nothing. Keys and other values of editors' files are
never written: the file refers to environment variables, and the command names them.";

/// Write a configuration that works at once, without a key
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Init {
    /// The folder
    #[arg(default_value = ".", value_name = "DIR")]
    folder: PathBuf,

    /// Replaces files that are there already
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    choices: Choices,
}

impl Init {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let asks = !self.force && self.choices.are_open() && std::io::stdin().is_terminal() && out.notes_are_seen();
        let starter = match asks.then(prompt::at_terminal).flatten() {
            Some(prompt) => match self.asked(prompt, out).await? {
                Some(starter) => starter,
                None => {
                    out.note("nothing was written");
                    return Ok(Exit::Cancelled);
                }
            },
            None => {
                let starter = self.choices.starter(out).await?;
                self.refuse_to_replace(&starter)?;
                starter
            }
        };
        self.write(&starter, out)?;
        self.say_what_is_next(&starter, out)?;
        Ok(Exit::Done)
    }

    /// The choices of a person; `None` if there are none, or an existing file stays.
    async fn asked(&self, mut prompt: Prompt<impl Console>, out: &mut Output) -> Result<Option<Starter>, CliError> {
        let keeps = match self.existing(&Starter::default()) {
            None => false,
            Some(path) => !choices::may_replace(&mut prompt, &path).map_err(|error| CliError::terminal(&error))?,
        };
        if keeps { Ok(None) } else { choices::asked(&mut prompt, out).await }
    }

    /// A file of the configuration that is there already.
    fn existing(&self, starter: &Starter) -> Option<PathBuf> {
        let files = starter.files();
        files.iter().map(|file| self.folder.join(file.name)).find(|path| path.exists())
    }

    fn refuse_to_replace(&self, starter: &Starter) -> Result<(), CliError> {
        match self.existing(starter).filter(|_| !self.force) {
            None => Ok(()),
            Some(path) => {
                let message = format!("`{}` already exists; nothing was written", path.display());
                Err(CliError::usage(message).with_remedy("choose another folder, or replace it with --force"))
            }
        }
    }

    fn write(&self, starter: &Starter, out: &mut Output) -> Result<(), CliError> {
        fs::create_dir_all(&self.folder).map_err(|error| CliError::file("the folder", &self.folder, &error))?;
        for file in starter.files() {
            let path = self.folder.join(file.name);
            fs::write(&path, file.text).map_err(|error| CliError::file("the file", &path, &error))?;
            out.line(format!("wrote {}", path.display()));
        }
        let path = self.folder.join(".gitignore");
        let known = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(CliError::file("the file", &path, &error)),
        };
        let ignores = |line: &str| line.trim().trim_matches('/') == IGNORED.trim_matches('/');
        if !known.lines().any(ignores) {
            let gap = if known.is_empty() || known.ends_with('\n') { "" } else { "\n" };
            fs::write(&path, format!("{known}{gap}{IGNORED}\n"))
                .map_err(|error| CliError::file("the file", &path, &error))?;
            out.line(format!("wrote {}: git ignores the store in {IGNORED}", path.display()));
        }
        Ok(())
    }

    fn say_what_is_next(&self, starter: &Starter, out: &mut Output) -> Result<(), CliError> {
        let paint = out.paint();
        let mut unset = BTreeMap::new();
        if let StarterModel::Server { key_variable: Some(variable), .. } = &starter.model {
            unset.insert(*variable, "the key of the provider");
        }
        for (id, definition) in &starter.servers {
            if !definition.hidden.is_empty() {
                let names = list(&definition.hidden);
                out.line(format!("{id}: {names} in place of values of the editor's file, which were not copied"));
            }
            unset.extend(definition.variables.iter().map(|name| match definition.hidden.contains(name) {
                true => (name.as_str(), "the value is in the file of the editor"),
                false => (name.as_str(), "the server needs it"),
            }));
        }
        unset.retain(|name, _| setup::environment(name).is_none());
        if unset.is_empty() {
            // Loads the file, because a command that fails must not be recommended.
            let settings = setup::settings(&ConfigFlag { config: Some(self.folder.join(FILE_NAME)) })?;
            let agent = setup::agent(&settings, None)?;
            if let Some(warning) = stand_in_warning(&settings, &agent) {
                out.line(format!("\n{} {warning}", paint.yellow("no model:")));
            }
        }
        let believing = starter.policy.as_deref().filter(|policy| trusted_effect(policy).is_some());
        if let Some(policy) = believing.filter(|_| starter.trusted.is_empty() && !starter.servers.is_empty()) {
            let ids = list(starter.servers.iter().map(|(id, _)| id));
            out.line(format!(
                "\n{policy} allows calls of trusted servers only: add `trusted: true` to those of {ids} that you trust"
            ));
        }
        if starter.has_demo_server() {
            out.line(format!(
                "\nserver demo: bundled with toolgate, made-up data to try it with; replace it in {FILE_NAME}"
            ));
        }
        let here = self.folder == Path::new(".");
        let enter = if here { String::new() } else { format!("cd {} && ", shell_word(&self.folder.to_string_lossy())) };
        let message = if starter.has_demo_server() { DEMO_MESSAGE } else { USUAL_MESSAGE };
        out.line("\nNext:");
        for (name, what) in unset {
            step(&format!("export {name}=…"), what, out);
        }
        out.line(format!("  {enter}toolgate run \"{message}\""));
        step("toolgate chat", "a conversation in which you approve calls", out);
        step("toolgate tools", "the agent's tools, and which require approval", out);
        step("toolgate mcp add", "adds a server of your own", out);
        step("toolgate doctor", "what works, and what is missing", out);
        let permissions = PERMISSIONS.iter().filter(|file| self.folder.join(file).is_file());
        let permissions: Vec<&str> = permissions.copied().collect();
        if !permissions.is_empty() {
            let files = permissions.join(" ");
            out.line(format!("  {enter}toolgate policy import {files} -o imported.yaml"));
            out.line("      makes a policy of the permissions that Claude Code has here; --tool says which tools they are for");
        }
        Ok(())
    }
}

/// Prints a command and what it is for, on two lines where the terminal is too narrow for one.
fn step(command: &str, about: &str, out: &mut Output) {
    let line = format!("  {command:<21}   {about}");
    match out.is_terminal() && visible_width(&line) > out.width() {
        true => [format!("  {command}"), format!("      {about}")].iter().for_each(|line| out.line(line)),
        false => out.line(line),
    }
}
