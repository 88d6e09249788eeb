//! Warnings of a run: what its caller has to know about a result that is no failure. They follow from the journal.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Ending, Limit, OnExceed, Restart, Run};
use crate::id::ServerId;

/// A warning about the result of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum RunWarning {
    /// The run completed with an answer without text and media.
    EmptyAnswer,
    /// The run continued beyond a hard limit, as `on_exceed: warn` tells.
    LimitExceeded { limit: Limit },
    /// The run ended without all tools: these servers were not available, or did not list all of their tools.
    IncompleteTools {
        /// The servers, sorted.
        servers: Vec<ServerId>,
    },
    /// The run did not continue the conversation of its session.
    SessionRestarted { restart: Restart },
}

impl RunWarning {
    /// Its code in JSON.
    pub fn code(&self) -> &'static str {
        match self {
            Self::EmptyAnswer => "empty_answer",
            Self::LimitExceeded { .. } => "limit_exceeded",
            Self::IncompleteTools { .. } => "incomplete_tools",
            Self::SessionRestarted { .. } => "session_restarted",
        }
    }
}

impl fmt::Display for RunWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyAnswer => f.write_str("the model's answer is empty"),
            Self::LimitExceeded { limit } => write!(f, "the run went beyond its limit `{}`", limit.name()),
            Self::SessionRestarted { restart } => {
                f.write_str("the session began afresh, because ")?;
                f.write_str(match restart {
                    Restart::WorkingDirectory => "the run before worked on another folder",
                    Restart::Model => "the run before used another model",
                    Restart::Servers => "the run before used other servers",
                    Restart::Policy => "the run before had another policy",
                    Restart::Expired => "it had expired",
                })
            }
            Self::IncompleteTools { servers } => {
                let servers: Vec<String> = servers.iter().map(|server| format!("`{server}`")).collect();
                write!(f, "the run had no tools, or not all tools, of the MCP servers {}", servers.join(", "))
            }
        }
    }
}

impl Run {
    /// The warnings about its result; empty unless the run is over.
    pub fn warnings(&self) -> Vec<RunWarning> {
        self.ending().map(|ending| self.warnings_of(ending)).unwrap_or_default()
    }

    /// The warnings about the result that this ending is.
    pub fn warnings_of(&self, ending: &Ending) -> Vec<RunWarning> {
        // A compaction that had nothing to replace has no answer.
        let is_empty = match ending {
            Ending::Completed { output } => output.is_blank() && !self.is_compaction_alone(),
            Ending::Failed { .. } | Ending::Cancelled { .. } | Ending::Incomplete { .. } | Ending::Expired => false,
        };
        let servers = match ending {
            Ending::Completed { .. } | Ending::Incomplete { .. } => self.incomplete_servers(),
            Ending::Failed { .. } | Ending::Cancelled { .. } | Ending::Expired => Vec::new(),
        };
        let is_incomplete = !servers.is_empty();
        let incomplete = is_incomplete.then_some(RunWarning::IncompleteTools { servers });
        let exceeded = match self.started.spec.rules.on_exceed {
            OnExceed::Warn => self.budget.limit_reached().filter(|limit| *limit != Limit::Iterations),
            OnExceed::LastWord | OnExceed::Fail | OnExceed::Ask => None,
        };
        let exceeded = exceeded.map(|limit| RunWarning::LimitExceeded { limit });
        let restarted = self.started.restart.map(|restart| RunWarning::SessionRestarted { restart });
        let empty = is_empty.then_some(RunWarning::EmptyAnswer);
        empty.into_iter().chain(exceeded).chain(incomplete).chain(restarted).collect()
    }

    /// The servers that the latest listing lacks, as a whole or in part.
    fn incomplete_servers(&self) -> Vec<ServerId> {
        let left_out = self.tools().map(|tools| tools.left_out()).unwrap_or_default();
        let whole = left_out.iter().filter(|left| left.tool.is_none()).filter_map(|left| left.server.clone());
        whole.collect::<BTreeSet<_>>().into_iter().collect()
    }
}
