//! `toolgate runs export`: a run's journal, or its conversation.

use clap::{Args, ValueEnum};

use crate::app::App;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::find::find;
use crate::cli::output::Output;
use crate::cli::setup::{self, ConfigFlag};
use crate::cli::text::harmless;
use crate::cli::view::media_line;
use crate::core::chat::{Message, Part, Role};

/// Print a run's journal as JSON lines, or its conversation as text
#[derive(Args, Debug)]
pub(super) struct Export {
    /// The run: its id, a unique beginning or end of it, or `last`
    run: String,

    #[command(flatten)]
    config: ConfigFlag,

    /// The form
    #[arg(long, value_enum, default_value_t = Format::Jsonl)]
    format: Format,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// Every fact of the journal, one JSON object per line
    Jsonl,
    /// The conversation, for people
    Text,
}

impl Export {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let app = setup::open(setup::settings(&self.config)?).await?;
        let exported = self.export(&app, out).await;
        crate::cli::close(app, out).await;
        exported.map(|()| Exit::Done)
    }

    async fn export(&self, app: &App, out: &mut Output) -> Result<(), CliError> {
        let run = find(app, &self.run).await?;
        match self.format {
            Format::Jsonl => app.runner.journal(&run).await?.iter().for_each(|recorded| out.json(recorded)),
            Format::Text => {
                let messages = app.runner.report(&run).await?.messages;
                messages.iter().for_each(|message| conversation(message, out));
            }
        }
        Ok(())
    }
}

fn conversation(message: &Message, out: &mut Output) {
    for part in &message.content {
        match (part, message.role) {
            (Part::Text { text }, Role::User) => out.line(format!("user: {}\n", harmless(text))),
            (Part::Text { text }, Role::Assistant) => out.line(format!("assistant: {}\n", harmless(text))),
            (Part::ToolUse { id, name, input }, _) => {
                out.line(format!("call {id}: {name} {}\n", harmless(&input.to_value().to_string())));
            }
            (Part::ToolResult { tool_use_id, content, is_error }, _) => {
                let word = if *is_error { "error" } else { "result" };
                let text: String = content.iter().filter_map(Part::as_text).collect();
                out.line(format!("{word} {tool_use_id}: {}\n", harmless(&text)));
                let media = content.iter().filter_map(Part::as_media);
                media.for_each(|media| out.line(format!("({})\n", media_line(&media, None))));
            }
            (Part::Image(media) | Part::Audio(media), _) => out.line(format!("({})\n", media_line(media, None))),
            (Part::Resource { uri, .. }, _) => out.line(format!("({uri})\n")),
            (Part::Reasoning { .. }, _) => {}
        }
    }
}
