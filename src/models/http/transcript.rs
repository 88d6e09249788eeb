//! Rendered transcript: the conversation as bytes that only grow. Each message is rendered once, appended, and not
//! changed again. Unchanged messages are detected by their allocation; from the first different message on, the rest is
//! rendered again. A wire reads only its own part of each message: the replay state of another author is left out.

use std::sync::{Arc, LazyLock};

use toolgate_core::chat::{Message, Role};

use super::CallIds;
use super::author::Author;
use super::members::Members;
use super::protocol::ProviderProtocol;

/// The user message that asks a model to continue after another model's turn. Many servers reject a conversation that
/// ends with a model's turn, or treat that turn as the start of the reply.
static GO_ON: LazyLock<Arc<Message>> = LazyLock::new(|| Arc::new(Message::user("[continue]")));

/// The rendered part of a conversation.
#[derive(Debug, Default)]
pub(super) struct Transcript {
    members: Members,
    rendered: Vec<RenderedMessage>,
    /// The messages as the wire reads them, one for each rendered message.
    read: Vec<Arc<Message>>,
    ids: CallIds,
}

/// A message and the offset of its bytes.
#[derive(Debug)]
struct RenderedMessage {
    message: Arc<Message>,
    begins: usize,
}

impl Transcript {
    /// Updates the bytes for a wire and a model that replay turns of `author`; returns the number of messages rendered.
    /// A final turn that the author cannot continue gets a request to continue after it: only in these bytes, not in
    /// the conversation.
    pub(super) fn update(
        &mut self,
        wire: &dyn ProviderProtocol,
        author: &Author,
        messages: &[Arc<Message>],
    ) -> Result<usize, serde_json::Error> {
        let unfinished = messages.last().filter(|last| last.role == Role::Assistant && !author.wrote(last));
        let messages = messages.iter().chain(unfinished.map(|_| &*GO_ON));
        let same = |(known, message): &(&RenderedMessage, &Arc<Message>)| Arc::ptr_eq(&known.message, message);
        let unchanged = self.rendered.iter().zip(messages.clone()).take_while(same).count();
        self.forget_from(unchanged);
        for message in messages.skip(unchanged) {
            self.append(wire, author, message)?;
        }
        Ok(self.rendered.len() - unchanged)
    }

    /// The members of the `messages` array, separated by commas.
    pub(super) fn json(&self) -> &[u8] {
        self.members.json()
    }

    /// The messages as the wire reads them.
    pub(super) fn messages(&self) -> &[Arc<Message>] {
        &self.read
    }

    /// The ids of all calls.
    pub(super) fn ids(&self) -> &CallIds {
        &self.ids
    }

    fn forget_from(&mut self, index: usize) {
        self.read.truncate(index);
        for dropped in self.rendered.drain(index..).rev() {
            self.members.truncate(dropped.begins);
            self.ids.remove(&dropped.message);
        }
    }

    fn append(
        &mut self,
        wire: &dyn ProviderProtocol,
        author: &Author,
        message: &Arc<Message>,
    ) -> Result<(), serde_json::Error> {
        let before = self.read.last().map(Arc::clone);
        let read = as_read(message, author);
        self.rendered.push(RenderedMessage { message: Arc::clone(message), begins: self.members.len() });
        self.read.push(Arc::clone(&read));
        self.ids.add(message);
        wire.message(&read, before.as_deref(), &mut self.members)
    }
}

/// The message as `author` may read it.
fn as_read(message: &Arc<Message>, author: &Author) -> Arc<Message> {
    if message.provider_state.is_none() || author.wrote(message) {
        return Arc::clone(message);
    }
    Arc::new(Message { role: message.role, content: message.content.clone(), provider_state: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Settings, openai_chat};

    fn wire() -> impl ProviderProtocol {
        openai_chat::Chat::new(&Settings::new("http://h", "m"), "h").unwrap()
    }

    fn author() -> Author {
        Author { wire: openai_chat::WIRE, model: "m".into(), origin: "h".into() }
    }

    fn fresh(messages: &[Arc<Message>]) -> Vec<u8> {
        let mut transcript = Transcript::default();
        transcript.update(&wire(), &author(), messages).unwrap();
        transcript.json().to_vec()
    }

    #[test]
    fn only_new_messages_are_rendered_with_identical_bytes() {
        let mut messages = vec![Arc::new(Message::user("a"))];
        let mut transcript = Transcript::default();
        assert_eq!(transcript.update(&wire(), &author(), &messages).unwrap(), 1);
        for turn in 0..50 {
            let before = transcript.json().to_vec();
            messages.push(Arc::new(Message::assistant(format!("answer {turn}"))));
            messages.push(Arc::new(Message::user(format!("question {turn}"))));
            assert_eq!(transcript.update(&wire(), &author(), &messages).unwrap(), 2);
            assert!(transcript.json().starts_with(&before));
            assert_eq!(transcript.json(), fresh(&messages));
        }
        assert_eq!(transcript.update(&wire(), &author(), &messages).unwrap(), 0);
    }

    #[test]
    fn only_a_replaced_last_message_is_rendered_again() {
        let mut messages: Vec<_> = ["a", "b", "c"].into_iter().map(|text| Arc::new(Message::user(text))).collect();
        let mut transcript = Transcript::default();
        transcript.update(&wire(), &author(), &messages).unwrap();
        messages[2] = Arc::new(Message::user("another"));
        assert_eq!(transcript.update(&wire(), &author(), &messages).unwrap(), 1);
        assert_eq!(transcript.json(), fresh(&messages));
        messages.pop();
        assert_eq!(transcript.update(&wire(), &author(), &messages).unwrap(), 0);
        assert_eq!(transcript.json(), fresh(&messages));
    }

    #[test]
    fn the_continue_message_goes_away_with_the_next_message() {
        let mut messages = vec![Arc::new(Message::user("a")), Arc::new(Message::assistant("b"))];
        let mut transcript = Transcript::default();
        assert_eq!(transcript.update(&wire(), &author(), &messages).unwrap(), 3);
        assert!(transcript.json().ends_with(br#"{"role":"user","content":"[continue]"}"#));
        assert_eq!(transcript.update(&wire(), &author(), &messages).unwrap(), 0);
        messages.push(Arc::new(Message::user("c")));
        assert_eq!(transcript.update(&wire(), &author(), &messages).unwrap(), 1);
        assert_eq!(transcript.json(), fresh(&messages));
        assert!(!transcript.json().windows(10).any(|bytes| bytes == b"[continue]"));
    }
}
