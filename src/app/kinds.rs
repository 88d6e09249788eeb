//! Kinds of models, for questions that do not depend on which model of a kind it is.

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

/// A kind as it is written in the configuration.
pub fn kind_of(api: Api) -> &'static str {
    KINDS.iter().find(|(known, _)| *known == api).map_or("unknown", |(_, kind)| kind)
}

/// A model of that kind, to be asked how tools fit and nothing else: it leads nowhere. `None` for a kind that there is
/// not; a sentence for one that cannot be used.
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
