//! Text form of an explanation.

use super::step::CallStatus;
use super::{Call, Explanation, Turn};
use crate::cli::text::{arguments_line, count, list};
use crate::cli::view::{DisplaySettings, left_out_lines};
use crate::cli::wrap::hanging;
use crate::core::tool::{Arguments, ToolFilter, escape_untrusted};

impl Explanation {
    /// The lines of the explanation. Tools are listed if they differ from those of the previous turn.
    pub(in crate::cli) fn draw(&self, look: DisplaySettings) -> Vec<String> {
        let paint = look.paint;
        let mut lines = vec![format!("{}  agent {}, {}", paint.bold(&self.run_id), self.agent, self.status.as_str())];
        lines.extend(narrowed(&self.filter));
        let mut before: Option<&Turn> = None;
        for turn in &self.turns {
            lines.push(format!("{}  {}", paint.bold(format!("turn {}", turn.turn)), count(turn.calls.len(), "call")));
            match before {
                Some(before) if before.tools == turn.tools && before.left_out == turn.left_out => {
                    lines.push(paint.dim(format!("  the same tools as in turn {}", before.turn)));
                }
                Some(_) | None => lines.extend(tools(turn, look)),
            }
            lines.extend(turn.calls.iter().flat_map(|call| call.draw(look)));
            before = Some(turn);
        }
        if !self.undos.is_empty() {
            lines.push(format!("{}  {}", paint.bold("compensation"), count(self.undos.len(), "undo call")));
            lines.extend(self.undos.iter().flat_map(|call| call.draw(look)));
        }
        lines
    }
}

fn narrowed(filter: &ToolFilter) -> Option<String> {
    let allow = (!filter.allow.is_empty()).then(|| format!("only {}", list(&filter.allow)));
    let deny = (!filter.deny.is_empty()).then(|| format!("never {}", list(&filter.deny)));
    let parts: Vec<String> = allow.into_iter().chain(deny).collect();
    (!parts.is_empty()).then(|| format!("this run narrowed its agent's tools: {}", parts.join(", ")))
}

/// The tools, those of the same state together.
fn tools(turn: &Turn, look: DisplaySettings) -> Vec<String> {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for tool in &turn.tools {
        let word = if tool.offered { "available" } else { "withheld" };
        let state = format!("{word}: {}", tool.reason);
        match groups.iter_mut().find(|(known, _)| *known == state) {
            Some((_, names)) => names.push(tool.tool.as_str()),
            None => groups.push((state, vec![tool.tool.as_str()])),
        }
    }
    let lines = groups.into_iter().flat_map(|(state, names)| {
        let head = format!("  {}, {state}", count(names.len(), "tool"));
        [head].into_iter().chain(hanging("    ", &list(names), look.width))
    });
    let left_out = left_out_lines(&turn.left_out).into_iter().map(|line| look.paint.yellow(format!("  ! {line}")));
    lines.chain(left_out).collect()
}

impl Call {
    fn draw(&self, look: DisplaySettings) -> Vec<String> {
        let paint = look.paint;
        let stand = self.stand.as_str();
        let stand = match self.stand {
            CallStatus::Ran => paint.green(stand),
            CallStatus::Refused | CallStatus::Expired => paint.red(stand),
            CallStatus::Deferred => paint.dim(stand),
            CallStatus::Open
            | CallStatus::Pending
            | CallStatus::Cleared
            | CallStatus::Running
            | CallStatus::Abandoned
            | CallStatus::OutcomeUnknown => paint.yellow(stand.replace('_', " ")),
        };
        let head = format!("  {} {} {stand}", paint.bold(&self.call_id), escape_untrusted(&self.tool));
        let steps =
            self.steps.iter().map(|step| format!("    {}", paint.dim(format!("{:>4}  {}", step.event, step.reason))));
        let quoted = |word: &str, arguments: &Arguments| {
            let room = look.room(word.chars().count() + 5);
            format!("    {word} {}", arguments_line(&arguments.to_value(), room))
        };
        let with = quoted("with", &self.arguments);
        let written = self.original_arguments.as_ref().map(|written| quoted("the model wrote", written));
        [head, with].into_iter().chain(written).chain(steps).collect()
    }
}
