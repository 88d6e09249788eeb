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
use crate::service::{FollowSettings, RunEvent, StreamItem, events_of};

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
        let mut view = View::new(self.json, out);
        if !self.follow {
            let journal = app.runner.journal(&run).await?;
            events_of(&run, &journal).iter().for_each(|event| view.show(event, out));
            return Ok(());
        }
        let mut interrupts = Interrupts::listen();
        let mut events = app.operator().follow(&run, None, None, FollowSettings::polling_every(POLL));
        loop {
            tokio::select! {
                item = events.next() => match item? {
                    Some(StreamItem::Event(event)) => view.show(&event, out),
                    Some(StreamItem::Draining) | None => return Ok(()),
                },
                _ = interrupts.next() => return Ok(()),
            }
        }
    }
}

struct View {
    /// `None` for JSON output.
    live_view: Option<LiveView>,
}

impl View {
    fn new(json: bool, out: &Output) -> Self {
        let look = DisplaySettings { paint: out.paint(), width: out.width() };
        Self { live_view: (!json).then(|| LiveView::new(look, AnswerPlacement::Inline)) }
    }

    /// Shows an event of the journal.
    fn show(&mut self, RunEvent { id, event }: &RunEvent, out: &mut Output) {
        if id.is_none() {
            return;
        }
        match &mut self.live_view {
            None => out.json(event),
            Some(live_view) => {
                live_view.render(event).into_iter().for_each(|shown| match shown {
                    LiveOutput::Line(text) | LiveOutput::Fragment(text) => out.line(text),
                });
                // Each event is shown when it is recorded.
                live_view.read_messages().into_iter().for_each(|line| out.line(line));
            }
        }
    }
}
