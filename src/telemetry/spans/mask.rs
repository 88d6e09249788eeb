//! OpenInference masking: the content that its switches hide, attribute by attribute, as in its reference
//! implementation (`TraceConfig.mask` of openinference-instrumentation 0.1.45). Some attributes lose their text, others
//! are left out.
//!
//! The mask is applied last to every attribute. A GenAI name that repeats hidden content is left out, too.
//! [`SpanContent`](super::SpanContent) hides inputs and outputs as a whole, because events and error descriptions must
//! not quote them either. As in the reference, only those two switches hide `input.value` and `output.value`.

use super::attributes::{Attribute, REDACTED, Value};
use super::names;

/// The longest inline image shown, in characters of base64.
pub(super) const IMAGE_CHARS: usize = 32_000;

/// Content to hide besides inputs and outputs as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mask {
    /// Leave out the messages that go to a model.
    pub input_messages: bool,
    /// Leave out the messages that come from a model.
    pub output_messages: bool,
    /// Redact the text of the messages that go to a model.
    pub input_text: bool,
    /// Redact the text of the messages that come from a model.
    pub output_text: bool,
    /// Leave out the images of the messages that go to a model.
    pub input_images: bool,
    /// Leave out the settings of a model call.
    pub invocation_parameters: bool,
    /// Leave out the tools available to a model.
    pub tools: bool,
    /// The longest inline image shown, in characters of base64.
    pub image_chars: usize,
}

impl Default for Mask {
    fn default() -> Self {
        Self {
            input_messages: false,
            output_messages: false,
            input_text: false,
            output_text: false,
            input_images: false,
            invocation_parameters: false,
            tools: false,
            image_chars: IMAGE_CHARS,
        }
    }
}

/// The effect of the mask on an attribute.
enum MaskDecision {
    Kept,
    Redacted,
    LeftOut,
}

impl Mask {
    /// The attributes that remain.
    pub(super) fn apply(&self, attributes: Vec<Attribute>) -> Vec<Attribute> {
        if *self == (Self { image_chars: self.image_chars, ..Self::default() }) {
            return attributes;
        }
        let masked = attributes.into_iter().filter_map(|(name, value)| match self.fate(&name) {
            MaskDecision::Kept => Some((name, value)),
            MaskDecision::Redacted => Some((name, Value::Text(REDACTED.into()))),
            MaskDecision::LeftOut => None,
        });
        masked.collect()
    }

    fn fate(&self, name: &str) -> MaskDecision {
        let leave_out = |hidden: bool| if hidden { MaskDecision::LeftOut } else { MaskDecision::Kept };
        match name {
            names::LLM_PARAMETERS => return leave_out(self.invocation_parameters),
            names::TOOL_DEFINITIONS => return leave_out(self.tools),
            names::INPUT_MESSAGES => return leave_out(self.input_messages || self.input_text || self.input_images),
            names::SYSTEM_INSTRUCTIONS => return leave_out(self.input_messages || self.input_text),
            names::OUTPUT_MESSAGES => return leave_out(self.output_messages || self.output_text),
            _ => {}
        }
        if below(name, names::LLM_TOOLS) {
            return leave_out(self.tools);
        }
        if below(name, names::LLM_INPUT_MESSAGES) {
            return of_message(name, self.input_messages, self.input_text, self.input_images);
        }
        if below(name, names::LLM_OUTPUT_MESSAGES) {
            return of_message(name, self.output_messages, self.output_text, false);
        }
        MaskDecision::Kept
    }
}

fn of_message(name: &str, all: bool, text: bool, images: bool) -> MaskDecision {
    if all || (images && name.contains(names::CONTENT_IMAGE)) {
        return MaskDecision::LeftOut;
    }
    let is_text = name.ends_with(names::MESSAGE_CONTENT) || name.ends_with(names::CONTENT_TEXT);
    if text && is_text { MaskDecision::Redacted } else { MaskDecision::Kept }
}

fn below(name: &str, list: &str) -> bool {
    name.strip_prefix(list).is_some_and(|rest| rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERYTHING: [&str; 14] = [
        "llm.invocation_parameters",
        "llm.tools.0.tool.json_schema",
        "llm.input_messages.0.message.role",
        "llm.input_messages.0.message.content",
        "llm.input_messages.1.message.contents.0.message_content.text",
        "llm.input_messages.1.message.contents.1.message_content.image.image.url",
        "llm.input_messages.1.message.tool_calls.0.tool_call.function.name",
        "llm.output_messages.0.message.role",
        "llm.output_messages.0.message.content",
        "llm.output_messages.0.message.contents.0.message_content.text",
        "gen_ai.input.messages",
        "gen_ai.output.messages",
        "input.value",
        "output.value",
    ];

    /// The remaining attributes, with a star at the redacted ones.
    fn left(mask: Mask) -> Vec<String> {
        let attributes = EVERYTHING.iter().map(|name| ((*name).into(), Value::Text("said".into()))).collect();
        let redacted = Value::Text(REDACTED.into());
        let starred = |(name, value): Attribute| if value == redacted { format!("{name}*") } else { name.to_string() };
        mask.apply(attributes).into_iter().map(starred).collect()
    }

    /// The expected result is the one of the reference implementation; it does not cover the GenAI names.
    #[test]
    fn each_switch_hides_what_it_hides_in_the_reference_implementation() {
        let none = Mask::default();
        let cases: [(Mask, &[&str], &[&str]); 7] = [
            (Mask { invocation_parameters: true, ..none }, &["llm.invocation_parameters"], &[]),
            (Mask { tools: true, ..none }, &["llm.tools."], &[]),
            (Mask { input_messages: true, ..none }, &["llm.input_messages.", "gen_ai.input."], &[]),
            (Mask { output_messages: true, ..none }, &["llm.output_messages.", "gen_ai.output."], &[]),
            (
                Mask { input_text: true, ..none },
                &["gen_ai.input."],
                &[
                    "llm.input_messages.0.message.content",
                    "llm.input_messages.1.message.contents.0.message_content.text",
                ],
            ),
            (
                Mask { output_text: true, ..none },
                &["gen_ai.output."],
                &[
                    "llm.output_messages.0.message.content",
                    "llm.output_messages.0.message.contents.0.message_content.text",
                ],
            ),
            (Mask { input_images: true, ..none }, &["llm.input_messages.1.message.contents.1", "gen_ai.input."], &[]),
        ];
        for (mask, left_out, redacted) in cases {
            let kept = EVERYTHING.iter().filter(|name| !left_out.iter().any(|prefix| name.starts_with(prefix)));
            let star = |name: &&str| if redacted.contains(name) { format!("{name}*") } else { (*name).to_owned() };
            assert_eq!(left(mask), kept.map(star).collect::<Vec<_>>(), "{mask:?}");
        }
        assert_eq!(left(none), EVERYTHING);
    }
}
