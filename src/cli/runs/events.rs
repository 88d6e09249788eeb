//! `toolgate runs events`: the lifecycle events of a run, past and live.

use std::time::Duration;

use clap::Args;

use crate::app::App;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::interrupt::Interrupts;
use crate::cli::output::Output;
use crate::cli::run_arg::find;
use crate::cli::setup::{self, ConfigFlag};
use crate::cli::view::{AnswerPlacement, DisplaySettings, LiveOutput, LiveView};
use crate::core::id::RunId;
use crate::core::lifecycle::{Content, Lifecycle};
use crate::core::run::{Event, JournalEntry};

/// The poll interval for a journal that another process writes.
const POLL: Duration = Duration::from_millis(250);

/// Show the lifecycle events of a run
#[derive(Args, Debug)]
pub(super) struct Events {
    /// The run: its id, a unique beginning or end of it, or `last`
    run: String,

    #[command(flatten)]
    config: ConfigFlag,

    /// Prints one JSON object per line
    #[arg(long)]
    json: bool,

    /// Follows the run until it ends, whichever process executes it
    #[arg(long, short)]
    follow: bool,
}

impl Events {
    pub(super) async fn execute(self, out: &mut Output) -> Result<Exit, CliError> {
        let app = setup::open(setup::settings(&self.config)?).await?;
        let shown = self.show(&app, out).await;
        setup::close(app, out).await;
        shown.map(|()| Exit::Done)
    }

    async fn show(&self, app: &App, out: &mut Output) -> Result<(), CliError> {
        let run = find(app, &self.run).await?;
        let mut view = View::new(&run, self.json, out);
        let mut interrupts = Interrupts::listen();
        let mut seen = 0;
        loop {
            let journal = app.runner.journal(&run).await?;
            journal.iter().skip(seen).for_each(|recorded| view.show(recorded, out));
            seen = journal.len();
            let is_over = journal.last().is_some_and(|last| matches!(last.event, Event::Ended { .. }));
            if is_over || !self.follow {
                return Ok(());
            }
            tokio::select! {
                () = tokio::time::sleep(POLL) => {}
                _ = interrupts.next() => return Ok(()),
            }
        }
    }
}

struct View {
    lifecycle: Lifecycle,
    /// `None` for JSON output.
    live_view: Option<LiveView>,
}

impl View {
    fn new(run: &RunId, json: bool, out: &Output) -> Self {
        let look = DisplaySettings { paint: out.paint(), width: out.width() };
        let live_view = (!json).then(|| LiveView::new(look, AnswerPlacement::InStory));
        Self { lifecycle: Lifecycle::new(run.clone(), Content::Include), live_view }
    }

    fn show(&mut self, recorded: &JournalEntry, out: &mut Output) {
        for event in self.lifecycle.observe(recorded) {
            match &mut self.live_view {
                None => out.json(&event),
                Some(live_view) => live_view.render(&event).into_iter().for_each(|shown| match shown {
                    LiveOutput::Line(text) | LiveOutput::Fragment(text) => out.line(text),
                }),
            }
        }
    }
}
