//! Showing an execution while it goes on, until it rests: as a story, as JSON lines, or not at all.

use super::error::CliError;
use super::held::{self, Person};
use super::interrupt::{Interrupt, Interrupts};
use super::output::Output;
use super::prompt;
use super::view::{Answer, Look, Shown, Story};
use crate::app::App;
use crate::core::id::RunId;
use crate::core::run::{Event, Recorded, Status};
use crate::ports::Update;
use crate::runner::{Execution, Report};
use crate::telemetry::lifecycle::Content;
use crate::telemetry::{Lifecycle, LifecycleEvent};

/// How a run is shown.
pub(super) enum Display {
    /// A story on standard output, the answer in it.
    Live(Box<Story>),
    /// A story on standard error; the answer alone goes to standard output.
    Lines(Box<Story>),
    /// One lifecycle event per line on standard output.
    Json,
    /// Not at all.
    Quiet,
}

impl Display {
    /// What the flags and the terminal ask for.
    pub(super) fn choose(json: bool, quiet: bool, out: &Output) -> Self {
        let story = |paint, answer| Box::new(Story::new(Look { paint, width: out.width() }, answer));
        match (json, quiet, out.is_terminal()) {
            (true, _, _) => Self::Json,
            (false, true, _) => Self::Quiet,
            (false, false, true) => Self::Live(story(out.paint(), Answer::InStory)),
            (false, false, false) => Self::Lines(story(out.note_paint(), Answer::Apart)),
        }
    }

    fn event(&mut self, event: &LifecycleEvent, out: &mut Output) {
        match self {
            Self::Json => out.json(event),
            Self::Quiet => {}
            Self::Live(story) => story.tell(event).into_iter().for_each(|shown| match shown {
                Shown::Line(line) => out.line(line),
                Shown::Fragment(text) => out.fragment(&text),
            }),
            Self::Lines(story) => story.tell(event).into_iter().for_each(|shown| match shown {
                Shown::Line(text) | Shown::Fragment(text) => out.note(text),
            }),
        }
    }

    /// Takes note of an event that is no news.
    fn note(&mut self, event: &LifecycleEvent) {
        match self {
            Self::Live(story) | Self::Lines(story) => story.note(event),
            Self::Json | Self::Quiet => {}
        }
    }

    /// Whether a person reads along and the final answer is on the screen already.
    pub(super) fn is_live(&self) -> bool {
        match self {
            Self::Live(_) => true,
            Self::Lines(_) | Self::Json | Self::Quiet => false,
        }
    }

    /// Whether the output is for programs.
    pub(super) fn is_json(&self) -> bool {
        match self {
            Self::Json => true,
            Self::Live(_) | Self::Lines(_) | Self::Quiet => false,
        }
    }
}

/// One run as it is followed: what was shown of it, and what shows it.
pub(super) struct Follow<'a> {
    /// Where the run is.
    pub(super) app: &'a App,
    lifecycle: Lifecycle,
    /// The position of the next fact to be shown.
    next: u64,
    /// How it is shown.
    pub(super) display: Display,
    /// Ctrl-C.
    pub(super) interrupts: Interrupts,
    /// The person at the terminal, and what they left open.
    pub(super) person: Person,
}

impl<'a> Follow<'a> {
    /// Follows a run of which `known` is no news.
    pub(super) fn new(app: &'a App, run: &RunId, known: &[Recorded], mut display: Display) -> Self {
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
            person: Person::default(),
        }
    }

    /// Shows what happens until the run rests. The first Ctrl-C cancels the run, the second gives up watching it.
    pub(super) async fn until_rest(&mut self, mut execution: Execution, out: &mut Output) -> Result<Report, CliError> {
        let run = execution.run.clone();
        let mut cancelled = false;
        // Calls are held open for a person who is asked here, for as long as they take.
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
                            held::ask(self, &run, out).await?;
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
            // It may have ended on its own in the meantime, which is as good.
            _ = self.app.runner.cancel(run, reason) => Ok(()),
            interrupt = self.interrupts.next() => Err(given_up(interrupt, run.clone())),
        }
    }

    async fn update(&mut self, run: &RunId, update: Update, out: &mut Output) -> Result<(), CliError> {
        match update {
            Update::Delta(delta) => self.display.event(&self.lifecycle.delta(&delta), out),
            Update::Recorded(recorded) => {
                self.catch_up(run, recorded.seq, out).await?;
                self.fact(&recorded, out);
            }
        }
        Ok(())
    }

    /// Shows what the stream left out: facts of another process, or more than a slow terminal could follow.
    pub(super) async fn catch_up(&mut self, run: &RunId, until: u64, out: &mut Output) -> Result<(), CliError> {
        if self.next >= until {
            return Ok(());
        }
        for recorded in self.app.runner.journal(run).await?.iter().filter(|recorded| recorded.seq < until) {
            self.fact(recorded, out);
        }
        Ok(())
    }

    fn fact(&mut self, recorded: &Recorded, out: &mut Output) {
        if recorded.seq < self.next {
            return;
        }
        self.next = recorded.seq + 1;
        for event in self.lifecycle.observe(recorded) {
            self.display.event(&event, out);
        }
    }

    /// The wait is in no journal, so it is told here.
    fn pending(&mut self, report: &Report, out: &mut Output) {
        let at = jiff::Timestamp::now();
        let iteration = report.budget.iterations;
        let event = LifecycleEvent::pending(&report.run_id, at, iteration, &report.pending, Content::Include);
        self.display.event(&event, out);
    }
}

/// The second interrupt, whichever it is, is not waited for.
fn given_up(interrupt: Interrupt, run: RunId) -> CliError {
    match interrupt {
        Interrupt::Stop => CliError::Interrupted,
        Interrupt::Leave => CliError::Terminated(run),
    }
}

/// Whether the server of a call asks something on the open call.
fn asks_on_open_call(update: &Update) -> bool {
    matches!(update, Update::Recorded(Recorded { event: Event::InputRequested { .. }, .. }))
}
