//! Provider reasoning: the ids, signatures and encrypted form of a model's reasoning, as far as OpenInference has names
//! for them. They occur only in the provider's own form of a turn.

use std::collections::VecDeque;

use serde_json::Value as Json;
use toolgate_core::chat::ProviderState;

use super::attributes::Attributes;
use super::{SharedText, names};

/// A piece of reasoning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ReasoningPart {
    pub(super) text: String,
    /// The provider's id.
    id: Option<String>,
    /// The signature by which the provider recognizes it.
    signature: Option<String>,
    /// The encrypted form, which only the provider can read.
    encrypted: Option<String>,
    /// The opaque data that a provider sends instead of a hidden text.
    data: Option<String>,
}

/// The reasoning of one turn in its provider's form, in order.
#[derive(Debug, Default)]
pub(super) struct SealedReasoning {
    /// Each piece, and whether it has text.
    thoughts: VecDeque<(ReasoningPart, bool)>,
    /// The signatures of its calls, in the order of the calls.
    pub(super) of_calls: Vec<Option<String>>,
}

impl ReasoningPart {
    pub(super) fn text_only(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }

    /// All attributes except its kind, below `prefix`.
    pub(super) fn attributes(&self, prefix: &str, to: &mut Attributes) {
        let text = Some(&self.text).filter(|text| !text.is_empty());
        for (name, value) in [
            (names::CONTENT_TEXT, text),
            (names::CONTENT_ID, self.id.as_ref()),
            (names::CONTENT_SIGNATURE, self.signature.as_ref()),
            (names::CONTENT_ENCRYPTED, self.encrypted.as_ref()),
            (names::CONTENT_DATA, self.data.as_ref()),
        ] {
            if let Some(value) = value {
                to.text(SharedText::name(prefix, name), value);
            }
        }
    }
}

impl SealedReasoning {
    /// Reads the provider formats that sign reasoning; empty for any other.
    pub(super) fn from_state(state: Option<&ProviderState>) -> Self {
        let mut sealed = Self::default();
        for item in state.into_iter().flat_map(|state| &state.items) {
            let text = |name: &str| item.get(name).and_then(Json::as_str).filter(|text| !text.is_empty());
            let owned = |name: &str| text(name).map(str::to_owned);
            let listed = |name: &str| item.get(name).and_then(Json::as_array).is_some_and(|list| !list.is_empty());
            match text("type") {
                Some("thinking") => {
                    let thought = ReasoningPart { signature: owned("signature"), ..ReasoningPart::default() };
                    sealed.thoughts.push_back((thought, text("thinking").is_some()));
                }
                Some("redacted_thinking") => {
                    sealed
                        .thoughts
                        .push_back((ReasoningPart { data: owned("data"), ..ReasoningPart::default() }, false));
                }
                Some("reasoning") => {
                    let encrypted = owned("encrypted_content");
                    let thought = ReasoningPart { id: owned("id"), encrypted, ..ReasoningPart::default() };
                    sealed.thoughts.push_back((thought, listed("summary") || listed("content")));
                }
                Some("tool_use" | "function_call") => sealed.of_calls.push(None),
                None if item.get("functionCall").is_some() => sealed.of_calls.push(owned("thoughtSignature")),
                Some(_) | None => {}
            }
        }
        sealed
    }

    /// The next piece, if it has no text.
    pub(super) fn wordless(&mut self) -> Option<ReasoningPart> {
        match self.thoughts.front() {
            Some((_, false)) => self.thoughts.pop_front().map(|(thought, _)| thought),
            Some((_, true)) | None => None,
        }
    }

    /// The next piece, with its text.
    pub(super) fn with_text(&mut self, text: &str) -> ReasoningPart {
        let (sealed, _) = self.thoughts.pop_front().unwrap_or_default();
        ReasoningPart { text: text.to_owned(), ..sealed }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reasoning_without_text_stays_separate() {
        let items = vec![
            json!({"type": "redacted_thinking", "data": "hidden"}),
            json!({"type": "thinking", "thinking": "Let me see.", "signature": "sig"}),
            json!({"type": "tool_use", "id": "a"}),
        ];
        let state = ProviderState { wire: "anthropic".into(), model: "m".into(), origin: None, items };
        let mut sealed = SealedReasoning::from_state(Some(&state));
        let hidden = ReasoningPart { data: Some("hidden".into()), ..ReasoningPart::default() };
        assert_eq!((sealed.wordless(), sealed.wordless()), (Some(hidden), None));
        let signed = ReasoningPart { signature: Some("sig".into()), ..ReasoningPart::text_only("Let me see.") };
        assert_eq!(sealed.with_text("Let me see."), signed);
        assert_eq!(sealed.with_text("More."), ReasoningPart::text_only("More."), "no further metadata is known");
    }

    #[test]
    fn encrypted_reasoning_keeps_its_id_and_a_signed_call_its_signature() {
        let items = vec![
            json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "x", "summary": []}),
            json!({"functionCall": {"name": "f"}, "thoughtSignature": "s"}),
        ];
        let state = ProviderState { wire: "any".into(), model: "m".into(), origin: None, items };
        let mut sealed = SealedReasoning::from_state(Some(&state));
        let thought =
            ReasoningPart { id: Some("rs_1".into()), encrypted: Some("x".into()), ..ReasoningPart::default() };
        assert_eq!(sealed.wordless(), Some(thought));
        assert_eq!(sealed.of_calls, [Some("s".to_owned())]);
    }
}
