//! Instructions without secrets: a system prompt is sent to a provider and stored with each run.

use toolgate_core::id::AgentName;
use toolgate_core::redact::{Style, is_telling};

use crate::agent::AgentSettings;
use crate::error::Fault;
use crate::resolver::Resolver;
use crate::settings::Settings;
use crate::spanned::Location;

const REMEDY: &str = "remove it: a system prompt is sent to the provider and stored with each run. A server receives \
                      secrets in `env` or `headers`, or as an argument (`tools.<tool>.arguments`)";

/// Records the variables and placeholders in the instructions whose names say that they hold a secret. toolgate replaces
/// no variable in instructions, so others (`${HOME}`) are ordinary text.
pub(super) fn check_variables(agent: &AgentName, text: &str, place: Option<Location>, scope: &mut Resolver<'_>) {
    let variables = enclosed(text, "${", "}").filter(|name| is_telling(name)).map(|name| format!("${{{name}}}"));
    let placeholders = enclosed(text, "{{", "}}").filter(|inside| inside.to_ascii_lowercase().contains("secret"));
    for name in variables.chain(placeholders.map(|inside| format!("{{{{{inside}}}}}"))) {
        let fault = Fault::new(format!("the instructions of agent `{agent}` contain `{name}`, the name of a secret"));
        scope.fault(fault.with_remedy(REMEDY), place);
    }
}

/// Records the instructions that contain a secret of the configuration. The error has no excerpt, which would show it.
pub(super) fn check_secrets(settings: &Settings, scope: &mut Resolver<'_>) {
    let secrets = settings.secrets().build(Style { pieces: false, ..Style::MESSAGE });
    for agent in settings.agents.values() {
        let all = [agent].into_iter().chain(agent.variants.values());
        let has_secret = |agent: &AgentSettings| secrets.redacted(&agent.system()) != agent.system();
        if all.into_iter().any(has_secret) {
            let fault = Fault::new(format!(
                "the instructions of agent `{}` contain a secret of this configuration",
                agent.name
            ));
            scope.fault(fault.with_remedy(REMEDY), None);
        }
    }
}

/// The texts on one line between these marks.
fn enclosed<'a>(text: &'a str, open: &'a str, close: &'a str) -> impl Iterator<Item = &'a str> {
    let inside = text.lines().flat_map(move |line| line.split(open).skip(1));
    inside.filter_map(move |rest| rest.split_once(close)).map(|(inside, _)| inside)
}
