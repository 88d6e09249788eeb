//! Text form of a run summary: a header, the turns and the state of the run.

use super::DisplaySettings;
use super::live_view::{GUTTER, shortened};
use super::markdown;
use super::pending::RepeatedFlags;
use super::summary::{Pause, RunSummary, elapsed_ms, pauses, verdict_words};
use super::usage::{reported_usage, total};
use super::words::{attachments, kept_line, left_out_lines, media_line, why_rejected};
use crate::cli::paint::Paint;
use crate::cli::text::{COMPACT, arguments_line, block, count, duration, gutter, one_line};
use crate::core::chat::{Part, Usage};
use crate::core::error::MalformedReply;
use crate::core::run::{
    AttemptEnd, CallHistory, CallVerdict, Compensation, DecisionKind, OutputVerdict, RunPhase, Status, ToolAccess,
    TurnHistory,
};
use crate::core::tool::{Arguments, Origin, Outcome, escape_untrusted};
use crate::ports::RunRow;
use crate::runner::Report;

impl RunSummary<'_> {
    /// The lines of the summary.
    pub(in crate::cli) fn draw(
        &self,
        report: &Report,
        is_interrupted: bool,
        again: &RepeatedFlags,
        look: DisplaySettings,
    ) -> Vec<String> {
        let (started, turns) = (self.history.started, &self.history.turns);
        let copied = started.trigger.copied();
        let mut calls = CallWriter { report, again, look, copied, written: 0 };
        let mut lines = self.header(report, is_interrupted, look);
        lines.push(String::new());
        lines.push(quoted(&started.input.text()));
        lines.extend(attachments(&started.input.content).map(|attached| format!("> {}", look.paint.dim(attached))));
        for (index, turn) in turns.iter().enumerate() {
            lines.extend(self.said_before(index));
            lines.extend(self.draw_turn(turn, index + 1, &mut calls));
        }
        lines.extend(self.said_before(turns.len()));
        lines.extend(self.partial_reply().map(|text| self.text_lines(text, look)).unwrap_or_default());
        lines.extend(self.compensation(&mut calls));
        lines.extend(ending(report, is_interrupted, look));
        lines
    }

    fn header(&self, report: &Report, is_interrupted: bool, look: DisplaySettings) -> Vec<String> {
        let paint = look.paint;
        let mut lines =
            vec![format!("{}  {}", paint.bold(&report.run_id), status(report.status, is_interrupted, look))];
        let spec = &self.history.started.spec;
        lines.push(format!(
            "agent {}, model {}, session {}",
            spec.agent,
            spec.model,
            escape_untrusted(report.session_id.as_str())
        ));
        lines.extend(self.times().map(|(first, last)| {
            let began = first.strftime("%Y-%m-%d %H:%M:%S UTC");
            format!("began {began}, {} from the first to the last event", duration(elapsed_ms(first, last)))
        }));
        let turns = count(self.history.turns.len(), "turn");
        let calls = count(self.history.calls().count(), "call");
        let spent = total(&report.budget.usage, self.gaps());
        let executions = self.executions();
        let executions = if executions > 1 { format!(", {executions} executions") } else { String::new() };
        lines.push(format!("{turns}, {calls}{executions}, {spent}"));
        lines.extend(self.origin());
        lines.extend(left_out_lines(self.left_out()).iter().map(|line| paint.yellow(line)));
        lines
    }

    fn compensation(&self, calls: &mut CallWriter<'_>) -> Vec<String> {
        let look = calls.look;
        let Some(Compensation { undone, outcome_unknown }) = &calls.report.compensation else { return Vec::new() };
        let mut lines = vec![look.paint.bold("compensation")];
        for (call, result) in self.history.undos.iter().zip(undone) {
            lines.extend(calls.draw(call));
            let (state, undoes) = (result.state.as_str().replace('_', " "), escape_untrusted(result.undoes.as_str()));
            lines.push(format!("      {}", look.paint.dim(format!("{state}: the undo of {undoes}"))));
        }
        lines.extend(outcome_unknown.iter().map(|call| {
            let call = escape_untrusted(call.as_str());
            look.paint.yellow(format!("  ! call {call} may have taken effect, and is not undone"))
        }));
        lines
    }

    /// The lines of a turn. A model other than the run's own is named.
    fn draw_turn(&self, turn: &TurnHistory<'_>, number: usize, calls: &mut CallWriter<'_>) -> Vec<String> {
        let (look, paint, spec) = (calls.look, calls.look.paint, &self.history.started.spec);
        let (Some(first), Some(latest)) = (turn.attempts.first(), turn.attempts.last()) else { return Vec::new() };
        let mut usage = Usage::default();
        turn.attempts.iter().filter_map(|attempt| attempt.end).for_each(|(_, end)| usage.add(end.usage()));
        let took = match turn.reply() {
            None => Some("not answered".to_owned()),
            // A copied event has the time of the copy.
            Some(_) if latest.seq < calls.copied => None,
            Some((at, _)) => Some(duration(elapsed_ms(first.at, at))),
        };
        let mut about: Vec<String> = took.into_iter().chain(reported_usage(&usage)).collect();
        about.extend((*latest.model != spec.model).then(|| format!("model {}", latest.model)));
        about.extend((turn.attempts.len() > 1).then(|| count(turn.attempts.len(), "attempt")));
        about.extend((first.tool_access != ToolAccess::Enabled).then(|| "without tools".to_owned()));
        let tier = turn.priority.filter(|_| turn.calls.iter().any(|call| call.is_deferred()));
        about.extend(tier.map(|priority| format!("priority {priority} first")));
        let head = paint.bold(format!("turn {number}"));
        let about = Some(about.join(", ")).filter(|about| !about.is_empty());
        let mut lines = vec![about.map_or(head.clone(), |about| format!("{head}  {}", paint.dim(about)))];
        for attempt in &turn.attempts {
            let Some((_, AttemptEnd::Failed { error, usage })) = attempt.end else { continue };
            let who = if spec.fallback.is_empty() { String::new() } else { format!("model {}: ", attempt.model) };
            let used = reported_usage(usage).map(|used| paint.dim(format!("  {used}"))).unwrap_or_default();
            lines.push(format!("  {} {}{used}", paint.red("✗"), block(&format!("{who}{error}"))));
            if let Some(MalformedReply { raw, expected }) = error.details.as_deref() {
                lines.push(format!("      expected {}, received:", escape_untrusted(expected)));
                lines.extend(gutter(raw).iter().map(|line| format!("      {}", paint.dim(line))));
            }
        }
        if let Some((_, reply)) = turn.reply() {
            lines.extend(self.text_lines(&reply.joined_text(), look));
            let media = reply.content.iter().filter_map(Part::as_media);
            lines.extend(media.map(|media| format!("  {}", media_line(&media, None))));
        }
        lines.extend(turn.calls.iter().flat_map(|call| calls.draw(call)));
        if let Some(OutputVerdict::Invalid { problems }) = turn.verdict {
            lines.extend(problems.iter().map(|problem| {
                let message = one_line(&problem.message, look.room(30));
                format!("  {} the answer does not fit: {message}", paint.red("✗"))
            }));
        }
        lines
    }

    /// The text of a model, marked, and typeset if that was asked for.
    fn text_lines(&self, text: &str, look: DisplaySettings) -> Vec<String> {
        if !self.typesets {
            return gutter(text).iter().map(|line| format!("  {line}")).collect();
        }
        let lines = markdown::typeset(text, look.width.saturating_sub(GUTTER.len()), look.paint);
        lines.iter().map(|line| format!("{GUTTER}{line}")).collect()
    }

    fn said_before(&self, turn: usize) -> impl Iterator<Item = String> {
        self.messages_after(turn).map(|text| quoted(&text))
    }
}

/// Writes the calls of a run, in their order.
struct CallWriter<'a> {
    report: &'a Report,
    again: &'a RepeatedFlags,
    look: DisplaySettings,
    /// The number of events that the run has from another one.
    copied: u64,
    /// The number of calls that are written.
    written: usize,
}

impl CallWriter<'_> {
    fn draw(&mut self, call: &CallHistory<'_>) -> Vec<String> {
        self.written += 1;
        let (look, paint) = (self.look, self.look.paint);
        let (id, name) = (call.requested.id.as_str(), &call.requested.name);
        let CallState { mark, about } = CallState::of(call, self.report.status.is_ended(), self.copied, paint);
        let used = name.chars().count() + id.len() + about.chars().count() + 10;
        let arguments = arguments_line(&call.arguments().to_value(), COMPACT);
        let about = format!("{}  {}", paint.dim(escape_untrusted(id)), paint.dim(about));
        let edit = draw_edit(call, look);
        let mut lines = match arguments.chars().count() <= look.room(used) {
            true => vec![format!("  {mark} {name} {arguments}  {about}")],
            // An edit has the arguments in lines of their own.
            false if !edit.is_empty() => vec![format!("  {mark} {name}  {about}")],
            false => vec![format!("  {mark} {name}  {about}"), format!("      {arguments}")],
        };
        lines.extend(edit.into_iter().map(|line| format!("      {}", paint.dim(line))));
        lines.extend(pauses(call).iter().flat_map(Pause::draw).map(|line| format!("      {}", paint.dim(line))));
        let outcome = call.outcome().map(|(_, outcome)| outcome);
        lines.extend(self.result_lines(call, outcome.as_deref()).into_iter().map(|line| format!("      {line}")));
        let denial = call.decision().filter(|decision| decision.answer == DecisionKind::Deny);
        let reason = denial.and_then(|denial| denial.reason.as_deref()).filter(|reason| !reason.is_empty());
        lines.extend(reason.map(|reason| format!("      reason: {}", one_line(reason, look.room(14)))));
        let Some(outcome) = outcome else { return lines };
        lines.extend(outcome.stored().iter().map(|kept| format!("      {}", kept_line(kept))));
        lines.extend(outcome.problems().iter().map(|problem| {
            let message = one_line(&problem.message, look.room(50));
            let what = match problem.violates_mcp() {
                true => format!("the server sent content that violates MCP at {}", escape_untrusted(&problem.path)),
                false => "the structured result does not fit".to_owned(),
            };
            format!("      {} {what}: {message}", paint.yellow("!"))
        }));
        lines
    }

    /// The result that the model received, or why there is none, in one line, and the command that shows all of a longer one.
    fn result_lines(&self, call: &CallHistory<'_>, outcome: Option<&Outcome>) -> Vec<String> {
        let room = self.look.room(6).min(COMPACT);
        if let Some(outcome) = outcome {
            let text = Part::lines(&outcome.content());
            let whole = self.again.showing_call(&self.report.run_id, self.written);
            let whole = shortened(&text, room, Some(&whole)).map(|line| self.look.paint.dim(line));
            return [format!("| {}", one_line(&text, room))].into_iter().chain(whole).collect();
        }
        match call.verdict() {
            Some(CallVerdict::Rejected { message, .. }) if !call.is_deferred() => vec![why_rejected(message, room)],
            Some(CallVerdict::Ask { reason, .. }) if call.decision().is_none() => {
                vec![format!("because: {}", escape_untrusted(reason))]
            }
            Some(CallVerdict::Run { .. } | CallVerdict::Ask { .. } | CallVerdict::Rejected { .. }) | None => Vec::new(),
        }
    }
}

/// The state of a call: its mark, and the verdict about it with the time that it took.
pub(super) struct CallState {
    pub(super) mark: String,
    pub(super) about: String,
}

impl CallState {
    /// The events before the position `copied` are from another run, without their times.
    pub(super) fn of(call: &CallHistory<'_>, is_over: bool, copied: u64, paint: Paint) -> Self {
        let (outcome, ended_at) = (call.outcome().map(|(_, outcome)| outcome), call.outcome().map(|(at, _)| at));
        let is_denied = call.decision().is_some_and(|decision| decision.answer == DecisionKind::Deny);
        let is_rejected = matches!(call.verdict(), Some(CallVerdict::Rejected { .. }));
        let mark = match &outcome {
            Some(outcome) if outcome.is_error() => paint.red("✗"),
            Some(_) => paint.green("✓"),
            None if call.is_deferred() => paint.dim("↷"),
            None if is_rejected || is_denied => paint.red("✗"),
            None if is_over => paint.dim("–"),
            None => paint.yellow("◆"),
        };
        let is_open = outcome.is_none() && !is_denied && !call.is_deferred() && !is_rejected;
        let is_of_server = call.tool().is_some_and(|tool| matches!(tool.origin, Origin::Mcp { .. }));
        let left = match call.sent_at() {
            _ if !is_over || !is_open => "",
            Some(_) => ", sent, and its outcome is unknown",
            None if call.decision().is_some() && is_of_server => ", not sent before the run ended",
            None => ", no result before the run ended",
        };
        let is_copied = call.entries.last().is_some_and(|entry| entry.seq < copied);
        let took = call
            .sent_at()
            .zip(ended_at)
            .filter(|_| !is_copied)
            .map(|(sent, ended)| format!(", {}", duration(elapsed_ms(sent, ended))));
        Self { mark, about: format!("{}{}{left}", verdict_words(call), took.unwrap_or_default()) }
    }
}

/// The edited and the original arguments, each on its own line because they need the room.
fn draw_edit(call: &CallHistory<'_>, look: DisplaySettings) -> Vec<String> {
    let Some(edit) = call.edit() else { return Vec::new() };
    let quoted = |head: String, arguments: &Arguments| {
        let room = look.room(head.chars().count() + 7);
        format!("{head} {}", arguments_line(&arguments.to_value(), room))
    };
    let now = quoted(format!("edited by {}:", escape_untrusted(&edit.by)), call.arguments());
    vec![now, quoted("the model wrote:".to_owned(), &call.requested.arguments)]
}

impl Pause<'_> {
    pub(super) fn draw(&self) -> Vec<String> {
        match self {
            Self::Asked { needed, given } => {
                let questions = needed.questions.values().map(|question| one_line(question.message(), COMPACT));
                let mut lines: Vec<String> = questions.map(|question| format!("asked: {question}")).collect();
                lines.extend(given.map(|given| {
                    let verb = if given.accepts() { "answered" } else { "declined" };
                    format!("{verb} by {}", escape_untrusted(&given.by))
                }));
                lines
            }
            Self::Task(task) => vec![format!("ran at its server as task {}", one_line(&task.id, COMPACT))],
        }
    }
}

/// A user message with each line marked.
fn quoted(text: &str) -> String {
    text.split('\n').map(|line| format!("> {line}")).collect::<Vec<_>>().join("\n")
}

fn status(status: Status, is_interrupted: bool, look: DisplaySettings) -> String {
    let paint = look.paint;
    match status {
        Status::Running if is_interrupted => paint.yellow(RunRow::INTERRUPTED),
        Status::Completed => paint.green(status.as_str()),
        Status::Running | Status::Pending | Status::Cancelled => paint.yellow(status.as_str()),
        Status::Failed | Status::Incomplete | Status::Expired => paint.red(status.as_str()),
    }
}

fn ending(report: &Report, is_interrupted: bool, look: DisplaySettings) -> Vec<String> {
    let paint = look.paint;
    match (&report.error, report.status) {
        (Some(error), _) => {
            let ended = format!("{} {}", paint.red("ended:"), block(&error.to_string()));
            let early = report.result.phase == Some(RunPhase::Initialization);
            [ended].into_iter().chain(early.then(|| paint.dim("no model replied in this run"))).collect()
        }
        (None, Status::Completed) => {
            let warnings = report.warnings.iter().map(|warning| format!("{} {warning}", paint.yellow("warning:")));
            [paint.green("completed")].into_iter().chain(warnings).collect()
        }
        (None, Status::Running) if is_interrupted => vec![
            paint.yellow("interrupted: no process executes it; continue it with:"),
            format!("  toolgate resume {}", report.run_id),
        ],
        (None, Status::Running) => vec![paint.yellow("running")],
        (None, Status::Pending | Status::Failed | Status::Cancelled | Status::Incomplete | Status::Expired) => {
            Vec::new()
        }
    }
}
