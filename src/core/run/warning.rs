//! Warnings of a run: what its caller has to know about a result that is no failure. They follow from the journal.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Ending, Run};

/// A warning about the result of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum RunWarning {
    /// The run completed with an answer without text and media.
    EmptyAnswer,
}

impl RunWarning {
    /// Its code in JSON.
    pub fn code(&self) -> &'static str {
        match self {
            Self::EmptyAnswer => "empty_answer",
        }
    }
}

impl fmt::Display for RunWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::EmptyAnswer => "the model's answer is empty",
        })
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
            Ending::Failed { .. } | Ending::Cancelled { .. } | Ending::TurnLimit { .. } | Ending::Expired => false,
        };
        is_empty.then_some(RunWarning::EmptyAnswer).into_iter().collect()
    }
}
