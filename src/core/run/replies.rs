//! Replies of models, as far as the result of a run names them.

use crate::id::ModelName;

/// The maximum length of a summary, in characters.
const SUMMARY_CHARS: usize = 500;

/// The replies of models, as far as a result names them.
#[derive(Clone, Debug, Default)]
pub(super) struct Replies {
    pub(super) models: Vec<ModelName>,
    pub(super) last_text: Option<String>,
    /// The attempt whose failure ended the run.
    pub(super) failed: Option<(ModelName, u32)>,
}

impl Replies {
    pub(super) fn note(&mut self, model: &ModelName, text: &str) {
        if !self.models.contains(model) {
            self.models.push(model.clone());
        }
        self.last_text = shortened(text).or(self.last_text.take());
    }
}

/// The beginning of a text, with a mark for the rest; `None` for a blank text.
pub(super) fn shortened(text: &str) -> Option<String> {
    let text = text.trim();
    match text.char_indices().nth(SUMMARY_CHARS) {
        _ if text.is_empty() => None,
        None => Some(text.to_owned()),
        Some(_) => Some(text.chars().take(SUMMARY_CHARS - 1).chain(['…']).collect()),
    }
}
