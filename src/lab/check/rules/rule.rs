//! Rule: one mistake that the check can name, with everything that its page says about it.

use std::fmt;

use serde::Serialize;

use crate::check::revision::Revision;

/// How much a finding matters. The order is that of `--severity`: a gate at `warning` counts errors too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; clients cope with it.
    Note,
    /// Some clients, models or users meet a problem because of it.
    Warning,
    /// The specification forbids it, or calls fail because of it.
    Error,
}

impl Severity {
    /// The word in reports and flags.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The section of a report to which a rule belongs, in the order of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Group {
    /// Process, bytes and lines.
    Wire,
    /// JSON-RPC and the messages of MCP.
    Protocol,
    /// Streamable HTTP.
    Http,
    /// Definitions of tools.
    Tools,
    /// Results of calls, with `--call`.
    Calls,
    /// Differences from an earlier list of tools, with `--against`.
    Changes,
}

impl Group {
    /// All groups, in the order of the report.
    pub const ALL: [Self; 6] = [Self::Wire, Self::Protocol, Self::Http, Self::Tools, Self::Calls, Self::Changes];

    /// The heading in reports.
    pub fn title(self) -> &'static str {
        match self {
            Self::Wire => "Start and wire",
            Self::Protocol => "Protocol",
            Self::Http => "HTTP",
            Self::Tools => "Tools",
            Self::Calls => "Calls",
            Self::Changes => "Changes",
        }
    }
}

/// A mistake that the check names.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// The stable id in kebab-case, which is also the name of its page.
    pub id: &'static str,
    pub group: Group,
    /// The severity unless a finding says otherwise.
    pub severity: Severity,
    /// What is wrong, as a noun phrase.
    pub title: &'static str,
    /// What users of the server experience because of it.
    pub why: &'static str,
    /// How to correct it, as an imperative.
    pub fix: &'static str,
    /// Where the specification has the rule.
    pub(in crate::check) places: Places,
}

/// Places in the specification up to 2025-11-25, and since 2026-07-28, below the address of a revision.
pub(super) type Places = (Option<&'static str>, Option<&'static str>);

/// For a rule that the specification does not have.
pub(super) const NOWHERE: Places = (None, None);

/// The same place in all revisions.
pub(super) const fn both(place: &'static str) -> Places {
    (Some(place), Some(place))
}

impl Rule {
    /// Address of the place in the specification of this revision that the rule follows from, if there is one.
    pub fn specification(&self, revision: Revision) -> Option<String> {
        let place = if revision.is_modern() { self.places.1 } else { self.places.0 }?;
        Some(format!("https://modelcontextprotocol.io/specification/{revision}/{place}"))
    }
}
