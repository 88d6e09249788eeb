//! Kinds of triggers, by which runs are listed.

use serde::{Deserialize, Serialize};

use super::Trigger;

/// The kind of a run's cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TriggerKind {
    /// A user or an application in the same process.
    Manual,
    /// A request over HTTP.
    Api,
    Schedule,
    Compaction,
    /// A fork of another run.
    Fork,
    /// A retry of another run.
    Retry,
}

impl TriggerKind {
    /// Every kind.
    pub const ALL: [Self; 6] = [Self::Manual, Self::Api, Self::Schedule, Self::Compaction, Self::Fork, Self::Retry];

    /// Its name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Manual => "manual",
            Self::Api => "api",
            Self::Schedule => "schedule",
            Self::Compaction => "compaction",
            Self::Fork => "fork",
            Self::Retry => "retry",
        }
    }

    /// Parses a kind.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

impl Trigger {
    /// Its kind.
    pub fn kind(&self) -> TriggerKind {
        match self {
            Self::Manual => TriggerKind::Manual,
            Self::Api => TriggerKind::Api,
            Self::Schedule { .. } => TriggerKind::Schedule,
            Self::Compaction => TriggerKind::Compaction,
            Self::Fork { .. } => TriggerKind::Fork,
            Self::Retry { .. } => TriggerKind::Retry,
        }
    }

    /// The name of the schedule that started the run.
    pub fn schedule(&self) -> Option<&str> {
        if let Self::Schedule { name } = self { Some(name) } else { None }
    }
}
