//! Text form of a run summary: a header, the turns and the state of the run.

use super::DisplaySettings;
use super::summary::{Call, Pause, RunSummary, Turn};
use super::usage::{spent, spent_in_vain, total};
use super::words::{attachments, kept_line, left_out_line, media_line, why_rejected};
use crate::cli::text::{COMPACT, block, compact, count, duration, gutter, one_line};
use crate::core::chat::Part;
use crate::core::id::ModelName;
use crate::core::run::{CallVerdict, Status, ToolAccess};
use crate::core::tool::{Arguments, Outcome, escape_untrusted};
use crate::runner::Report;

impl RunSummary {
    /// The lines of the summary.
    pub(in crate::cli) fn draw(&self, report: &Report, look: DisplaySettings) -> Vec<String> {
        let mut lines = self.header(report, look);
        lines.push(String::new());
        lines.push(quoted(&self.started.input.text()));
        lines
            .extend(attachments(&self.started.input.content).map(|attached| format!("> {}", look.paint.dim(attached))));
        for (index, turn) in self.turns.iter().enumerate() {
            lines.extend(self.said_before(index));
            lines.extend(turn.draw(index + 1, &self.started.spec.model, look));
        }
        lines.extend(self.said_before(self.turns.len()));
        lines.extend(ending(report, look));
        lines
    }

    fn header(&self, report: &Report, look: DisplaySettings) -> Vec<String> {
        let paint = look.paint;
        let took = u64::try_from(self.last.duration_since(self.began).as_millis()).unwrap_or(0);
        let mut lines = vec![format!("{}  {}", paint.bold(&report.run_id), status(report.status, look))];
        let spec = &self.started.spec;
        lines.push(format!(
            "agent {}, model {}, session {}",
            spec.agent,
            spec.model,
            escape_untrusted(report.session_id.as_str())
        ));
        let began = self.began.strftime("%Y-%m-%d %H:%M:%S UTC");
        lines.push(format!("began {began}, {} from the first to the last event", duration(took)));
        let (turns, calls) = (count(self.turns.len(), "turn"), count(self.calls(), "call"));
        let spent = total(&report.budget.usage, self.gaps);
        let executions = if self.executions > 1 { format!(", {} executions", self.executions) } else { String::new() };
        lines.push(format!("{turns}, {calls}{executions}, {spent}"));
        lines.extend(self.origin());
        lines.extend(self.left_out.iter().map(|left| paint.yellow(left_out_line(left))));
        lines
    }

    fn said_before(&self, turn: usize) -> impl Iterator<Item = String> {
        let here = self.later_messages.iter().filter(move |(before, _)| *before == turn);
        here.map(|(_, text)| quoted(text))
    }
}

impl Turn {
    /// The lines of a turn. `preferred` is the primary model; another model is shown as a fallback.
    fn draw(&self, number: usize, preferred: &ModelName, look: DisplaySettings) -> Vec<String> {
        let paint = look.paint;
        let mut about: Vec<String> = match self.took_ms {
            Some(took) => vec![duration(took), spent(&self.usage)],
            None => ["not answered".to_owned()].into_iter().chain(spent_in_vain(&self.usage)).collect(),
        };
        about.extend((self.model != *preferred).then(|| format!("model {}", self.model)));
        about.extend((self.attempts > 1).then(|| count(self.attempts as usize, "attempt")));
        about.extend((self.tool_access != ToolAccess::Enabled).then(|| "without tools".to_owned()));
        let tier = self.priority.filter(|_| self.calls.iter().any(|call| call.deferred));
        about.extend(tier.map(|priority| format!("priority {priority} first")));
        let mut lines = vec![format!("{}  {}", paint.bold(format!("turn {number}")), paint.dim(about.join(", ")))];
        lines.extend(self.failures.iter().map(|(failure, usage)| {
            let used = spent_in_vain(usage).map(|used| paint.dim(format!("  {used}"))).unwrap_or_default();
            format!("  {} {}{used}", paint.red("✗"), block(failure))
        }));
        lines.extend(gutter(&self.text).iter().map(|line| format!("  {line}")));
        lines.extend(self.media.iter().map(|media| format!("  {}", media_line(media, None))));
        lines.extend(self.calls.iter().flat_map(|call| call.draw(look)));
        lines.extend(self.answer_problems.iter().flatten().map(|problem| {
            format!("  {} the answer does not fit: {}", paint.red("✗"), one_line(problem, look.room(30)))
        }));
        lines
    }
}

impl Call {
    fn draw(&self, look: DisplaySettings) -> Vec<String> {
        let paint = look.paint;
        let mark = match &self.end {
            Some((_, outcome)) if outcome.is_error() => paint.red("✗"),
            Some(_) => paint.green("✓"),
            None if self.deferred => paint.dim("↷"),
            None if matches!(self.verdict, Some(CallVerdict::Rejected { .. })) => paint.red("✗"),
            None => paint.yellow("◆"),
        };
        let took = self.took_ms().map(|took| format!(", {}", duration(took))).unwrap_or_default();
        let right = format!("{}{took}", self.right());
        let used = self.name.chars().count() + self.id.as_str().len() + right.chars().count() + 10;
        let arguments = compact(&self.arguments.to_value(), look.room(used));
        let id = paint.dim(escape_untrusted(self.id.as_str()));
        let mut lines = vec![format!("  {mark} {} {}  {id}  {}", self.name, arguments, paint.dim(right))];
        lines.extend(self.edit(look).into_iter().map(|line| format!("      {}", paint.dim(line))));
        lines.extend(self.pauses.iter().flat_map(Pause::draw).map(|line| format!("      {}", paint.dim(line))));
        lines.extend(self.answer(look).map(|answer| format!("      {answer}")));
        let outcome = self.end.iter().map(|(_, outcome)| outcome);
        lines.extend(
            outcome.clone().flat_map(|outcome| outcome.stored()).map(|kept| format!("      {}", kept_line(kept))),
        );
        lines.extend(outcome.flat_map(|outcome| outcome.problems()).map(|problem| {
            let told = one_line(&problem.message, look.room(50));
            let what = match problem.violates_mcp() {
                true => format!("the server sent content that violates MCP at {}", escape_untrusted(&problem.path)),
                false => "the structured result does not fit".to_owned(),
            };
            format!("      {} {what}: {told}", paint.yellow("!"))
        }));
        lines
    }

    /// The edited and the original arguments, each on its own line because they need the room.
    fn edit(&self, look: DisplaySettings) -> Vec<String> {
        let Some(edited) = &self.edited else { return Vec::new() };
        let quoted = |head: String, arguments: &Arguments| {
            let room = look.room(head.chars().count() + 7);
            format!("{head} {}", compact(&arguments.to_value(), room))
        };
        let now = quoted(format!("edited by {}:", escape_untrusted(&edited.by)), &self.arguments);
        vec![now, quoted("the model wrote:".to_owned(), &edited.written)]
    }

    /// The result that the model received, in one line.
    fn answer(&self, look: DisplaySettings) -> Option<String> {
        let room = look.room(6).min(COMPACT);
        if let Some((_, outcome)) = &self.end {
            return Some(format!("| {}", one_line(&outcome_text(outcome), room)));
        }
        match &self.verdict {
            Some(CallVerdict::Rejected { message, .. }) if !self.deferred => Some(why_rejected(message, room)),
            Some(CallVerdict::Ask { why, .. }) if self.decision.is_none() => {
                Some(format!("because: {}", escape_untrusted(why)))
            }
            Some(CallVerdict::Run { .. } | CallVerdict::Ask { .. } | CallVerdict::Rejected { .. }) | None => None,
        }
    }
}

impl Pause {
    fn draw(&self) -> Vec<String> {
        match self {
            Self::Asked { needed, answered_by } => {
                let questions = needed.questions.values().map(|question| one_line(question.message(), COMPACT));
                let mut lines: Vec<String> = questions.map(|question| format!("asked: {question}")).collect();
                lines.extend(answered_by.as_ref().map(|by| format!("answered by {}", escape_untrusted(by))));
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

fn outcome_text(outcome: &Outcome) -> String {
    outcome.content().iter().filter_map(Part::as_text).collect()
}

fn status(status: Status, look: DisplaySettings) -> String {
    let paint = look.paint;
    match status {
        Status::Completed => paint.green(status.as_str()),
        Status::Running | Status::Pending | Status::Cancelled => paint.yellow(status.as_str()),
        Status::Failed | Status::TurnLimit | Status::Expired => paint.red(status.as_str()),
    }
}

fn ending(report: &Report, look: DisplaySettings) -> Vec<String> {
    let paint = look.paint;
    match (&report.error, report.status) {
        (Some(error), _) => vec![format!("{} {}", paint.red("ended:"), block(&error.to_string()))],
        (None, Status::Completed) => vec![paint.green("completed")],
        (None, Status::Running) => vec![
            paint.yellow("running; if no process executes it any more:"),
            format!("  toolgate resume {}", report.run_id),
        ],
        (None, Status::Pending | Status::Failed | Status::Cancelled | Status::TurnLimit | Status::Expired) => {
            Vec::new()
        }
    }
}
