//! Timeline of a run: model calls and tool calls with their times, and its drawing as a waterfall.

use jiff::Timestamp;
use serde::Serialize;
use toolgate_core::run::{AttemptEnd, History, JournalEntry};

/// The columns of a bar.
const BAR: usize = 40;

/// The most characters of a name.
const NAME: usize = 32;

/// A model call or a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The tool, or `model` with the name of the model.
    pub name: String,
    /// The time since the run began.
    pub start_ms: u64,
    pub duration_ms: u64,
    /// Whether it failed.
    pub failed: bool,
}

/// The steps of a run, in the order in which they began.
pub fn timeline(journal: &[JournalEntry]) -> Vec<Step> {
    let (Some(first), Some(history)) = (journal.first(), History::from_journal(journal)) else { return Vec::new() };
    let step = |name: String, start: Timestamp, end: Timestamp, failed: bool| Step {
        name,
        start_ms: milliseconds(first.at, start),
        duration_ms: milliseconds(start, end),
        failed,
    };
    let mut steps = Vec::new();
    for turn in &history.turns {
        for attempt in &turn.attempts {
            let Some((end, how)) = attempt.end else { continue };
            let failed = matches!(how, AttemptEnd::Failed { .. });
            steps.push(step(format!("model {}", attempt.model), attempt.at, end, failed));
        }
        for call in &turn.calls {
            if let (Some(sent), Some((ended, outcome))) = (call.sent_at(), call.outcome()) {
                steps.push(step(call.requested.name.clone(), sent, ended, outcome.is_error()));
            }
        }
    }
    steps.sort_by_key(|step| step.start_ms);
    steps
}

/// The waterfall: a line for each step.
pub fn waterfall(steps: &[Step]) -> Vec<String> {
    let end = steps.iter().map(|step| step.start_ms + step.duration_ms).max().unwrap_or(0).max(1);
    let column = |at: u64| usize::try_from(at.saturating_mul(BAR as u64) / end).unwrap_or(BAR).min(BAR);
    let width = steps.iter().map(|step| step.name.chars().count()).max().unwrap_or(0).min(NAME);
    let line = |step: &Step| {
        let name: String = step.name.chars().take(NAME).collect();
        let from = column(step.start_ms).min(BAR - 1);
        let to = column(step.start_ms + step.duration_ms).max(from + 1);
        let mark = if step.failed { " failed" } else { "" };
        format!(
            "{name:width$} {}{}{} {} ms{mark}",
            " ".repeat(from),
            "█".repeat(to - from),
            " ".repeat(BAR - to),
            step.duration_ms
        )
    };
    steps.iter().map(line).collect()
}

fn milliseconds(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.duration_since(from).as_millis()).unwrap_or_default()
}
