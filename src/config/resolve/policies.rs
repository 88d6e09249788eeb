//! Resolves policies: the presets, the configured ones, and the one of each agent.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolgate_core::id::AgentName;
use toolgate_core::policy::Policy;

use crate::error::Fault;
use crate::policy;
use crate::resolver::{Kind, Resolver};
use crate::spanned::{Located, Location, Text};
use crate::written::PolicyChoice;

/// Every policy that has a name.
pub(super) fn resolve(
    written: Option<&BTreeMap<String, Located<PolicyChoice>>>,
    scope: &mut Resolver<'_>,
) -> BTreeMap<String, Arc<Policy>> {
    let mut policies = BTreeMap::new();
    for preset in policy::presets() {
        match preset {
            Ok(preset) => drop(policies.insert(preset.name.clone(), Arc::new(preset))),
            Err(error) => scope.absorb_error(&error, None),
        }
    }
    for (name, choice) in written.into_iter().flatten() {
        scope.name("a policy", name, choice.place());
        if policies.contains_key(name) {
            let fault = Fault::new(format!("`{name}` is the name of a preset"));
            scope.fault(fault.with_remedy("give your policy another name"), choice.place());
            continue;
        }
        // An invalid policy keeps its entry: the error is in its file, not in the agents that refer to it.
        policies.insert(name.clone(), Arc::default());
        let policy = scope.about(Kind::Policy, name, |scope| match choice.value() {
            PolicyChoice::Named(path) => file(path, choice.place(), scope),
            PolicyChoice::Here(written) => Some(policy::in_place(written, name, choice.place(), scope)),
        });
        match policy {
            Some(policy) if policy.name == *name => drop(policies.insert(name.clone(), Arc::new(policy))),
            Some(policy) => {
                let fault = Fault::new(format!("the file calls this policy `{}`, not `{name}`", policy.name));
                scope.fault(fault.with_remedy("use one name in both places"), choice.place());
            }
            None => {}
        }
    }
    policies
}

/// The policy of an agent: by name, by file, or written in place.
pub(super) fn of_agent(
    agent: &AgentName,
    written: Option<&Located<PolicyChoice>>,
    known: &BTreeMap<String, Arc<Policy>>,
    scope: &mut Resolver<'_>,
) -> Arc<Policy> {
    let preset = || known.get("default").cloned().unwrap_or_default();
    let Some(choice) = written else { return preset() };
    match choice.value() {
        PolicyChoice::Here(written) => Arc::new(policy::in_place(written, agent.as_str(), choice.place(), scope)),
        PolicyChoice::Named(name) => {
            let written = choice.with(name.clone());
            let name = scope.text(&written);
            if let Some(policy) = known.get(&name) {
                return policy.clone();
            }
            if is_path(&name) {
                return file(&name, choice.place(), scope).map(Arc::new).unwrap_or_default();
            }
            scope.unknown(Kind::Policy, &written, known.keys().map(String::as_str));
            // Never used: the error above rejects the whole configuration.
            preset()
        }
    }
}

/// The policy with this name.
pub(super) fn named(
    written: &Text,
    known: &BTreeMap<String, Arc<Policy>>,
    scope: &mut Resolver<'_>,
) -> Option<Arc<Policy>> {
    let policy = known.get(&scope.text(written));
    if policy.is_none() {
        scope.unknown(Kind::Policy, written, known.keys().map(String::as_str));
    }
    policy.cloned()
}

/// Names of policies never look like this.
fn is_path(name: &str) -> bool {
    name.contains(['/', '\\']) || name.ends_with(".yaml") || name.ends_with(".yml")
}

fn file(path: &str, place: Option<Location>, scope: &mut Resolver<'_>) -> Option<Policy> {
    let path = scope.path_of(path, place);
    match policy::policy_file(&path) {
        Ok(policy) => Some(policy),
        Err(error) => {
            scope.absorb_error(&error, place);
            None
        }
    }
}
