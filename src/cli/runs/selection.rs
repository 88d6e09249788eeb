//! Selection of runs, for commands that read several.

use clap::Args;

use crate::cli::text::list;
use crate::core::run::{Status, TriggerKind};
use crate::ports::{RunFilter, RunRow};

/// Which runs a command reads.
#[derive(Args, Debug)]
pub(super) struct RunSelection {
    /// Only runs that are running, interrupted, pending, completed, failed, cancelled, incomplete or expired
    #[arg(long, value_name = "STATUS", value_parser = listed_status)]
    status: Option<ListedStatus>,

    /// Only runs of this agent
    #[arg(long, value_name = "NAME")]
    pub(super) agent: Option<String>,

    /// Only runs of this conversation
    #[arg(long, value_name = "ID")]
    session: Option<String>,

    /// Only runs with this trigger: manual, api, schedule, compaction, fork or retry
    #[arg(long, value_name = "TRIGGER", value_parser = trigger)]
    trigger: Option<TriggerKind>,

    /// Only runs that this schedule started
    #[arg(long, value_name = "NAME")]
    schedule: Option<String>,
}

impl RunSelection {
    /// The filter of the store for so many runs.
    pub(super) fn filter(&self, limit: usize) -> RunFilter {
        RunFilter {
            statuses: self.status.iter().map(|status| status.stored).collect(),
            agent: self.agent.as_deref().map(Into::into),
            session: self.session.as_deref().map(Into::into),
            trigger: self.trigger,
            schedule: self.schedule.clone(),
            // The store does not tell a running run from an interrupted one.
            limit: if self.status.is_some_and(|status| status.stored == Status::Running) { usize::MAX } else { limit },
            ..RunFilter::default()
        }
    }

    /// Whether a row that the filter admits is selected.
    pub(super) fn admits(&self, row: &RunRow) -> bool {
        self.status.is_none_or(|status| status.word == row.status_word())
    }
}

/// A status as the list shows it ([`RunRow::status_word`]).
#[derive(Clone, Copy, Debug)]
struct ListedStatus {
    /// The status in the store.
    stored: Status,
    word: &'static str,
}

fn listed_status(word: &str) -> Result<ListedStatus, String> {
    if word == RunRow::INTERRUPTED {
        return Ok(ListedStatus { stored: Status::Running, word: RunRow::INTERRUPTED });
    }
    let known = || list(Status::ALL.iter().map(|status| status.as_str()).chain([RunRow::INTERRUPTED]));
    let found = Status::parse(word).map(|stored| ListedStatus { stored, word: stored.as_str() });
    found.ok_or_else(|| format!("a status is one of {}", known()))
}

fn trigger(word: &str) -> Result<TriggerKind, String> {
    let known = || list(TriggerKind::ALL.iter().map(|kind| kind.as_str()));
    TriggerKind::parse(word).ok_or_else(|| format!("a trigger is one of {}", known()))
}
