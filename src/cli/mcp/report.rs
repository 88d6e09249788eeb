//! Report of a trial call: output for people, output for programs, and the exit code.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::connected_server::milliseconds;
use super::target::LONGER_START;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::terminal_escape;
use crate::cli::text::{block, compact, duration, shell_word, size};
use crate::cli::view::{ShownForms, answering, question_lines};
use crate::core::chat::{Media, Part};
use crate::core::id::ServerId;
use crate::core::tool::{CallFailure, FailureKind, Problem, Question, ToolOutput, escape_untrusted};

#[derive(Debug)]
pub(super) enum CallOutcome {
    /// The tool answered. The answer may report an error, violate MCP, or not match the declared schema.
    Answered(ToolOutput, Vec<Problem>),
    /// The arguments do not match the schema, so the call was not sent.
    Unfit(Vec<Problem>),
    /// The call got no answer.
    Failed(CallFailure),
    /// The server asks a question that has no answer.
    Asked(BTreeMap<String, Question>),
    /// The user interrupted the call.
    Interrupted,
}

/// A call with its outcome.
#[derive(Debug)]
pub(super) struct Trial {
    pub(super) server: ServerId,
    pub(super) tool: String,
    /// Time from connecting to the tool list.
    pub(super) ready: Duration,
    /// Time from dispatch to the end, with the time that a person took to answer.
    pub(super) took: Duration,
    pub(super) ending: CallOutcome,
    /// The server's stderr during the call, when the call failed.
    pub(super) stderr: Vec<String>,
    /// Whether the server needed longer than its start budget.
    pub(super) starts_late: bool,
}

/// The same call as a `--json` object.
#[derive(Serialize)]
struct Line<'a> {
    server: &'a ServerId,
    tool: &'a str,
    status: &'static str,
    ready_ms: u64,
    took_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a ToolOutput>,
    #[serde(skip_serializing_if = "<[Problem]>::is_empty")]
    problems: &'a [Problem],
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a CallFailure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    questions: Option<&'a BTreeMap<String, Question>>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stderr: &'a [String],
}

impl CallOutcome {
    /// The stable identifier of the outcome.
    fn as_str(&self) -> &'static str {
        match self {
            Self::Answered(output, _) if output.is_error => "tool_error",
            Self::Answered(_, problems) if !problems.is_empty() => "invalid_result",
            Self::Answered(..) => "answered",
            Self::Unfit(_) => "invalid_arguments",
            Self::Failed(failure) if failure.kind == FailureKind::Timeout => "timed_out",
            Self::Failed(_) => "failed",
            Self::Asked(_) => "pending",
            Self::Interrupted => "interrupted",
        }
    }

    /// The exit code.
    pub(super) fn exit(&self) -> Exit {
        match self {
            Self::Answered(output, _) if output.is_error => Exit::ToolError,
            Self::Answered(_, problems) if !problems.is_empty() => Exit::InvalidResult,
            Self::Answered(..) => Exit::Done,
            Self::Unfit(_) => Exit::InvalidArguments,
            Self::Failed(failure) if failure.kind == FailureKind::Timeout => Exit::TimedOut,
            Self::Failed(_) => Exit::ServerFailed,
            Self::Asked(_) => Exit::Pending,
            Self::Interrupted => Exit::Cancelled,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResultDestination {
    /// Standard output.
    Here,
    Elsewhere,
}

impl Trial {
    /// Writes the result to standard output and everything else to standard error.
    pub(super) fn print(&self, shown: ResultDestination, out: &mut Output) {
        let paint = out.note_paint();
        let tool = escape_untrusted(&self.tool);
        let (error, help) = (paint.red("error:"), paint.cyan(" help:"));
        match &self.ending {
            CallOutcome::Answered(output, problems) => {
                if shown == ResultDestination::Here {
                    result(output, out);
                }
                self.answered(&tool, output.is_error, out);
                let (violations, mismatches): (Vec<&Problem>, Vec<&Problem>) =
                    problems.iter().partition(|problem| problem.violates_mcp());
                if !violations.is_empty() {
                    out.note(format!("{error} the server `{}` sent content that violates MCP:", self.server));
                    violations.into_iter().for_each(|problem| out.note(problem_line(problem)));
                    out.note(format!("{help} correct what the tool returns"));
                }
                if !mismatches.is_empty() {
                    out.note(format!("{error} the result does not fit the tool's outputSchema:"));
                    mismatches.into_iter().for_each(|problem| out.note(problem_line(problem)));
                    out.note(format!("{help} correct what the tool returns, or the schema it declares"));
                }
            }
            CallOutcome::Unfit(problems) => {
                out.note(format!("{error} the arguments do not fit the inputSchema of `{tool}`; nothing was sent:"));
                problems.iter().for_each(|problem| out.note(problem_line(problem)));
                out.note(format!("{help} --no-validate sends them anyway"));
            }
            CallOutcome::Failed(failure) => {
                out.note(format!("{error} {}: {}", failure.kind.as_str(), block(&failure.message)));
                if failure.kind == FailureKind::Timeout {
                    out.note(format!("{help} --timeout SECONDS extends the time, this once"));
                }
                if self.starts_late {
                    out.note(format!("{help} {LONGER_START}"));
                }
            }
            CallOutcome::Asked(questions) => print_questions(&tool, questions, out),
            CallOutcome::Interrupted => out.note("interrupted"),
        }
        for line in self.stderr.iter().filter(|line| !self.is_told(line)) {
            out.note(paint.dim(format!("  stderr │ {}", escape_untrusted(line))));
        }
    }

    /// Whether the message quotes that line of stderr already.
    fn is_told(&self, line: &str) -> bool {
        matches!(&self.ending, CallOutcome::Failed(failure) if failure.message.contains(line))
    }

    fn answered(&self, tool: &str, is_error: bool, out: &mut Output) {
        let paint = out.note_paint();
        let (took, ready) = (duration(milliseconds(self.took)), duration(milliseconds(self.ready)));
        let how = match is_error {
            true => format!("{} {tool} answered with an error", paint.red("✗")),
            false => format!("{} {tool} answered", paint.green("✓")),
        };
        out.note(format!("{how} in {took} {}", paint.dim(format!("(the server was ready after {ready})"))));
    }

    /// Writes the call as one JSON object.
    pub(super) fn print_json(&self, out: &mut Output) {
        let (result, problems, error, questions) = match &self.ending {
            CallOutcome::Answered(output, problems) => (Some(output), problems.as_slice(), None, None),
            CallOutcome::Unfit(problems) => (None, problems.as_slice(), None, None),
            CallOutcome::Failed(failure) => (None, [].as_slice(), Some(failure), None),
            CallOutcome::Asked(questions) => (None, [].as_slice(), None, Some(questions)),
            CallOutcome::Interrupted => (None, [].as_slice(), None, None),
        };
        out.pretty(&Line {
            server: &self.server,
            tool: &self.tool,
            status: self.ending.as_str(),
            ready_ms: milliseconds(self.ready),
            took_ms: milliseconds(self.took),
            result,
            problems,
            error,
            questions,
            stderr: &self.stderr,
        });
    }
}

/// Prints the result: text as text, structured content as JSON, other content as a summary line. Prints a result that
/// the tool returns as both text and structured content only once.
fn result(output: &ToolOutput, out: &mut Output) {
    let ShownForms { has_text, has_structured } = ShownForms::of(output);
    for part in &output.content {
        match part {
            Part::Text { text } if has_text => out.verbatim(text.trim_end_matches('\n')),
            Part::Image(media) | Part::Audio(media) => out.line(format!("[{}]", medium(media))),
            Part::Resource { uri, media_type, text, data, .. } => {
                let save = if data.is_some() { "; --output FILE saves it" } else { "" };
                let kind = media_type.as_ref().map(|kind| format!(", {}", escape_untrusted(kind))).unwrap_or_default();
                out.line(format!("[resource {}{kind}{save}]", escape_untrusted(uri)));
                text.iter().for_each(|text| out.verbatim(text.trim_end_matches('\n')));
            }
            // Text is in the JSON below, and a tool result never contains the other parts.
            Part::Text { .. } | Part::Reasoning { .. } | Part::ToolUse { .. } | Part::ToolResult { .. } => {}
        }
    }
    if let Some(structured) = output.structured.as_ref().filter(|_| has_structured) {
        out.pretty(structured);
    }
}

fn medium(media: &Media) -> String {
    let bytes = media.data.as_ref().and_then(|data| Media::decode(data)).map(|bytes| bytes.len() as u64);
    let large = bytes.map(|bytes| format!(", {}", size(bytes))).unwrap_or_default();
    format!("{}{large}; --output FILE saves it", escape_untrusted(&media.media_type))
}

fn problem_line(problem: &Problem) -> String {
    let place = if problem.path.is_empty() { "/".to_owned() } else { escape_untrusted(&problem.path) };
    let received = problem.received.as_ref().map(|value| format!(", got {}", compact(value, 60))).unwrap_or_default();
    format!("  {place}: {}{received}", escape_untrusted(&problem.message))
}

/// Prints the questions as JSON on standard output, and how to answer them on standard error.
fn print_questions(tool: &str, questions: &BTreeMap<String, Question>, out: &mut Output) {
    out.pretty(questions);
    out.note(out.note_paint().yellow(format!("pending: the server of {tool} has a question")));
    for (key, question) in questions {
        question_lines(key, question).iter().for_each(|line| out.note(format!("  {line}")));
    }
    let flags: Vec<String> =
        questions.iter().map(|(key, question)| flag(key, question, questions.len() == 1)).collect();
    out.note(format!("answer by adding to the command:\n  {}", flags.join(" ")));
    if let Some(key) = questions.keys().next() {
        out.note(out.note_paint().dim(format!("  (or --decline {})", shell_word(key))));
    }
}

/// The flag that answers a question. A single question needs no key, unless it is a URL to visit.
fn flag(key: &str, question: &Question, is_only: bool) -> String {
    let word = match answering(&[(key.to_owned(), question.clone())].into()) {
        Some(value) if is_only => terminal_escape::json_word(&value),
        Some(value) => format!("{key}={}", terminal_escape::json_word(&value)),
        None => key.to_owned(),
    };
    format!("--answer {}", shell_word(&word))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_problem_is_reported_with_pointer_and_received_value() {
        let problem = |path: &str, received| Problem {
            path: path.into(),
            rule: "type".into(),
            message: "it is no string".into(),
            received,
        };
        assert_eq!(problem_line(&problem("/a", Some(json!(3)))), "  /a: it is no string, got 3");
        assert_eq!(problem_line(&problem("", None)), "  /: it is no string");
    }
}
