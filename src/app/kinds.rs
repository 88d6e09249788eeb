//! Kinds of models, for questions that do not depend on which model of a kind it is.

use std::sync::Arc;

use crate::models::openai_chat::{OpenAiChat, Settings};
use crate::ports::Model;

/// A model of that kind, to be asked how tools fit and nothing else: it leads nowhere. `None` for a kind that there is not.
pub fn model_of_kind(kind: &str) -> Option<Arc<dyn Model>> {
    match kind {
        "openai_chat" => Some(Arc::new(OpenAiChat::new(Settings::new("http://localhost", "any")).ok()?)),
        _ => None,
    }
}
