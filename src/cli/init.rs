//! `toolgate init`: a commented configuration that works at once.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use super::error::CliError;
use super::exit::Exit;
use super::output::Output;
use super::text::shell_word;
use crate::config;

const EXAMPLES: &str = "\
Examples:
  toolgate init                 writes toolgate.yaml here
  toolgate init support-desk    writes it into that folder, and creates the folder";

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
}

impl Init {
    pub(super) fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let files = config::template();
        let taken = files.iter().map(|file| self.folder.join(file.name)).find(|path| path.exists());
        if let Some(path) = taken.filter(|_| !self.force) {
            let message = format!("`{}` already exists; nothing was written", path.display());
            return Err(CliError::usage(message).with_remedy("choose another folder, or replace it with --force"));
        }
        fs::create_dir_all(&self.folder).map_err(|error| CliError::file("the folder", &self.folder, &error))?;
        for file in files {
            let path = self.folder.join(file.name);
            fs::write(&path, file.text).map_err(|error| CliError::file("the file", &path, &error))?;
            out.line(format!("wrote {}", path.display()));
        }
        self.say_what_is_next(out);
        Ok(Exit::Done)
    }

    fn say_what_is_next(&self, out: &mut Output) {
        let here = self.folder == Path::new(".");
        let enter = if here { String::new() } else { format!("cd {} && ", shell_word(&self.folder.to_string_lossy())) };
        out.line("\nNext:");
        out.line(format!("  {enter}toolgate run \"Who is Ada Lindqvist?\""));
        out.line("  toolgate tools          the agent's tools, and which require approval");
        out.line("  toolgate config check   after you changed something");
    }
}
