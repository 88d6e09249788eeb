//! Model findings: whether each model is there, without asking it anything.

use futures::future::join_all;

use super::finding::{Finding, Section, Verdict};
use crate::app::{self, ModelList};
use crate::cli::models::{place, remedy_for};
use crate::cli::setup::stand_in_warning;
use crate::cli::text::{block, count};
use crate::config::{HttpModelSettings, ModelSettings, Provider, Settings};
use crate::core::id::ModelName;

/// Whether an agent has no model, or a script instead of one.
pub(super) fn lack_one(settings: &Settings) -> bool {
    let of_agents = settings.agents.values().filter_map(|agent| settings.models.get(&agent.model));
    of_agents.into_iter().any(|model| match model {
        ModelSettings::Missing { .. } => true,
        ModelSettings::Scripted { is_stand_in, .. } => *is_stand_in,
        ModelSettings::Http(_) => false,
    })
}

pub(super) async fn findings(settings: &Settings) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        join_all(settings.models.iter().map(|(name, model)| finding(settings, name, model))).await;
    let is_asked = |model: &ModelSettings| match model {
        ModelSettings::Http(_) => true,
        ModelSettings::Scripted { .. } | ModelSettings::Missing { .. } => false,
    };
    if let Some((name, _)) = settings.models.iter().find(|(_, model)| is_asked(model)) {
        let message = format!("`toolgate models check {name}` makes five small calls, which may cost money");
        findings.push(Section::Models.finding(Verdict::Note, "answers", format!("not tested: {message}")));
    }
    findings
}

async fn finding(settings: &Settings, name: &ModelName, model: &ModelSettings) -> Finding {
    let section = Section::Models;
    let mut users = settings.agents.values().filter(|agent| agent.models().any(|used| used == name));
    let user = users.next();
    // A model without an agent harms no run.
    let failed = if user.is_some() { Verdict::Failed } else { Verdict::Warning };
    match model {
        ModelSettings::Missing { remedy } => {
            section.finding(failed, name.as_str(), "no model is configured").with_remedy(remedy)
        }
        ModelSettings::Scripted { file, is_stand_in } => {
            let warning = user.filter(|_| *is_stand_in).and_then(|agent| stand_in_warning(settings, &agent.name));
            match warning {
                Some(warning) => section.finding(Verdict::Warning, name.as_str(), warning),
                None => section.finding(Verdict::Ok, name.as_str(), format!("scripted, {}", file.display())),
            }
        }
        ModelSettings::Http(http) => {
            let at = place(model).unwrap_or_default();
            let about = format!("{} at {at}", http.settings.model);
            match app::list_models(http).await {
                Ok(list) => answered(http, name, &at, &list),
                Err(failure) => section
                    .finding(failed, name.as_str(), format!("{about}: {}", block(&failure.message)))
                    .with_remedy_if(remedy_for(failure.code)),
            }
        }
    }
}

/// The finding for a server that answered.
fn answered(http: &HttpModelSettings, name: &ModelName, at: &str, list: &ModelList) -> Finding {
    let wanted = &http.settings.model;
    let finding =
        |verdict, text: &str| Section::Models.finding(verdict, name.as_str(), format!("{wanted} at {at}: {text}"));
    let check = format!("`toolgate models check {name}` asks the model");
    let key = match &http.settings.api_key {
        None => "without a key",
        Some(_) if Provider::at(&http.settings.base_url).is_some() => "the key is accepted",
        Some(_) => "whether the key is valid is not known",
    };
    match list {
        ModelList::Models(models) if models.iter().any(|listed| is_named(listed, wanted)) => {
            finding(Verdict::Ok, &format!("reachable, {key}, the model is listed"))
        }
        ModelList::Models(models) => {
            let text =
                format!("reachable, {key}; the model is not among the {} that it lists", count(models.len(), "model"));
            finding(Verdict::Warning, &text).with_remedy(format!("check the name of the model; {check}"))
        }
        ModelList::NoList { status } => {
            let text = format!("reachable, and gives no list of models (HTTP {status}): key and model are not checked");
            finding(Verdict::Unknown, &text).with_remedy(check)
        }
    }
}

/// Whether a listed model is the wanted one. Ollama lists tags, Gemini resources, and the others the dated version of an
/// alias.
fn is_named(listed: &str, wanted: &str) -> bool {
    let [listed, wanted] = [listed, wanted].map(|name| name.strip_prefix("models/").unwrap_or(name));
    let dated = |rest: &str| rest.strip_prefix('-').is_some_and(|date| date.starts_with("20"));
    listed.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest == ":latest" || dated(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_recognized_by_its_tag_its_resource_and_its_dated_version() {
        for (listed, wanted) in [
            ("qwen3:latest", "qwen3"),
            ("models/gemini-flash-latest", "gemini-flash-latest"),
            ("claude-haiku-4-5-20251001", "claude-haiku-4-5"),
            ("gpt-5-mini", "gpt-5-mini"),
        ] {
            assert!(is_named(listed, wanted), "{listed} is {wanted}");
        }
        for (listed, wanted) in [("qwen3:0.6b", "qwen3"), ("gpt-5-mini", "gpt-5"), ("gpt-5", "gpt-5-mini")] {
            assert!(!is_named(listed, wanted), "{listed} is not {wanted}");
        }
    }
}
