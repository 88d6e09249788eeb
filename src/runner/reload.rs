//! Configuration reload: a runner with another configuration that continues the work of the previous one.

use std::sync::Arc;

use toolgate_driver::{Ports, Store};

use super::builder::named;
use super::{AgentRunner, Builder, Inner, RunnerError};

impl AgentRunner {
    /// A runner with the agents, the result settings of servers and the elicitation hold of that builder. Ports that
    /// can change (servers, approvals, validators, context, envelope keys, capacity) come from the builder if it sets
    /// them, and all others from this runner. Both runners share the store and all active executions: executions of
    /// this runner keep their configuration, and either runner can resume, cancel, watch and drain them.
    ///
    /// # Errors
    /// As [`Builder::build`].
    pub fn reconfigured(&self, builder: Builder) -> Result<Self, RunnerError> {
        let old = &self.inner;
        let agents = named(builder.agents)?;
        let before = old.ports.clone();
        let secrets = builder.secrets.unwrap_or_else(|| before.store.secrets.clone());
        let ports = Ports {
            store: Store { secrets, ..before.store.clone() },
            results: builder.results.into(),
            hold: builder.hold.into(),
            servers: builder.servers.unwrap_or(before.servers),
            // The validator, and with it the accepted tools, may be another one.
            toolsets: Arc::default(),
            approvals: builder.approvals.unwrap_or(before.approvals),
            inputs: builder.inputs.unwrap_or(before.inputs),
            outputs: builder.outputs.unwrap_or(before.outputs),
            paths: builder.paths.unwrap_or(before.paths),
            context: builder.context.unwrap_or(before.context),
            governor: builder.governor.or(before.governor),
            rule_counters: builder.rule_counters.or(before.rule_counters),
            ..before
        };
        if let Some(capacity) = builder.capacity {
            old.admission.set_capacity(capacity);
        }
        let inner = Inner {
            ports,
            agents,
            ids: old.ids.clone(),
            sampler: old.sampler.clone(),
            broadcaster: old.broadcaster.clone(),
            poller: old.poller.clone(),
            active_runs: old.active_runs.clone(),
            injections: old.injections.clone(),
            // The new configuration may lack something else, which must be reported.
            blocked: Arc::default(),
            admission: old.admission.clone(),
            drain: old.drain.clone(),
            envelopes: builder.envelopes.or_else(|| old.envelopes.clone()),
            tasks: old.tasks.clone(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }
}
