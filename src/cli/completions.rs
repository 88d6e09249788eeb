//! `toolgate completions`: shell completion scripts.

use clap::Args;
use clap_complete::Shell;

use super::error::CliError;
use super::exit::Exit;
use super::output::Output;

const EXAMPLES: &str = "\
Examples:
  toolgate completions bash > ~/.local/share/bash-completion/completions/toolgate
  toolgate completions zsh > ~/.zfunc/_toolgate
  toolgate completions fish > ~/.config/fish/completions/toolgate.fish";

/// Print completions for a shell
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    /// `command`: the definition of the whole command line.
    pub(super) fn execute(self, mut command: clap::Command, out: &mut Output) -> Result<Exit, CliError> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut command, "toolgate", &mut script);
        out.fragment(&String::from_utf8_lossy(&script));
        Ok(Exit::Done)
    }
}
