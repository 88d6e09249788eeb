//! Display of a run's events: as a live view, as JSON lines, or silent.

use std::collections::BTreeSet;
use std::time::Instant;

use super::error::CliError;
use super::follow_options::FollowOptions;
use super::interrupt::{Interrupts, OnInterrupt};
use super::mention::{mentioned_files, note_missing_files};
use super::output::Output;
use super::prompt;
use super::text::{end_of_line, list, one_line};
use super::view::{
    Activities, AnswerPlacement, DisplaySettings, LiveOutput, LiveView, RepeatedFlags, SharedViewState, StartingServers,
};
use crate::app::App;
use crate::core::chat::Message;
use crate::core::id::{CallId, RunId};
use crate::core::lifecycle::{Content, Delta, LifecycleEvent, LifecycleKind};
use crate::core::run::JournalEntry;
use crate::runner::Report;
use crate::service::{EventId, RunEvent, events_of};

/// The most lines of a text in progress that are shown below the activities: the last ones.
const DRAFT_LINES: usize = 5;

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
        match (json, quiet, out.is_terminal()) {
            (true, _, _) => Self::Json,
            (false, true, _) => Self::Quiet,
            (false, false, true) => Self::live(AnswerPlacement::Inline, SharedViewState::default(), out),
            (false, false, false) => {
                let look = DisplaySettings { paint: out.note_paint(), width: out.width() };
                Self::Lines(Box::new(LiveView::new(look, AnswerPlacement::Apart)))
            }
        }
    }

    /// The format of a conversation at a terminal, whose views share this state.
    pub(super) fn conversation(shared: &SharedViewState, out: &Output) -> Self {
        Self::live(AnswerPlacement::Conversation, shared.clone(), out)
    }

    /// The format of the earlier turns of a conversation, with their messages. The first `copied` events are from another
    /// run.
    pub(super) fn history(shared: &SharedViewState, copied: u64, out: &Output) -> Self {
        let again = RepeatedFlags::default().in_conversation();
        match Self::conversation(shared, out).naming_calls(&again) {
            Self::Live(live_view) => Self::Live(Box::new(live_view.of_earlier_turn().copying(copied))),
            other @ (Self::Lines(_) | Self::Json | Self::Quiet) => other,
        }
    }

    /// The same, with the command that shows a call whose result is shortened.
    pub(super) fn naming_calls(self, again: &RepeatedFlags) -> Self {
        match self {
            Self::Live(live_view) => Self::Live(Box::new(live_view.naming_calls(again.clone()))),
            Self::Lines(live_view) => Self::Lines(Box::new(live_view.naming_calls(again.clone()))),
            other @ (Self::Json | Self::Quiet) => other,
        }
    }

    fn live(answer: AnswerPlacement, shared: SharedViewState, out: &Output) -> Self {
        let look = DisplaySettings { paint: out.paint(), width: out.width() };
        let live_view = LiveView::new(look, answer).sharing(shared).prompting();
        Self::Live(Box::new(if out.shows_passing() { live_view.typesetting() } else { live_view }))
    }

    /// Displays an event.
    pub(super) fn event(&mut self, event: &LifecycleEvent, out: &mut Output) {
        match self {
            Self::Json => out.json(event),
            Self::Quiet => {}
            // The activity of the call shows them.
            Self::Live(_) if out.shows_passing() && is_progress(event) => {}
            Self::Live(live_view) => {
                live_view.resize(out.width());
                if out.shows_passing() && live_view.defer(event) {
                    return;
                }
                live_view.render(event).into_iter().for_each(|shown| match shown {
                    LiveOutput::Line(line) => out.line(line),
                    LiveOutput::Fragment(text) => out.fragment(&text),
                });
            }
            Self::Lines(live_view) => live_view.render(event).into_iter().for_each(|shown| match shown {
                LiveOutput::Line(text) | LiveOutput::Fragment(text) => out.note(text),
            }),
        }
    }

    /// Displays the calls that were sent and have no result, after the last event.
    pub(super) fn unsettled(&mut self, out: &mut Output) {
        let lines = self.live_view().map(|live_view| live_view.unsettled()).unwrap_or_default();
        lines.into_iter().for_each(|line| out.line(line));
    }

    /// Displays the messages that no model has read, after the last event.
    pub(super) fn left_unread(&mut self, out: &mut Output) {
        let lines = self.live_view().map(LiveView::messages_left_unread).unwrap_or_default();
        let is_live = self.is_live();
        lines.into_iter().for_each(|line| if is_live { out.line(line) } else { out.note(line) });
    }

    /// The live view, if there is one.
    fn live_view(&mut self) -> Option<&mut LiveView> {
        match self {
            Self::Live(live_view) | Self::Lines(live_view) => Some(live_view),
            Self::Json | Self::Quiet => None,
        }
    }

    /// Whether a person reads along, so that the final answer is on the screen already.
    pub(super) fn is_live(&self) -> bool {
        match self {
            Self::Live(_) => true,
            Self::Lines(_) | Self::Json | Self::Quiet => false,
        }
    }

    /// Whether a person is told more than the answer.
    pub(super) fn is_told(&self) -> bool {
        match self {
            Self::Live(_) | Self::Lines(_) => true,
            Self::Json | Self::Quiet => false,
        }
    }

    /// The temporary lines of the model's text; `None` if the last line is one that cannot be replaced.
    fn unfinished(&self) -> Option<&[String]> {
        match self {
            Self::Live(live_view) => live_view.unfinished(),
            Self::Lines(_) | Self::Json | Self::Quiet => Some(&[]),
        }
    }

    /// The messages that the model has not read yet.
    fn unread(&self) -> Vec<String> {
        match self {
            Self::Live(live_view) => live_view.unread(),
            Self::Lines(_) | Self::Json | Self::Quiet => Vec::new(),
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

/// The lines of the text that the person typed and that is not sent yet: each entry, and the end of the line in progress.
fn typed_ahead(out: &Output) -> Vec<String> {
    const WHEN: &str = "  (after this turn)";
    let look = DisplaySettings { paint: out.note_paint(), width: out.width() };
    let (entries, line) = prompt::typed_ahead::shown();
    let entries = entries.iter().map(|entry| format!("  > {}{WHEN}", one_line(entry, look.room(6 + WHEN.len()))));
    let all = line.lines().count();
    let hidden = all.saturating_sub(DRAFT_LINES);
    let line = line.lines().enumerate().skip(hidden).map(|(at, text)| {
        let mark = if at == 0 { '>' } else { ' ' };
        format!("  {mark} {}", end_of_line(text, look.room(6)))
    });
    entries.chain(line).map(|line| look.paint.dim(line)).collect()
}

fn is_progress(event: &LifecycleEvent) -> bool {
    matches!(event.fact, LifecycleKind::Fragment { delta: Delta::Progress { .. }, .. })
}

/// A run with its display state.
pub(super) struct Follow<'a> {
    pub(super) app: &'a App,
    /// The last event that was shown.
    pub(super) seen: Option<EventId>,
    pub(super) display: Display,
    /// What is in progress.
    activities: Activities,
    /// Ctrl-C.
    pub(super) interrupts: Interrupts,
    /// The effect of the first Ctrl-C.
    pub(super) on_interrupt: OnInterrupt,
    /// The messages that were entered during the run and sent to it.
    messages: Option<&'a mut Vec<String>>,
    /// Whether the run still takes messages.
    takes_messages: bool,
    /// A message with files, which the prompt sends.
    waits_for_prompt: Option<String>,
    /// Whether the person cancelled the run. No further question is asked.
    pub(super) is_cancelled: bool,
    /// The prompts that the person at the terminal left open. They are not shown again.
    pub(super) left_open: BTreeSet<(Option<CallId>, &'static str)>,
}

impl<'a> Follow<'a> {
    /// Follows a run. The entries in `known` are not shown again.
    pub(super) fn new(
        app: &'a App,
        run: &RunId,
        known: &[JournalEntry],
        mut display: Display,
        options: FollowOptions<'a>,
    ) -> Self {
        if let Some(live_view) = display.live_view() {
            events_of(run, known).iter().for_each(|known| live_view.note(&known.event));
        }
        if display.is_live() {
            prompt::claim_terminal();
        }
        Self {
            app,
            seen: (known.len() as u64).checked_sub(1).map(EventId::whole),
            display,
            activities: Activities::default(),
            interrupts: Interrupts::listen(),
            on_interrupt: options.on_interrupt,
            messages: options.messages,
            takes_messages: true,
            waits_for_prompt: None,
            is_cancelled: false,
            left_open: BTreeSet::new(),
        }
    }

    /// Shows an event, unless it was shown before.
    pub(super) fn show(&mut self, RunEvent { id, event }: &RunEvent, out: &mut Output) {
        // The report of the execution says what is pending.
        if id.is_some_and(|id| self.has_shown(id)) || matches!(event.fact, LifecycleKind::Pending { .. }) {
            return;
        }
        self.seen = id.or(self.seen);
        self.activities.apply(event, Instant::now());
        self.display.event(event, out);
        let is_text = matches!(&event.fact, LifecycleKind::Fragment { .. }) && !is_progress(event);
        if is_text && self.shows_activities(out) {
            self.show_activities(out);
        }
    }

    /// Shortens what is displayed of a decision that the person made at a prompt.
    pub(super) fn decided_here(&mut self, call: CallId) {
        if let Some(live_view) = self.display.live_view() {
            live_view.decided_here(call);
        }
    }

    /// Leaves out of the display what a prompt showed of a call.
    pub(super) fn shown_here(&mut self, call: CallId) {
        if let Some(live_view) = self.display.live_view() {
            live_view.shown_here(call);
        }
    }

    /// Whether a call is in progress.
    pub(super) fn is_calling(&self) -> bool {
        self.activities.calls().next().is_some()
    }

    /// The calls in progress, each with its server, its tool, and its arguments or its progress.
    pub(super) fn calls_in_progress(&self) -> impl Iterator<Item = String> {
        self.activities.calls()
    }

    /// Whether the run waits for servers that are not ready.
    pub(super) fn waits_for_servers(&self) -> bool {
        self.activities.waits_for_servers() && StartingServers::new(self.app.server_status()).has_starting()
    }

    /// Whether activities are shown while they last.
    pub(super) fn shows_activities(&self, out: &Output) -> bool {
        self.display.is_live() && out.shows_passing()
    }

    /// Sends a message that was entered during the run to it. Commands, and messages that name files, wait for the prompt.
    pub(super) async fn send_entered(&mut self, run: &RunId, out: &mut Output) {
        if !self.takes_messages || self.is_cancelled {
            return;
        }
        let Some(text) = prompt::typed_ahead::first_message() else { return };
        if self.waits_for_prompt.as_ref() == Some(&text) {
            return;
        }
        if !mentioned_files(&text).is_empty() {
            self.waits_for_prompt = Some(text);
            return;
        }
        if !prompt::typed_ahead::take_entry(&text) {
            return;
        }
        match self.app.runner.message(run, Message::user(text.clone())).await {
            Ok(_) => {
                note_missing_files(&text, out);
                self.display.live_view().into_iter().for_each(|live_view| live_view.sent_here(text.clone()));
                self.messages.iter_mut().for_each(|messages| messages.push(text.clone()));
            }
            // The run has ended, or refuses it: the prompt sends it again, and says why if it is refused.
            Err(_) => {
                prompt::typed_ahead::put_back(text);
                self.takes_messages = false;
            }
        }
    }

    /// Updates the lines of the activities in progress.
    pub(super) fn show_activities(&self, out: &mut Output) {
        let Some(unfinished) = self.display.unfinished() else { return };
        let look = DisplaySettings { paint: out.note_paint(), width: out.width() };
        let servers = StartingServers::new(self.app.server_status());
        let activities = self.activities.lines(Instant::now(), &servers, look);
        let unread = self.display.unread();
        let lines: Vec<String> =
            unfinished.iter().cloned().chain(activities).chain(unread).chain(typed_ahead(out)).collect();
        out.passing(&lines);
    }

    /// Names the servers that the run waits for, where no activities are shown.
    pub(super) fn note_long_wait(&self, out: &mut Output) {
        let is_told = matches!(self.display, Display::Json | Display::Quiet) || self.shows_activities(out);
        if !is_told && self.waits_for_servers() {
            let servers = StartingServers::new(self.app.server_status());
            out.note(format!("waiting for servers that are not ready: {}", list(&servers.starting)));
        }
    }

    fn has_shown(&self, id: EventId) -> bool {
        self.seen.is_some_and(|seen| !id.is_after(seen))
    }

    /// Shows the events of the first `length` entries at once, for example while the stream of events is not read.
    pub(super) async fn catch_up(&mut self, run: &RunId, length: u64, out: &mut Output) -> Result<(), CliError> {
        let journal = self.app.runner.journal(run).await?;
        let first = journal.iter().take_while(|recorded| recorded.seq < length);
        events_of(run, first).iter().for_each(|event| self.show(event, out));
        Ok(())
    }

    /// Shows what a run waits for. The journal has no entry for the wait.
    pub(super) fn pending(&mut self, report: &Report, out: &mut Output) {
        let at = jiff::Timestamp::now();
        let iteration = report.budget.iterations;
        let event = LifecycleEvent::pending(&report.run_id, at, iteration, &report.pending, Content::Include);
        self.display.event(&event, out);
    }
}
