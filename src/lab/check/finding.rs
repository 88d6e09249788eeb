//! Finding: a mistake at one place of one server, and the collection of all of them.

use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use toolgate_core::redact::Secrets;
use toolgate_core::tool::escape_untrusted;

use super::revision::Revision;
use super::rules::{Group, Rule, Severity, pages};

/// The longest message, in characters. Servers may send megabytes in a name.
const MAX_MESSAGE: usize = 600;

/// A mistake of the server.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The id of the rule.
    pub rule: &'static str,
    pub group: Group,
    pub severity: Severity,
    /// The tool that has the mistake, by the server's name for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// JSON pointer into the tool's definition, or into the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// What is wrong, in one line.
    pub message: String,
    /// What to do about it, in one line.
    pub remedy: &'static str,
    /// How often it occurred.
    pub count: usize,
    /// Address of the rule's page.
    pub page: String,
    /// Address of the place in the specification of the revision in which it occurred.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub specification: Option<String>,
}

impl Finding {
    /// A finding of a rule, about the server as a whole.
    pub(super) fn new(rule: &'static Rule, message: impl AsRef<str>) -> Self {
        Self {
            rule: rule.id,
            group: rule.group,
            severity: rule.severity,
            tool: None,
            pointer: None,
            message: one_line(message.as_ref(), MAX_MESSAGE),
            remedy: rule.fix,
            count: 1,
            page: pages::address(rule),
            specification: rule
                .specification(Revision::LAST_LEGACY)
                .or_else(|| rule.specification(Revision::V2026July)),
        }
    }

    /// Links the specification of this revision, if it has the rule.
    pub(super) fn in_revision(mut self, rule: &'static Rule, revision: Revision) -> Self {
        self.specification = rule.specification(revision).or(self.specification);
        self
    }

    /// Names the tool.
    pub(super) fn tool(mut self, name: &str) -> Self {
        self.tool = Some(one_line(name, 200));
        self
    }

    /// Points to the place.
    pub(super) fn at(mut self, pointer: impl Into<String>) -> Self {
        self.pointer = Some(pointer.into());
        self
    }

    /// Overrides the severity of the rule.
    pub(super) fn severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// The tool and the place in it, separated by a space; empty for a finding about the server as a whole.
    pub(super) fn place(&self) -> String {
        let parts: Vec<&str> = [&self.tool, &self.pointer].into_iter().flatten().map(String::as_str).collect();
        parts.join(" ")
    }

    /// Identity of the finding across runs of the check: rule, tool and place. The message is not part of it, because it
    /// may have times and numbers.
    pub fn fingerprint(&self) -> String {
        format!("{} {}", self.rule, self.place()).trim_end().to_owned()
    }
}

/// The findings of a check so far. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Findings {
    all: Arc<Mutex<Vec<Finding>>>,
    secrets: Secrets,
}

impl Findings {
    /// An empty collection, whose messages never show these secrets.
    pub(super) fn without(secrets: Secrets) -> Self {
        Self { all: Arc::default(), secrets }
    }

    /// The text without secrets.
    pub(super) fn redacted(&self, text: &str) -> String {
        self.secrets.redacted(text).into_owned()
    }

    /// Adds a finding. One of the same rule at the same place is counted and not repeated.
    pub(super) fn add(&self, mut finding: Finding) {
        finding.message = self.redacted(&finding.message);
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |known: &&mut Finding| {
            (known.rule, &known.tool, &known.pointer) == (finding.rule, &finding.tool, &finding.pointer)
        };
        match all.iter_mut().find(same) {
            Some(known) => {
                known.count += 1;
                known.severity = known.severity.max(finding.severity);
            }
            None => all.push(finding),
        }
    }

    /// Whether there is a finding of this rule.
    pub(super) fn has(&self, rule: &Rule) -> bool {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|finding| finding.rule == rule.id)
    }

    /// The findings, in the order of the report: by group, the most severe first.
    pub(super) fn sorted(&self) -> Vec<Finding> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner).clone();
        all.sort_by(|a, b| {
            let key = |finding: &Finding| (finding.group, std::cmp::Reverse(finding.severity), finding.rule);
            key(a).cmp(&key(b)).then_with(|| a.tool.cmp(&b.tool)).then_with(|| a.pointer.cmp(&b.pointer))
        });
        all
    }
}

/// Text of a server on one line of at most `max` characters, with invisible characters as their codes.
pub(super) fn one_line(text: &str, max: usize) -> String {
    let beginning: String =
        text.chars().take(max * 2).map(|c| if matches!(c, '\n' | '\r' | '\t') { ' ' } else { c }).collect();
    let escaped = escape_untrusted(&beginning);
    let words: Vec<&str> = escaped.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(max) {
        None => line,
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
    }
}
