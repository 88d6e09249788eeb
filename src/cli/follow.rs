//! Display of an execution until the run is idle: as a live view, as JSON lines, or silent.

use super::error::CliError;
use super::interrupt::{Interrupt, Interrupts};
use super::output::Output;
use super::prompt;
use super::terminal_user::{self, TerminalUser};
use super::view::{AnswerPlacement, DisplaySettings, LiveOutput, LiveView};
use crate::app::App;
use crate::core::id::RunId;
use crate::core::lifecycle::{Content, Lifecycle, LifecycleEvent};
use crate::core::run::{Event, JournalEntry, Status};
use crate::ports::Update;
use crate::runner::{Execution, Report};

/// The output format of a run.
pub(super) enum Display {
    /// A live view on standard output, with the answer in it.
    Live(Box<LiveView>),
    /// A live view on standard error; only the answer goes to standard output.
    Lines(Box<LiveView>),
    /// One lifecycle event per line on standard output.
    Json,
    /// No output.
    Quiet,
}

impl Display {
    /// Chooses the format from the flags and the terminal.
    pub(super) fn choose(json: bool, quiet: bool, out: &Output) -> Self {
        let live_view = |paint, answer| Box::new(LiveView::new(DisplaySettings { paint, width: out.width() }, answer));
        match (json, quiet, out.is_terminal()) {
            (true, _, _) => Self::Json,
            (false, true, _) => Self::Quiet,
            (false, false, true) => Self::Live(live_view(out.paint(), AnswerPlacement::InStory)),
            (false, false, false) => Self::Lines(live_view(out.note_paint(), AnswerPlacement::Apart)),
        }
    }

    fn event(&mut self, event: &LifecycleEvent, out: &mut Output) {
        match self {
            Self::Json => out.json(event),
            Self::Quiet => {}
            Self::Live(live_view) => live_view.render(event).into_iter().for_each(|shown| match shown {
                LiveOutput::Line(line) => out.line(line),
                LiveOutput::Fragment(text) => out.fragment(&text),
            }),
            Self::Lines(live_view) => live_view.render(event).into_iter().for_each(|shown| match shown {
                LiveOutput::Line(text) | LiveOutput::Fragment(text) => out.note(text),
            }),
        }
    }

    /// Records an event without displaying it.
    fn note(&mut self, event: &LifecycleEvent) {
        match self {
            Self::Live(live_view) | Self::Lines(live_view) => live_view.note(event),
            Self::Json | Self::Quiet => {}
        }
    }

    /// Whether a person reads along, so that the final answer is on the screen already.
    pub(super) fn is_live(&self) -> bool {
        match self {
            Self::Live(_) => true,
            Self::Lines(_) | Self::Json | Self::Quiet => false,
        }
    }

    /// Whether a program reads the output.
    pub(super) fn is_json(&self) -> bool {
        match self {
            Self::Json => true,
            Self::Live(_) | Self::Lines(_) | Self::Quiet => false,
        }
    }
}

/// A run with its display state.
pub(super) struct Follow<'a> {
    pub(super) app: &'a App,
    lifecycle: Lifecycle,
    /// The position of the next event to show.
    next: u64,
    pub(super) display: Display,
    /// Ctrl-C.
    pub(super) interrupts: Interrupts,
    /// The person at the terminal, with the prompts that they left open.
    pub(super) person: TerminalUser,
}

impl<'a> Follow<'a> {
    /// Follows a run. The entries in `known` are not shown again.
    pub(super) fn new(app: &'a App, run: &RunId, known: &[JournalEntry], mut display: Display) -> Self {
        let mut lifecycle = Lifecycle::new(run.clone(), Content::Include);
        for recorded in known {
            lifecycle.observe(recorded).iter().for_each(|event| display.note(event));
        }
        if display.is_live() {
            prompt::claim_terminal();
        }
        Self {
            app,
            lifecycle,
            next: known.len() as u64,
            display,
            interrupts: Interrupts::listen(),
            person: TerminalUser::default(),
        }
    }

    /// Shows events until the run is idle. The first Ctrl-C cancels the run, the second stops following it.
    pub(super) async fn until_idle(&mut self, mut execution: Execution, out: &mut Output) -> Result<Report, CliError> {
        let run = execution.run.clone();
        let mut cancelled = false;
        // The runner holds calls open for as long as the person at this terminal needs.
        let attendance = match self.display.is_live() && prompt::is_person_at_terminal() {
            true => self.app.runner.attend(&run),
            false => None,
        };
        loop {
            tokio::select! {
                update = execution.updates.next() => match update {
                    Some(update) => {
                        let asks = asks_on_open_call(&update);
                        self.update(&run, update, out).await?;
                        if asks && attendance.is_some() {
                            terminal_user::ask(self, &run, out).await?;
                        }
                    }
                    None => break,
                },
                interrupt = self.interrupts.next() => match interrupt {
                    Interrupt::Leave => return Err(CliError::Terminated(run)),
                    Interrupt::Stop if cancelled => return Err(CliError::Interrupted),
                    Interrupt::Stop => {
                        cancelled = true;
                        self.cancel(&run, out).await?;
                    }
                },
            }
        }
        let report = tokio::select! {
            report = execution.rest() => report?,
            interrupt = self.interrupts.next() => return Err(given_up(interrupt, run)),
        };
        self.catch_up(&run, report.version, out).await?;
        if report.status == Status::Pending {
            self.pending(&report, out);
        }
        Ok(report)
    }

    async fn cancel(&mut self, run: &RunId, out: &mut Output) -> Result<(), CliError> {
        out.note("cancelling the run; press Ctrl-C again to stop at once");
        let reason = Some("interrupted at the terminal".to_owned());
        tokio::select! {
            // The run may have ended on its own in the meantime, which is equally good.
            _ = self.app.runner.cancel(run, reason) => Ok(()),
            interrupt = self.interrupts.next() => Err(given_up(interrupt, run.clone())),
        }
    }

    async fn update(&mut self, run: &RunId, update: Update, out: &mut Output) -> Result<(), CliError> {
        match update {
            Update::Delta(delta) => self.display.event(&self.lifecycle.delta(&delta), out),
            Update::JournalEntry(recorded) => {
                self.catch_up(run, recorded.seq, out).await?;
                self.fact(&recorded, out);
            }
        }
        Ok(())
    }

    /// Shows events that the stream left out: events of another process, or more than a slow terminal could display.
    pub(super) async fn catch_up(&mut self, run: &RunId, until: u64, out: &mut Output) -> Result<(), CliError> {
        if self.next >= until {
            return Ok(());
        }
        for recorded in self.app.runner.journal(run).await?.iter().filter(|recorded| recorded.seq < until) {
            self.fact(recorded, out);
        }
        Ok(())
    }

    fn fact(&mut self, recorded: &JournalEntry, out: &mut Output) {
        if recorded.seq < self.next {
            return;
        }
        self.next = recorded.seq + 1;
        for event in self.lifecycle.observe(recorded) {
            self.display.event(&event, out);
        }
    }

    /// The journal has no entry for the wait, so the display adds one.
    fn pending(&mut self, report: &Report, out: &mut Output) {
        let at = jiff::Timestamp::now();
        let iteration = report.budget.iterations;
        let event = LifecycleEvent::pending(&report.run_id, at, iteration, &report.pending, Content::Include);
        self.display.event(&event, out);
    }
}

/// The error after a second interrupt of either kind. The program stops at once and does not wait for the run.
fn given_up(interrupt: Interrupt, run: RunId) -> CliError {
    match interrupt {
        Interrupt::Stop => CliError::Interrupted,
        Interrupt::Leave => CliError::Terminated(run),
    }
}

/// Whether the server of a call asks a question on the open call.
fn asks_on_open_call(update: &Update) -> bool {
    matches!(update, Update::JournalEntry(JournalEntry { event: Event::InputRequested { .. }, .. }))
}
