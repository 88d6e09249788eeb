//! Lines of a server's stdout: which are messages, which are not, and why.

use super::answer::NoAnswer;
use super::inbox::Inbox;
use super::json::{self, Parsed};
use super::log::{Direction, WireLog};
use crate::check::finding::one_line;
use crate::check::rules::wire;

use serde_json::Value;

/// The most lines, and bytes, that an indented message may have.
const MAX_LINES: usize = 5_000;
const MAX_BYTES: usize = 4 << 20;

/// The reader of one stdout.
pub(super) struct Lines<'a> {
    inbox: &'a Inbox,
    log: &'a WireLog,
    connection: &'a str,
    /// Lines that may be the beginning of an indented message.
    held: Vec<u8>,
    held_lines: usize,
}

impl<'a> Lines<'a> {
    /// A reader that hands messages to this inbox.
    pub(super) fn new(inbox: &'a Inbox, log: &'a WireLog, connection: &'a str) -> Self {
        Self { inbox, log, connection, held: Vec::new(), held_lines: 0 }
    }

    /// Takes a line. Returns the replies to send.
    pub(super) fn take(&mut self, line: &[u8]) -> Vec<Value> {
        let trimmed = line.trim_ascii();
        if trimmed.is_empty() {
            return Vec::new();
        }
        if self.held.is_empty()
            && let Some(parsed) = json::parse(trimmed).filter(is_message)
        {
            self.log.record(self.connection, Direction::Received, line, None);
            return self.inbox.take(parsed, line.len(), None);
        }
        if let Some(replies) = self.take_indented(line) {
            return replies;
        }
        self.take_noise(line)
    }

    /// Holds the lines of an indented message until it is complete.
    fn take_indented(&mut self, line: &[u8]) -> Option<Vec<Value>> {
        let trimmed = line.trim_ascii();
        if self.held.is_empty() && !matches!(trimmed, b"{" | b"[") {
            return None;
        }
        self.held.extend_from_slice(line);
        self.held_lines += 1;
        if !trimmed.ends_with(b"}") && !trimmed.ends_with(b"]") {
            if self.held_lines > MAX_LINES || self.held.len() > MAX_BYTES {
                return Some(self.release());
            }
            return Some(Vec::new());
        }
        let Some(parsed) = json::parse(&self.held).filter(is_message) else {
            // A message of its own ends the wait for the rest of this one.
            let is_other = json::parse(trimmed).is_some_and(|parsed| is_message(&parsed));
            return is_other
                .then(|| {
                    self.held.truncate(self.held.len() - line.len());
                    let mut replies = self.release();
                    replies.extend(self.take(line));
                    replies
                })
                .or(Some(Vec::new()));
        };
        let held = std::mem::take(&mut self.held);
        self.log.record(self.connection, Direction::Received, &held, Some("a message on several lines"));
        let excerpt = one_line(&parsed.value.to_string(), 100);
        self.inbox.report(&wire::JSON_MULTILINE, format!("a message on {} lines: {excerpt}", self.held_lines));
        self.held_lines = 0;
        Some(self.inbox.take(parsed, held.len(), None))
    }

    /// Reports the beginning of a line that is longer than a reader takes, in MiB, and fails the request that it answers.
    pub(super) fn drop_beginning(&mut self, beginning: &[u8], limit: u64) {
        self.release();
        self.log.record(self.connection, Direction::Received, b"", Some("a line that is too long"));
        let beginning = String::from_utf8_lossy(beginning.get(..1_000).unwrap_or(beginning));
        let excerpt = one_line(&beginning, 100);
        self.inbox.report(&wire::MESSAGE_TOO_LARGE, format!("a line is longer than {limit} MiB: `{excerpt}`"));
        if let Some(id) = id_in(&beginning) {
            self.inbox.fail(id, NoAnswer::Unreadable(format!("it is longer than {limit} MiB")));
        }
    }

    /// Reports held lines that are no message after all.
    pub(super) fn release(&mut self) -> Vec<Value> {
        self.held_lines = 0;
        let held = std::mem::take(&mut self.held);
        if held.is_empty() { Vec::new() } else { self.take_noise(&held) }
    }

    fn take_noise(&self, line: &[u8]) -> Vec<Value> {
        let text = String::from_utf8_lossy(line);
        let excerpt = one_line(&text, 160);
        if std::str::from_utf8(line).is_err() {
            self.inbox.report(&wire::INVALID_UTF8, format!("a line that is not UTF-8: `{excerpt}`"));
        }
        let at = text.find("{\"jsonrpc\"").or_else(|| text.find("{ \"jsonrpc\""));
        let salvaged = at.filter(|at| *at > 0).and_then(|at| Some((at, json::parse(text.get(at..)?.as_bytes())?)));
        if let Some((at, parsed)) = salvaged.filter(|(_, parsed)| is_message(parsed)) {
            self.log.record(
                self.connection,
                Direction::Received,
                line,
                Some("text before the message on the same line"),
            );
            let before = one_line(text.get(..at).unwrap_or_default(), 120);
            self.report_noise(&format!("text before a message on the same line: `{before}`"));
            return self.inbox.take(parsed, line.len(), None);
        }
        if text.contains("\"jsonrpc\"") {
            self.log.record(self.connection, Direction::Received, line, Some("a message that is not valid JSON"));
            self.inbox.report(&wire::JSON_MALFORMED, format!("a message that is not valid JSON: `{excerpt}`"));
            if let Some(id) = id_in(&text) {
                self.inbox.fail(id, NoAnswer::Unreadable("it is not valid JSON".into()));
            }
            return Vec::new();
        }
        self.log.record(self.connection, Direction::Received, line, Some("not a message"));
        self.report_noise(&format!("a line that is not a message: `{excerpt}`"));
        Vec::new()
    }

    fn report_noise(&self, text: &str) {
        let rule = if self.inbox.has_message() { &wire::STDOUT_NOISE } else { &wire::STDOUT_BANNER };
        self.inbox.report(rule, text);
    }
}

/// Whether the value is meant as a message of JSON-RPC, even a wrong one.
fn is_message(parsed: &Parsed) -> bool {
    match &parsed.value {
        Value::Object(members) => {
            members.contains_key("jsonrpc")
                || (members.contains_key("id") && (members.contains_key("result") || members.contains_key("error")))
        }
        Value::Array(batch) => batch.first().is_some_and(|first| first.get("jsonrpc").is_some()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// The id in a message that cannot be parsed.
fn id_in(text: &str) -> Option<u64> {
    let (_, rest) = text.split_once("\"id\":")?;
    let digits: String = rest.trim_start().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}
