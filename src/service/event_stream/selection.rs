//! Selection of the events of a tenant.

use std::collections::BTreeSet;

use toolgate_core::id::{AgentName, SessionId};
use toolgate_core::lifecycle::LifecycleEvent;
use toolgate_ports::LoggedEvent;

use super::projections::ProjectedEvent;

/// Which events of a tenant a client receives.
#[derive(Clone, Debug, Default)]
pub struct EventSelection {
    /// Only of runs of this agent.
    pub agent: Option<AgentName>,
    /// Only of runs of this session.
    pub session: Option<SessionId>,
    /// Only of these types, if there are any.
    pub types: BTreeSet<&'static str>,
    pub topic: EventTopic,
}

/// What the selected events are about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EventTopic {
    /// Everything that runs do.
    #[default]
    Runs,
    /// The approvals inbox: requests, decisions, expiries and deadlines of approvals; and what shows, hides or withdraws those
    /// of a run.
    Approvals,
}

/// The events that show, hide, extend or withdraw the pending approvals of their run: the list has those of pending runs.
const AFFECTING_APPROVALS: [&str; 9] = [
    "execution.pending",
    "execution.resumed",
    "execution.paused",
    "pending.extended",
    "compensation.started",
    "execution.failed",
    "execution.incomplete",
    "execution.expired",
    "execution.cancelled",
];

impl EventSelection {
    /// The types in a list with commas.
    ///
    /// # Errors
    /// The first word that is not a type that a journal yields.
    pub fn parse_types(list: &str) -> Result<BTreeSet<&'static str>, String> {
        let known = |word: &str| LifecycleEvent::JOURNALED.into_iter().find(|name| *name == word);
        list.split(',').map(|word| known(word).ok_or_else(|| word.to_owned())).collect()
    }

    /// Whether the events of the run are selected, whatever their types.
    pub(super) fn admits_run(&self, fact: &LoggedEvent) -> bool {
        self.agent.as_ref().is_none_or(|agent| fact.agent == *agent)
            && self.session.as_ref().is_none_or(|session| fact.session == *session)
    }

    /// Whether an event of such a run is selected.
    pub(super) fn admits(&self, ProjectedEvent { event, with_approvals }: &ProjectedEvent) -> bool {
        let is_about_topic = match self.topic {
            EventTopic::Runs => true,
            EventTopic::Approvals => {
                event.name().starts_with("approval.")
                    || (*with_approvals && AFFECTING_APPROVALS.contains(&event.name()))
            }
        };
        is_about_topic && (self.types.is_empty() || self.types.contains(event.name()))
    }
}
