//! Kinds of models, for questions that depend on the API and not on the model.

use std::sync::Arc;

use super::models::adapter;
use crate::config::Api;
use crate::models::Settings;
use crate::ports::Model;

const KINDS: [(Api, &str); 5] = [
    (Api::OpenAiChat, "openai_chat"),
    (Api::OpenAiResponses, "openai_responses"),
    (Api::OpenAiImages, "openai_images"),
    (Api::Anthropic, "anthropic"),
    (Api::Gemini, "gemini"),
];

/// The name of a kind in the configuration.
pub fn kind_of(api: Api) -> &'static str {
    KINDS.iter().find(|(known, _)| *known == api).map_or("unknown", |(_, kind)| kind)
}

/// A model of this kind that only answers how it encodes tools; its address is a placeholder. `None` for an unknown
/// kind; an error message for a kind that cannot be used.
pub fn model_of_kind(kind: &str) -> Option<Result<Arc<dyn Model>, String>> {
    let (api, _) = KINDS.iter().find(|(_, known)| *known == kind)?;
    let opened = adapter(*api)(&Settings::new("http://localhost", "any"));
    Some(opened.map(|model| Arc::new(model) as Arc<dyn Model>).map_err(|error| error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_known_by_its_word() {
        for (api, kind) in KINDS {
            assert_eq!(kind_of(api), kind);
            assert!(model_of_kind(kind).is_some(), "{kind}");
        }
        assert!(model_of_kind("scripted").is_none());
    }
}
