//! Resolves when the sessions of an agent begin afresh.

use std::collections::BTreeSet;

use toolgate_core::run::Restart;

use crate::agent::AgentSettings;
use crate::error::Fault;
use crate::resolver::Resolver;
use crate::written::Sessions;

/// The seconds until a session of the agent expires, and the changes of the configuration after which it begins afresh.
pub(super) fn of_agent(
    base: &AgentSettings,
    written: Option<&Sessions>,
    scope: &mut Resolver<'_>,
) -> (Option<u64>, BTreeSet<Restart>) {
    let seconds = written.and_then(|written| written.expire_after_s.as_ref());
    let expire_after_s = seconds.map_or(base.expire_after_s, |seconds| Some(*seconds.value()));
    let Some(changes) = written.and_then(|written| written.restart_on.as_ref()) else {
        return (expire_after_s, base.restart_on.clone());
    };
    for change in changes.iter().filter(|change| *change.value() == Restart::Expired) {
        let fault = Fault::new("`expired` is no change of the configuration");
        scope.fault(fault.with_remedy("set `expire_after_s`"), change.place());
    }
    (expire_after_s, changes.iter().map(|change| *change.value()).collect())
}
