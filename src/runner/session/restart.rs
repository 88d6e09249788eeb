//! Restarts of a session: a run that does not continue the conversation, because the session expired or its agent's
//! configuration changed (FEATURES 0.06, 0.07, 0.08).

use std::time::Duration;

use jiff::Timestamp;
use toolgate_core::run::{Restart, Spec};
use toolgate_ports::{SessionRow, SessionRuntime};

use crate::{Agent, AgentRunner};

impl AgentRunner {
    /// When the session expires: its next run begins afresh then. `None` for never.
    pub fn session_expires_at(&self, row: &SessionRow) -> Option<Timestamp> {
        let of_agent = || self.agent(&row.agent).ok()?.sessions.expire_after_s;
        let seconds = row.settings.expire_after_s.or_else(of_agent)?;
        row.last_used_at().checked_add(Duration::from_secs(seconds)).ok()
    }

    /// Why a run of this specification begins the session afresh; `None` if it continues the conversation.
    pub(super) fn restart(&self, row: &SessionRow, spec: &Spec, agent: &Agent) -> Option<Restart> {
        let before = row.runtime.as_ref()?;
        if self.session_expires_at(row).is_some_and(|at| at <= self.inner.ports.clock.now()) {
            return Some(Restart::Expired);
        }
        let now = runtime_of(spec, agent);
        agent.sessions.restart_on.iter().copied().find(|part| match part {
            Restart::WorkingDirectory => before.working_directory != now.working_directory,
            Restart::Model => before.model != now.model,
            Restart::Servers => before.servers != now.servers,
            // The policy of a run from another store is unknown.
            Restart::Policy => before.policy.is_some() && before.policy != now.policy,
            Restart::Expired => false,
        })
    }
}

/// The configuration of a run, for the row of its session. Servers that the caller attached for the run do not count.
pub(super) fn runtime_of(spec: &Spec, agent: &Agent) -> SessionRuntime {
    SessionRuntime {
        working_directory: spec.working_directory.clone(),
        model: spec.model.clone(),
        servers: spec.servers.iter().filter(|server| !spec.injected.contains(server)).cloned().collect(),
        policy: Some(agent.policy_of(spec).mark()),
    }
}
