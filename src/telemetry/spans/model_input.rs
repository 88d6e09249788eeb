//! Model input: messages and tools as one JSON object, the value by which readers show a conversation. It always parses:
//! what is too long for the limit is replaced inside and never cut as text.
//!
//! If the whole does not fit, the tools become a handle, if they take half of the limit: the SHA-256 of the text as
//! `media://sha256-…`, with its size. Then each long text of a message becomes one. Then the first messages are left out, as
//! many as necessary, and a member `omitted` counts them.

use serde_json::{Value as Json, json};
use toolgate_core::blob::BlobHandle;

/// The part of the limit beyond which a text is replaced.
const LONG_TEXT: usize = 16;
/// The bytes of the object without messages and tools.
const FRAME: usize = 128;

/// The input of a model, for its span.
#[derive(Debug)]
pub(super) struct ModelInput {
    pub(super) json: String,
    /// Whether nothing was replaced.
    pub(super) is_whole: bool,
}

/// The schemas of the tools as a JSON array, and what replaces it in inputs that are too long.
#[derive(Clone, Copy, Debug)]
pub(super) struct ToolSchemas<'a> {
    pub(super) whole: &'a str,
    pub(super) short: &'a str,
}

/// A message as JSON of the chat form.
#[derive(Clone, Debug)]
pub(super) struct Chat {
    whole: Box<str>,
    /// The same with handles for long texts, if it has some.
    short: Option<Box<str>>,
}

impl Chat {
    /// A message, for inputs within this limit.
    pub(super) fn new(whole: String, limit: usize) -> Self {
        let longest = limit / LONG_TEXT;
        let short = (whole.len() > longest).then(|| with_handles(&whole, longest)).flatten();
        Self { whole: whole.into(), short: short.map(Into::into) }
    }

    fn whole(&self) -> &str {
        &self.whole
    }

    fn short(&self) -> &str {
        self.short.as_ref().unwrap_or(&self.whole)
    }
}

impl ModelInput {
    /// The input with these messages and tools.
    pub(super) fn within(limit: usize, chats: &[&Chat], tools: ToolSchemas<'_>) -> Self {
        let messages: usize = chats.iter().map(|chat| chat.whole.len() + 1).sum();
        for (schemas, is_whole) in [(tools.whole, true), (tools.short, false)] {
            if messages + schemas.len() + FRAME <= limit {
                return Self { json: object(chats, Chat::whole, schemas, ""), is_whole };
            }
        }
        let mut room = limit.saturating_sub(FRAME + tools.short.len());
        let fits = |chat: &&&Chat| {
            let left = room.checked_sub(chat.short().len() + 1);
            room = left.unwrap_or_default();
            left.is_some()
        };
        let omitted = chats.len() - chats.iter().rev().take_while(fits).count();
        let (omitted, kept) = chats.split_at(omitted);
        let bytes: usize = omitted.iter().map(|chat| chat.whole.len()).sum();
        let omitted = json!({ "messages": omitted.len(), "bytes": bytes });
        let omitted = if bytes > 0 { format!(",\"omitted\":{omitted}") } else { String::new() };
        Self { json: object(kept, Chat::short, tools.short, &omitted), is_whole: false }
    }
}

fn object(chats: &[&Chat], form: impl Fn(&Chat) -> &str, tools: &str, rest: &str) -> String {
    let bytes: usize = chats.iter().map(|chat| form(chat).len() + 1).sum();
    let mut json = String::with_capacity(bytes + tools.len() + rest.len() + FRAME);
    json.push_str("{\"messages\":[");
    for (index, chat) in chats.iter().enumerate() {
        json.push_str(if index > 0 { "," } else { "" });
        json.push_str(form(chat));
    }
    for piece in ["],\"tools\":", tools, rest, "}"] {
        json.push_str(piece);
    }
    json
}

/// JSON with handles for its long texts; `None` if it has none.
fn with_handles(json: &str, longest: usize) -> Option<String> {
    let mut value = serde_json::from_str(json).ok()?;
    replace(&mut value, longest).then(|| value.to_string())
}

fn replace(value: &mut Json, longest: usize) -> bool {
    match value {
        Json::String(text) if text.len() > longest => {
            *value = text_handle(text);
            true
        }
        Json::Array(items) => items.iter_mut().fold(false, |replaced, item| replaced | replace(item, longest)),
        Json::Object(members) => members.values_mut().fold(false, |replaced, item| replaced | replace(item, longest)),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => false,
    }
}

/// The handle of a text, and its size.
pub(super) fn text_handle(text: &str) -> Json {
    format!("{} ({} bytes)", BlobHandle::for_bytes(text.as_bytes()), text.len()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 1024;

    fn input_of(contents: &[String], tools: [&str; 2]) -> (ModelInput, Json) {
        let message = |content| json!({ "role": "user", "content": content }).to_string();
        let chats: Vec<Chat> = contents.iter().map(|content| Chat::new(message(content), LIMIT)).collect();
        let [whole, short] = tools;
        let input = ModelInput::within(LIMIT, &chats.iter().collect::<Vec<_>>(), ToolSchemas { whole, short });
        let read = serde_json::from_str(&input.json).expect("JSON");
        (input, read)
    }

    #[test]
    fn an_input_within_the_limit_is_whole() {
        let (input, read) = input_of(&["one".to_owned(), "two".to_owned()], ["[{}]", "\"\""]);
        let said =
            [("user", "one"), ("user", "two")].map(|(role, content)| json!({ "role": role, "content": content }));
        assert_eq!((read, input.is_whole), (json!({ "messages": said, "tools": [{}] }), true));
    }

    #[test]
    fn a_long_text_becomes_a_handle_with_its_size() {
        let long = "\"ä".repeat(LIMIT);
        let (input, read) = input_of(&["one".to_owned(), long.clone(), "two".to_owned()], ["[]", "[]"]);
        let contents: Vec<&Json> =
            read["messages"].as_array().expect("a list").iter().map(|said| &said["content"]).collect();
        let handle = format!("{} ({} bytes)", BlobHandle::for_bytes(long.as_bytes()), long.len());
        assert_eq!(contents, [&json!("one"), &json!(handle), &json!("two")]);
        assert!(handle.starts_with("media://sha256-") && !input.is_whole && read.get("omitted").is_none(), "{handle}");
    }

    #[test]
    fn the_first_messages_are_left_out_and_counted() {
        let many: Vec<String> = (0..100).map(|number| format!("message {number}")).collect();
        let schemas = format!("[{}]", "{},".repeat(LIMIT) + "{}");
        let (input, read) = input_of(&many, [&schemas, "\"media://\""]);
        let shown = read["messages"].as_array().expect("a list");
        assert!(input.json.len() <= LIMIT && shown.len() > 10, "{}", input.json);
        assert_eq!(shown.last().map(|said| &said["content"]), Some(&json!("message 99")));
        assert_eq!(read["omitted"]["messages"], 100 - shown.len());
        assert_eq!(read["tools"], "media://");

        let (few, read) = input_of(&many[..2], [&schemas, "\"media://\""]);
        assert_eq!((&read["messages"][0]["content"], &read["tools"]), (&json!("message 0"), &json!("media://")));
        assert!(!few.is_whole && read.get("omitted").is_none(), "{}", few.json);
    }
}
