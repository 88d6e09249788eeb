//! Stop conditions of an agent: `finish_with` and `stop_when`.

use serde_json::Value;
use toolgate_core::id::AgentName;
use toolgate_core::pattern::NamePattern;
use toolgate_core::policy::StopCondition;
use toolgate_core::run::Spec;
use toolgate_core::tool::Builtin;

use crate::error::Fault;
use crate::resolver::Resolver;
use crate::spanned::Text;

/// The tools that end a run. The arguments of `finish` are an object, so that the answer has to be one.
pub(super) fn finish_with(names: &[Text], answer: Option<&Value>, scope: &mut Resolver<'_>) -> Vec<NamePattern> {
    if let Some(finish) = names.iter().find(|name| name.value() == Builtin::Finish.name())
        && !answer.is_some_and(Spec::is_object_schema)
    {
        let fault = Fault::new("the tool `finish` takes the answer as its arguments, and there is no schema for them");
        scope.fault(fault.with_remedy("add `output_schema: { type: object, … }`"), finish.place());
    }
    names.iter().map(|name| scope.pattern(name.value(), name.place())).collect()
}

pub(super) fn stop_when(agent: &AgentName, written: &Text, scope: &mut Resolver<'_>) -> Option<StopCondition> {
    match StopCondition::parse(written.value()) {
        Ok(condition) => Some(condition),
        Err(error) => {
            let fault = Fault::new(format!("`stop_when` of agent `{agent}` cannot be used: {error}"));
            scope.fault(fault.with_remedy("docs/configuration.md describes stop conditions"), written.place());
            None
        }
    }
}
