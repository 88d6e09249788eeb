//! Lines of the live view about calls: decisions, requests, results, and the grants in force.

use serde_json::Value;

use super::super::activity::server_and_tool;
use super::super::approval::{by_way_of, marked};
use super::super::approval_scope::{covered, reach};
use super::super::words::{kept_line, why_rejected};
use super::{AnswerPlacement, LiveView};
use crate::cli::file_texts;
use crate::cli::folded_change::{Look, folded_change};
use crate::cli::text::{COMPACT, arguments_line, block, count, end_of_line, ends, gutter, one_line};
use crate::cli::view::RepeatedFlags;
use crate::cli::wrap::{cut, visible_width};
use crate::core::id::RunId;
use crate::core::lifecycle::{CallEnd, CallRef, LifecycleEvent, LifecycleKind};
use crate::core::run::{self, Channel, Rejection, Scope, ToolGrant};
use crate::core::tool::escape_untrusted;
use crate::core::tool::file_change::{changed_file, changes_file};

/// How many rows the message of a failed call may take.
const ERROR_ROWS: usize = 3;

/// How many lines of a result are shown.
const RESULT_LINES: usize = 4;

/// The first lines of a result, and how many are not shown; of an error the first line and the last ones, because programs
/// end with what failed; of one line its ends. Where something is left out, a line names the command that shows all.
fn result_lines(result: &str, is_error: bool, room: usize, whole: Option<&str>) -> Vec<String> {
    let lines: Vec<&str> = result.trim_end().lines().collect();
    if lines.is_empty() {
        return Vec::new();
    }
    if lines.len() < 2 {
        let rows = if is_error { ERROR_ROWS } else { 1 };
        let text = ends(result, room * rows);
        let shown = if is_error { gutter(&text) } else { vec![text] };
        return shown.into_iter().chain(shortened(result, room * rows, whole)).collect();
    }
    let first = if is_error && lines.len() > RESULT_LINES { 1 } else { RESULT_LINES.min(lines.len()) };
    let (first, rest) = lines.split_at(first);
    let (hidden, last) = rest.split_at(if is_error { rest.len().saturating_sub(RESULT_LINES - 1) } else { rest.len() });
    let is_cut = |line: &&str| visible_width(&block(line)) > room;
    let omitted = match (hidden.len(), whole) {
        (0, _) if !first.iter().chain(last).any(is_cut) => None,
        (0, whole) => whole.map(|whole| format!("… whole: {whole}")),
        (hidden, Some(whole)) => Some(format!("… {}: {whole}", count(hidden, "more line"))),
        (hidden, None) => Some(format!("… {}", count(hidden, "more line"))),
    };
    let shown = |lines: &[&str]| -> Vec<String> { lines.iter().map(|line| cut(&block(line), room)).collect() };
    [shown(first), omitted.into_iter().collect(), shown(last)].concat()
}

/// Whether a result is the difference of a file.
fn is_difference(result: &str) -> bool {
    let first = result.trim_start();
    ["```diff", "diff --git ", "Index: ", "--- ", "@@ "].iter().any(|start| first.starts_with(start))
}

/// The line below a text that is shown on one line of this many columns, if that is not all of it.
pub(in crate::cli::view) fn shortened(text: &str, columns: usize, whole: Option<&str>) -> Option<String> {
    let is_cut = visible_width(&one_line(text, usize::MAX)) > columns;
    whole.filter(|_| is_cut).map(|whole| format!("… whole: {whole}"))
}

impl LiveView {
    /// The lines of a call that was not sent. Its arguments are shown, unless its name has them or a person denied it.
    pub(super) fn rejected(&self, call: &CallRef, reason: Rejection, message: Option<&str>) -> Vec<String> {
        let (paint, name) = (self.look.paint, self.named(call));
        if reason == Rejection::Deferred {
            return vec![paint.dim(format!("  ↷ {name} deferred: calls of higher priority run first"))];
        }
        let is_known = self.repeated.contains(&call.tool_name) || self.denied.contains(&call.call_id);
        let arguments = call.arguments.as_ref().filter(|_| !is_known);
        let arguments = arguments.map(|value| paint.dim(format!("    {}", arguments_line(value, self.look.room(4)))));
        let head = format!("{name} rejected, {}", reason.as_str().replace('_', " "));
        let room = self.look.room(head.chars().count() + 6) + (ERROR_ROWS - 1) * self.look.width;
        let reason = why_rejected(message.unwrap_or_default(), room);
        [format!("  {} {head}: {reason}", paint.red("✗"))].into_iter().chain(arguments).collect()
    }

    pub(super) fn decided(&mut self, fact: &LifecycleKind) -> Option<String> {
        let LifecycleKind::ApprovalDecided {
            call,
            decision: answer,
            by,
            via,
            scope,
            coverage,
            expires_at,
            edited,
            reason,
            policy,
        } = fact
        else {
            return None;
        };
        let (mark, word) = match answer {
            run::DecisionKind::Approve => (self.look.paint.green("✓"), "approved"),
            run::DecisionKind::Deny => (self.look.paint.red("✗"), "denied"),
        };
        let reach = reach(*scope, coverage, *expires_at);
        let edited = if *edited { ", arguments edited" } else { "" };
        let reason = reason.as_ref().map(|reason| format!(": {}", one_line(reason, usize::MAX))).unwrap_or_default();
        if self.decided_here.remove(&call.call_id) && *via == Channel::Terminal {
            let is_told = *answer == run::DecisionKind::Approve && reach.is_empty() && edited.is_empty();
            let reach = reach.trim_end_matches(',');
            return (!is_told).then(|| format!("  {mark} {} {word}{reach}{edited}{reason}", self.named(call)));
        }
        let policy = policy.as_ref().map(|policy| format!(" ({} asked)", marked(policy))).unwrap_or_default();
        let how = by_way_of(*via);
        Some(format!(
            "  {mark} {} {word}{reach} by {} {how}{edited}{policy}{reason}",
            self.named(call),
            escape_untrusted(by)
        ))
    }

    /// The tool, with the arguments where the turn has several calls of it.
    pub(super) fn named(&self, call: &CallRef) -> String {
        let told = call.arguments.as_ref().filter(|_| self.repeated.contains(&call.tool_name));
        let told = told.map(|value| format!(" ({})", arguments_line(value, COMPACT / 2))).unwrap_or_default();
        format!("{}{told}", call.tool_name)
    }

    pub(super) fn request_line(&self, mark: &str, call: &CallRef, remark: &str) -> String {
        let used = call.tool_name.chars().count() + remark.chars().count() + 6;
        let arguments = call.arguments.as_ref().map(|value| arguments_line(value, self.look.room(used)));
        let arguments = arguments.unwrap_or_default();
        format!("  {mark} {} {}{remark}", call.tool_name, self.look.paint.dim(arguments))
    }

    pub(super) fn ended(&mut self, event: &LifecycleEvent, call: &CallRef, remark: &str, end: &CallEnd) -> Vec<String> {
        let (paint, run) = (self.look.paint, &event.run_id);
        let number = self.shared.number(run, &call.call_id);
        let whole = self.again.as_ref().zip(number).map(|(again, number)| again.showing_call(run, number));
        let whole = whole.as_deref();
        let mark = if end.is_error { paint.red("✗") } else { paint.green("✓") };
        let result = end.result.as_deref().unwrap_or_default();
        let is_granted = self.granted.remove(&call.call_id);
        let mut lines: Vec<String> = match self.deferred.remove(&call.call_id) {
            Some(begun) => {
                let room = self.look.room(6).min(COMPACT);
                let is_seen = self.shown_here.remove(&call.call_id);
                let remark = match is_granted {
                    true => format!("{remark}{}by a grant", if remark.is_empty() { "" } else { " · " }),
                    false => remark.to_owned(),
                };
                let change = self.change(run, &begun, is_seen, end.is_error, whole);
                // The difference that a server returns for a changed file would be a second one.
                let is_change = begun.arguments.as_ref().and_then(Value::as_object).is_some_and(changes_file);
                let repeats = is_change && !end.is_error && is_difference(result);
                let result = if repeats { "" } else { result };
                let result = result_lines(result, end.is_error, room, whole);
                let head = self.whole_call(&mark, &begun, &remark, end.is_error);
                let details = change.into_iter().chain(result);
                [head].into_iter().chain(details.map(|line| format!("    {line}").trim_end().to_owned())).collect()
            }
            None => {
                let room = self.look.room(call.tool_name.chars().count() + remark.chars().count() + 8).min(COMPACT);
                let line = format!("  {mark} {} {}  {}", call.tool_name, paint.dim(remark), ends(result, room));
                [line].into_iter().chain(shortened(result, room, whole).map(|line| format!("    {line}"))).collect()
            }
        };
        lines.extend(end.kept.iter().map(|kept| paint.dim(format!("    {}", kept_line(kept)))));
        lines
    }

    /// The line of a call that was in progress and ended, in place of the activity. Of a changed file, it has only the name.
    fn whole_call(&self, mark: &str, begun: &CallRef, remark: &str, is_error: bool) -> String {
        let (paint, name) = (self.look.paint, server_and_tool(begun));
        let room = self.look.room(name.chars().count() + remark.chars().count() + 9);
        let file = begun.arguments.as_ref().and_then(Value::as_object).and_then(changed_file);
        let arguments = match file.filter(|_| !is_error) {
            Some(file) => end_of_line(file, room),
            None => begun.arguments.as_ref().map(|value| arguments_line(value, room)).unwrap_or_default(),
        };
        let took = if remark.is_empty() { String::new() } else { format!(" · {remark}") };
        format!("  {mark} {name}{took}  {}", paint.dim(arguments))
    }

    /// The change that a call made to its file. None of a failed call. If its prompt showed it, only what is otherwise.
    fn change(&self, run: &RunId, call: &CallRef, is_seen: bool, is_error: bool, whole: Option<&str>) -> Vec<String> {
        let Some(arguments) = call.arguments.as_ref().and_then(Value::as_object) else { return Vec::new() };
        let texts = file_texts::take(run, &call.call_id, arguments);
        let look = Look { columns: self.look.room(4), paint: self.look.paint, whole, is_seen };
        if is_error { Vec::new() } else { folded_change(arguments, texts.as_ref(), &look) }
    }

    /// The calls that were in progress when the run ended. Their requests were sent, and no reply is recorded.
    pub(super) fn interrupted(&mut self) -> Vec<String> {
        self.deferred.clear();
        let interrupted = std::mem::take(&mut self.executing).into_values();
        let unsent = std::mem::take(&mut self.approved).into_values();
        let undecided = std::mem::take(&mut self.asked).into_values();
        let mark = self.look.paint.yellow("!");
        let remark = ": interrupted; it was sent, and whether it took effect is unknown";
        let interrupted = interrupted.map(|call| self.request_line(&mark, &call, remark));
        let unsent = unsent.map(|(call, scope)| {
            let grant = if scope == Scope::Once { "" } else { ", so that its grant is not saved" };
            format!("  {mark} {}: approved, and not sent before the run ended{grant}", self.named(&call))
        });
        let undecided = undecided.map(|call| format!("  {mark} {}: not decided, and not sent", self.named(&call)));
        interrupted.chain(unsent).chain(undecided).collect()
    }

    /// The calls that were sent and have no result, and the messages that no model has read, when no further event follows.
    pub(in crate::cli) fn unsettled(&mut self) -> Vec<String> {
        self.deferred.clear();
        let mark = self.look.paint.yellow("!");
        let sent = std::mem::take(&mut self.executing).into_values();
        let sent = sent.map(|call| self.request_line(&mark, &call, ": sent, and no result is recorded yet"));
        let sent: Vec<String> = sent.collect();
        sent.into_iter().chain(self.messages_left_unread()).collect()
    }

    /// The grants in force: each with what it covers, in a conversation their number. No lines without a grant.
    pub(super) fn grants_in_force(&self, granted: &[ToolGrant]) -> Vec<String> {
        if self.answer == AnswerPlacement::Conversation {
            let number = (!granted.is_empty()).then(|| count(granted.len(), "grant"));
            let list = self.again.as_ref().map_or_else(|| "/approvals".to_owned(), RepeatedFlags::listing_grants);
            return number.map(|number| format!("  {number} in force, {list} lists them")).into_iter().collect();
        }
        let covered: Vec<String> = covered(granted).collect();
        match &covered[..] {
            [] => Vec::new(),
            [only] => vec![format!("  grants in force: {only}")],
            several => {
                let each = several.iter().map(|covered| format!("    {covered}"));
                ["  grants in force:".to_owned()].into_iter().chain(each).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::result_lines;

    #[test]
    fn a_result_of_several_lines_keeps_the_first_of_them() {
        assert_eq!(result_lines("one\ntwo\n", false, 40, None), ["one", "two"]);
        assert_eq!(result_lines("1\n2\n3\n4\n5\n6", false, 40, None), ["1", "2", "3", "4", "… 2 more lines"]);
        assert_eq!(result_lines("a long line\n\u{1b}b", false, 8, None), ["a long …", "\\u{1b}b"]);
    }

    #[test]
    fn an_error_of_several_lines_keeps_the_last_of_them() {
        assert_eq!(result_lines("exit 1\na\nb\nc", true, 40, None), ["exit 1", "a", "b", "c"]);
        let shown = result_lines("exit 1\na\nb\nc\nd\ne", true, 40, Some("/show 2"));
        assert_eq!(shown, ["exit 1", "… 2 more lines: /show 2", "c", "d", "e"]);
    }

    #[test]
    fn a_shortened_result_names_the_command_that_shows_all() {
        let shown = |result| result_lines(result, false, 8, Some("/show 2"));
        assert_eq!(shown("one\ntwo"), ["one", "two"]);
        assert_eq!(shown("1\n2\n3\n4\n5\n6")[4..], ["… 2 more lines: /show 2"]);
        assert_eq!(shown("a long line\nb"), ["a long …", "b", "… whole: /show 2"]);
        assert_eq!(shown("12345678"), ["12345678"]);
        assert_eq!(shown("123456789"), ["1234567…", "… whole: /show 2"]);
    }
}
