//! `toolgate runs export`: a run's journal, its conversation, or the whole run as a signed envelope.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::app::App;
use crate::cli::envelope;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::run_arg::find;
use crate::cli::setup::{self, ConfigFlag};
use crate::cli::view::message_lines;

const EXAMPLES: &str = "\
Examples:
  toolgate runs export last > journal.jsonl
  toolgate runs export last --format text
  toolgate runs export last --signed -o run.json     elsewhere: toolgate resume --envelope run.json";

/// Print a run's journal as JSON lines, its conversation as text, or a pending run as a signed envelope
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Export {
    /// The run: its id, a unique beginning or end of it, or `last`
    run: String,

    #[command(flatten)]
    config: ConfigFlag,

    /// The form
    #[arg(long, value_enum, default_value_t = Format::Jsonl)]
    format: Format,

    /// The pending run as a signed envelope (`envelope` in the configuration has the keys): its holder can resume the
    /// run on any node with the keys
    #[arg(long, conflicts_with = "format")]
    signed: bool,

    /// Writes the envelope to a new file that only its owner can read
    #[arg(long, short, value_name = "FILE", requires = "signed")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// Every event of the journal, one JSON object per line
    Jsonl,
    /// The conversation, for people
    Text,
}

impl Export {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let app = setup::open(setup::settings(&self.config)?).await?;
        let exported = self.export(&app, out).await;
        setup::close(app, out).await;
        exported.map(|()| Exit::Done)
    }

    async fn export(&self, app: &App, out: &mut Output) -> Result<(), CliError> {
        let run = find(app, &self.run).await?;
        if self.signed {
            let envelope = app.runner.export(&run).await?;
            match &self.output {
                Some(path) => envelope::write(path, &envelope, out)?,
                None => out.json(&envelope),
            }
            return Ok(());
        }
        match self.format {
            Format::Jsonl => app.runner.journal(&run).await?.iter().for_each(|recorded| out.json(recorded)),
            Format::Text => {
                let messages = app.runner.report(&run).await?.messages;
                messages.iter().flat_map(|message| message_lines(message)).for_each(|line| out.line(line));
            }
        }
        Ok(())
    }
}
