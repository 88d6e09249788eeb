//! What messages hold, as both OpenAI formats carry it: text, media where the server takes them, and calls. What a
//! server does not take degrades to a note in brackets, never to silence.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::http::{Declaration, MediaKind, Settings, keep_first};
use crate::core::chat::{Media, Part};
use crate::core::id::CallId;
use crate::core::json::hex;
use crate::core::tool::{Arguments, ToolName};

const MAX_NAME_CHARS: usize = 64;
/// OpenAI takes no longer ids; those of other models may be.
const MAX_ID_BYTES: usize = 40;
const HASH_BYTES: usize = 4;

/// OpenAI refuses a request with more tools.
const MOST_TOOLS: usize = 128;

/// What is known of the server that reads.
#[derive(Clone, Debug)]
pub(in crate::models) struct Reader {
    /// The media it takes beside what a user says.
    pub(in crate::models) said: BTreeSet<MediaKind>,
    /// The media it takes as results of calls.
    pub(in crate::models) results: BTreeSet<MediaKind>,
    is_openai: bool,
}

/// A part as it is sent.
#[derive(Debug, PartialEq)]
pub(in crate::models) enum Shown<'a> {
    /// Text, or a note of what cannot be shown.
    Text(Cow<'a, str>),
    /// An image: its address, or a data URL.
    Image(Cow<'a, str>),
    /// A document: its name and a data URL.
    File { name: Cow<'a, str>, data: String },
    /// A recording: its bytes in base64, and `wav` or `mp3`.
    Audio { data: &'a str, format: &'static str },
}

impl Reader {
    /// The reader at this provider, which takes these media unless the settings say otherwise.
    pub(in crate::models) fn new(
        settings: &Settings,
        provider: &str,
        said: &[MediaKind],
        results: &[MediaKind],
    ) -> Self {
        let takes = |by_default: &[MediaKind]| match &settings.media {
            Some(media) => media.clone(),
            None => by_default.iter().copied().collect(),
        };
        Self { said: takes(said), results: takes(results), is_openai: matches!(provider, "openai" | "azure") }
    }

    /// Leaves out what is more than the server takes.
    pub(in crate::models) fn bound(&self, declarations: &mut Vec<Declaration>) {
        if self.is_openai {
            keep_first(MOST_TOOLS, declarations);
        }
    }

    /// The id of a call, as it is sent for the call and for its result.
    pub(in crate::models) fn id<'a>(&self, id: &'a CallId) -> Cow<'a, str> {
        let id = id.as_str();
        if !self.is_openai || id.len() <= MAX_ID_BYTES {
            return Cow::Borrowed(id);
        }
        let hash = Sha256::digest(id);
        let stem = id.get(..MAX_ID_BYTES - 2 * HASH_BYTES - 1).unwrap_or("call");
        Cow::Owned(format!("{stem}_{}", hex(hash.get(..HASH_BYTES).unwrap_or(&hash))))
    }

    /// Arguments as text. What the model wrote instead of JSON goes back to OpenAI as it is; other servers parse what
    /// is sent, and would refuse the conversation from then on.
    pub(in crate::models) fn arguments<'a>(&self, input: &'a Arguments) -> Result<Cow<'a, str>, serde_json::Error> {
        match input {
            Arguments::Object(object) => serde_json::to_string(object).map(Cow::Owned),
            Arguments::Malformed(text) if self.is_openai => Ok(Cow::Borrowed(text)),
            Arguments::Malformed(text) => Ok(Cow::Owned(json!({"malformed_arguments": text}).to_string())),
        }
    }
}

/// The part as a server reads it that takes these media.
pub(in crate::models) fn shown<'a>(part: &'a Part, media: &BTreeSet<MediaKind>) -> Shown<'a> {
    let carried = match part {
        Part::Image(image) => image_url(image).filter(|_| media.contains(&MediaKind::Images)).map(Shown::Image),
        Part::Audio(audio) => audio.data.as_deref().and_then(|data| embedded(part, &audio.media_type, data, media)),
        Part::Resource { media_type: Some(media_type), data: Some(data), .. } => {
            embedded(part, media_type, data, media)
        }
        Part::Text { .. }
        | Part::Resource { .. }
        | Part::Reasoning { .. }
        | Part::ToolUse { .. }
        | Part::ToolResult { .. } => None,
    };
    carried.unwrap_or_else(|| Shown::Text(as_text(part)))
}

/// Bytes of this type, if they are media that the server takes.
fn embedded<'a>(part: &'a Part, media_type: &str, data: &'a str, media: &BTreeSet<MediaKind>) -> Option<Shown<'a>> {
    let url = || format!("data:{media_type};base64,{data}");
    let (kind, carried) = match media_type.split_once('/')? {
        ("image", _) => (MediaKind::Images, Shown::Image(Cow::Owned(url()))),
        ("audio", "wav" | "x-wav" | "wave" | "vnd.wave") => (MediaKind::Audio, Shown::Audio { data, format: "wav" }),
        ("audio", "mpeg" | "mp3") => (MediaKind::Audio, Shown::Audio { data, format: "mp3" }),
        ("application", "pdf") => (MediaKind::Files, Shown::File { name: file_name(part), data: url() }),
        _ => return None,
    };
    media.contains(&kind).then_some(carried)
}

fn file_name(part: &Part) -> Cow<'_, str> {
    let Part::Resource { uri, name, .. } = part else { return Cow::Borrowed("document.pdf") };
    let last = uri.rsplit('/').next().unwrap_or(uri);
    match name.as_deref().unwrap_or(last) {
        "" => Cow::Borrowed("document.pdf"),
        name => Cow::Borrowed(name),
    }
}

/// Any part as text, if only as a note that it is there.
pub(in crate::models) fn as_text(part: &Part) -> Cow<'_, str> {
    match part {
        Part::Text { text } | Part::Reasoning { text } => Cow::Borrowed(text),
        Part::Image(media) => Cow::Owned(media_note("image", media)),
        Part::Audio(media) => Cow::Owned(media_note("audio", media)),
        Part::Resource { uri, text: Some(text), .. } => Cow::Owned(format!("[resource {uri}]\n{text}")),
        Part::Resource { uri, media_type, .. } => {
            let media_type = media_type.as_deref().unwrap_or("unknown type");
            Cow::Owned(format!("[resource {uri} ({media_type}), its content is not shown here]"))
        }
        Part::ToolUse { name, .. } => Cow::Owned(format!("[call of {name}]")),
        Part::ToolResult { content, is_error, .. } => {
            marked(joined(content.iter().map(as_text).collect(), "\n"), *is_error)
        }
    }
}

/// The text of a result. There is no error flag, so an error is said in words.
pub(in crate::models) fn marked(text: Cow<'_, str>, is_error: bool) -> Cow<'_, str> {
    let says_so = text.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("error"));
    if is_error && !says_so { Cow::Owned(format!("Error: {text}")) } else { text }
}

/// Texts as one; a single one is not copied.
pub(in crate::models) fn joined<'a>(mut texts: Vec<Cow<'a, str>>, separator: &str) -> Cow<'a, str> {
    match (texts.pop(), texts.is_empty()) {
        (None, _) => Cow::Borrowed(""),
        (Some(only), true) => only,
        (Some(last), false) => {
            texts.push(last);
            Cow::Owned(texts.join(separator))
        }
    }
}

/// The name as the model wrote it, unless servers would refuse the whole conversation for it.
pub(in crate::models) fn accepted_name(name: &str) -> Cow<'_, str> {
    if ToolName::parse(name).is_some() {
        return Cow::Borrowed(name);
    }
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    let name: String = name.chars().map(safe).take(MAX_NAME_CHARS).collect();
    Cow::Owned(if name.is_empty() { "unnamed".into() } else { name })
}

/// The output schema as a format that an answer has to have, if it can be said: what is no object cannot. It binds only
/// where it keeps to what strict formats may say; our own validation holds in any case.
pub(in crate::models) fn answer_format(schema: &Value) -> Option<Value> {
    let mut format = super::openai_schema::project(schema).ok()?;
    let strict = super::openai_schema::is_strict(&mut format, true);
    Some(json!({"name": "answer", "schema": format.schema, "strict": strict}))
}

fn media_note(kind: &str, media: &Media) -> String {
    let Media { media_type, url, .. } = media;
    match url {
        Some(url) => format!("[{kind} {media_type} at {url}, not shown here]"),
        None => format!("[{kind} {media_type}, not shown here]"),
    }
}

fn image_url(image: &Media) -> Option<Cow<'_, str>> {
    match (&image.data, &image.url) {
        (Some(data), _) => Some(Cow::Owned(format!("data:{};base64,{data}", image.media_type))),
        // A handle of our own store means nothing to a server.
        (None, Some(url)) if url.starts_with("https://") || url.starts_with("http://") => Some(Cow::Borrowed(url)),
        (None, _) => None,
    }
}
