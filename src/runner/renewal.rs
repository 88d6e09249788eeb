//! A runner with another configuration that goes on with the work of the one before.

use std::sync::Arc;

use super::builder::named;
use super::{AgentRunner, Builder, Inner, RunnerError};
use crate::driver::Ports;

impl AgentRunner {
    /// A runner with the agents, the results of servers and the hold of elicitations of that builder. Every other port is the builder's if it names one
    /// that can change (servers, approvals, validators, context, envelope keys, capacity), and else that of this runner.
    /// Both share the store and everything that is under way: executions of this runner go on with what they
    /// began with, and are resumed, cancelled, watched and drained through either.
    ///
    /// # Errors
    /// As [`Builder::build`].
    pub fn renewed(&self, builder: Builder) -> Result<Self, RunnerError> {
        let old = &self.inner;
        let agents = named(builder.agents)?;
        let before = old.ports.clone();
        let ports = Ports {
            results: builder.results.into(),
            hold: builder.hold.into(),
            servers: builder.servers.unwrap_or(before.servers),
            approvals: builder.approvals.unwrap_or(before.approvals),
            inputs: builder.inputs.unwrap_or(before.inputs),
            outputs: builder.outputs.unwrap_or(before.outputs),
            paths: builder.paths.unwrap_or(before.paths),
            context: builder.context.unwrap_or(before.context),
            ..before
        };
        if let Some(capacity) = builder.capacity {
            old.turnstile.set_capacity(capacity);
        }
        let inner = Inner {
            ports,
            agents,
            ids: old.ids.clone(),
            sampler: old.sampler.clone(),
            hub: old.hub.clone(),
            driving: old.driving.clone(),
            injections: old.injections.clone(),
            // Another configuration may lack something else, which is to be reported.
            blocked: Arc::default(),
            turnstile: old.turnstile.clone(),
            drain: old.drain.clone(),
            #[cfg(feature = "envelope")]
            envelopes: builder.envelopes.or_else(|| old.envelopes.clone()),
            tasks: old.tasks.clone(),
        };
        Ok(Self { inner: Arc::new(inner) })
    }
}
