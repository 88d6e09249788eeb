//! Hook of a test: changes how the servers of a case are reached before they start, for example through a proxy.

use std::fmt;
use std::sync::Arc;

use super::error::TestError;
use super::test_run::TestRun;
use crate::config::ServerSettings;
use crate::core::id::ServerId;

type Change = dyn Fn(&ServerId, &mut ServerSettings) -> Result<(), String> + Send + Sync;

/// A change of the connection settings of each server that the agent of a case uses. Clones share it.
#[derive(Clone)]
pub struct ServerHook(Arc<Change>);

impl ServerHook {
    /// A hook that calls this function with each server; its error ends the case.
    pub fn new(change: impl Fn(&ServerId, &mut ServerSettings) -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(change))
    }

    /// Changes the servers of a run.
    pub(super) fn apply(&self, run: &mut TestRun) -> Result<(), TestError> {
        let Some(agent) = run.settings.agents.get(&run.agent) else { return Ok(()) };
        for id in agent.servers.clone() {
            if let Some(server) = run.settings.servers.get_mut(&id) {
                (self.0)(&id, server).map_err(TestError::invalid)?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for ServerHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerHook")
    }
}
