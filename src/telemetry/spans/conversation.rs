//! Rendered conversation of a run. Each model call shows the whole conversation again. The messages rendered for the
//! previous call are kept and shared, so that a turn costs only its new messages.

use std::collections::HashMap;
use std::sync::Arc;

use toolgate_core::chat::{Message, Part};
use toolgate_core::id::CallId;

use super::attributes::{Attributes, CleanAttributes, json_text};
use super::messages::TraceMessage;
use super::model_input::Chat;
use super::{Redaction, SpanContent, names};

/// The messages rendered so far, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Conversation {
    /// The secrets removed from all messages.
    redaction: Redaction,
    rendered: Vec<RenderedMessage>,
    has_system: bool,
    /// The number of messages that readers see.
    length: usize,
    tools: HashMap<CallId, String>,
}

/// One of our messages. A reader may see it as several.
#[derive(Clone, Debug)]
struct RenderedMessage {
    /// `None` for the instructions.
    message: Option<Arc<Message>>,
    attributes: CleanAttributes,
    /// The chat form: one for each message that a reader sees.
    chats: Box<[Chat]>,
    /// The form of the GenAI conventions, if enabled.
    parts: Box<[String]>,
}

impl Conversation {
    /// An empty conversation that removes secrets from all messages.
    pub(super) fn redacted(redaction: Redaction) -> Self {
        Self { redaction, ..Self::default() }
    }

    /// Updates to the current messages. A message in the same allocation as before is not rendered again.
    pub(super) fn update(&mut self, system: &str, messages: &[Arc<Message>], content: SpanContent) {
        if self.rendered.is_empty() && !system.is_empty() {
            self.has_system = true;
            self.push(None, &[TraceMessage::system(system)], content);
        }
        let spoken = usize::from(self.has_system);
        let is_same = |(rendered, message): &(&RenderedMessage, &Arc<Message>)| {
            rendered.message.as_ref().is_some_and(|known| Arc::ptr_eq(known, message))
        };
        let same = self.rendered.iter().skip(spoken).zip(messages).take_while(is_same).count();
        for gone in self.rendered.drain(spoken + same..) {
            self.length -= gone.chats.len();
        }
        for message in messages.iter().skip(same) {
            self.tools.extend(message.content.iter().filter_map(called));
            let tool_of = |call: &CallId| self.tools.get(call).cloned();
            let said = TraceMessage::from_message(message, &tool_of, content.mask.image_chars);
            self.push(Some(message.clone()), &said, content);
        }
    }

    fn push(&mut self, message: Option<Arc<Message>>, said: &[TraceMessage], content: SpanContent) {
        let mut attributes = Attributes::within(content.value_bytes);
        for (index, said) in said.iter().enumerate() {
            said.attributes(&format!("{}.{}", names::LLM_INPUT_MESSAGES, self.length + index), &mut attributes);
        }
        let attributes = attributes.into_clean(|value| self.redaction.value(value));
        let clean = |json| self.redaction.text(json);
        let parts = said.iter().filter(|_| content.gen_ai_inputs());
        let parts = parts.map(|said| clean(json_text(&said.parts()))).collect();
        let chats = said.iter().map(|said| Chat::new(clean(said.chat()), content.value_bytes)).collect();
        self.length += said.len();
        self.rendered.push(RenderedMessage { message, attributes, chats, parts });
    }

    /// All messages under their OpenInference names.
    pub(super) fn attributes(&self, to: &mut Attributes) {
        to.extend_clean(self.rendered.iter().map(|rendered| &rendered.attributes));
    }

    /// All messages as chats.
    pub(super) fn chats(&self) -> Vec<&Chat> {
        self.rendered.iter().flat_map(|rendered| &rendered.chats).collect()
    }

    /// A list of all messages except the instructions, in the form of the GenAI conventions.
    pub(super) fn parts(&self) -> String {
        let spoken = self.rendered.iter().skip(usize::from(self.has_system));
        let parts: Vec<&str> = spoken.flat_map(|rendered| &rendered.parts).map(String::as_str).collect();
        format!("[{}]", parts.join(","))
    }
}

fn called(part: &Part) -> Option<(CallId, String)> {
    part.tool_use().map(|(id, name, _)| (id.clone(), name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spans::Attribute;
    use crate::spans::model_input::{ModelInput, ToolSchemas};

    fn of(messages: &[Arc<Message>]) -> Conversation {
        let mut conversation = Conversation::default();
        conversation.update("Be brief.", messages, SpanContent::default());
        conversation
    }

    fn told(conversation: &Conversation) -> (Vec<Attribute>, String) {
        let mut attributes = Attributes::within(1024);
        conversation.attributes(&mut attributes);
        let tools = ToolSchemas { whole: "[]", short: "[]" };
        (attributes.into_parts().1, ModelInput::within(1024, &conversation.chats(), tools).json)
    }

    #[test]
    fn a_changed_conversation_renders_like_a_new_one() {
        let say = |text: &str| Arc::new(Message::user(text));
        let (first, second, other) = (say("one"), Arc::new(Message::assistant("two")), say("three"));
        let mut growing = of(std::slice::from_ref(&first));
        for messages in [
            vec![first.clone(), second.clone()],
            vec![first.clone(), second.clone(), other.clone()],
            vec![first.clone(), Arc::new(Message::assistant("two, or"))],
            vec![other, second, first],
            vec![],
        ] {
            growing.update("Be brief.", &messages, SpanContent::default());
            assert_eq!(told(&growing), told(&of(&messages)));
        }
    }

    #[test]
    fn rendered_messages_are_shared_and_not_rendered_again() {
        let mut messages = vec![Arc::new(Message::user("one"))];
        let mut conversation = of(&messages);
        let (before, _) = told(&conversation);
        messages.push(Arc::new(Message::assistant("two")));
        conversation.update("Be brief.", &messages, SpanContent::default());
        let (after, _) = told(&conversation);
        assert!(after.len() > before.len());
        assert!(before.iter().zip(&after).all(|(before, after)| before.0.as_ptr() == after.0.as_ptr()));
    }
}
