//! Validation of agents with image models. Such a model takes a prompt and nothing else, so any other setting of the
//! agent would have no effect and is rejected.

use toolgate_core::id::AgentName;

use crate::error::Fault;
use crate::resolver::Resolver;
use crate::settings::{Api, ModelSettings};
use crate::spanned::{Located, Location, Text};
use crate::written::Agent;

/// Whether a model generates images instead of conversation.
pub(super) fn is_generative(model: &ModelSettings) -> bool {
    match model {
        ModelSettings::Http(settings) => match settings.api {
            Api::OpenAiImages => true,
            Api::OpenAiChat | Api::OpenAiResponses | Api::Anthropic | Api::Gemini => false,
        },
        ModelSettings::Scripted { .. } | ModelSettings::Missing { .. } => false,
    }
}

/// Rejects settings that an image model cannot use. `instructions` and their `place` are those of the agent, wherever
/// they are written.
pub(super) fn check(
    agent: &AgentName,
    written: &Agent,
    instructions: &str,
    place: Option<Location>,
    scope: &mut Resolver<'_>,
) {
    let first = |texts: Option<&Vec<Text>>| texts.and_then(|texts| texts.first()).map(Located::place);
    let tools = written.tools.as_ref();
    let external = written.external_tools.as_ref().and_then(|tools| tools.first()).map(Located::place);
    let useless = [
        ("instructions", (!instructions.trim().is_empty()).then_some(place)),
        ("instructions_preset", written.instructions_preset.as_ref().map(Located::place)),
        ("working_directory", written.working_directory.as_ref().map(Located::place)),
        ("servers", first(written.servers.as_ref())),
        ("fallback", written.fallback.as_ref().and_then(|models| models.first()).map(Located::place)),
        ("tools", first(tools.map(|tools| &tools.allow)).or_else(|| first(tools.map(|tools| &tools.deny)))),
        ("external_tools", external),
        ("output_schema", written.output_schema.as_ref().map(Located::place)),
        ("finish_with", first(written.finish_with.as_ref())),
        ("stop_when", written.stop_when.as_ref().map(Located::place)),
    ];
    for (key, place) in useless {
        if let Some(place) = place {
            let message =
                format!("agent `{agent}` has an image model, which takes only a prompt and cannot use `{key}`");
            scope.fault(Fault::new(message).with_remedy("remove it, or give the agent another model"), place);
        }
    }
}
