//! Message content shared by both OpenAI formats: text, media that the server supports, and calls. Unsupported content
//! becomes a note in brackets and is never dropped silently.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use toolgate_core::chat::{Media, Part};
use toolgate_core::id::CallId;
use toolgate_core::json::hex;
use toolgate_core::tool::{Arguments, ToolName};

use super::attachment::{self, ImageFormat, Limits, Unfit, is_image, is_pdf};
use super::http::{MediaKind, Settings};

const MAX_NAME_CHARS: usize = 64;
/// The longest call id that OpenAI accepts; ids of other models may be longer.
const MAX_ID_BYTES: usize = 40;
const HASH_BYTES: usize = 4;
/// OpenAI accepts images of 20 MB, and 50 MB in a request.
const LIMITS: Limits = Limits {
    images: &[ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Gif, ImageFormat::WebP],
    max_image: (20 << 20) / 3 * 4,
    max_file: 50 << 20,
};

/// The known capabilities of a server.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    /// The media it accepts in user messages.
    pub(crate) said: BTreeSet<MediaKind>,
    /// The media it accepts in results of calls.
    pub(crate) results: BTreeSet<MediaKind>,
    pub(crate) most_tools: Option<usize>,
    is_openai: bool,
}

/// A part in the form in which it is sent.
#[derive(Debug, PartialEq)]
pub(crate) enum ContentForm<'a> {
    /// Text, or a note about content that is not sent.
    Text(Cow<'a, str>),
    /// An image: its URL, or a data URL.
    Image(Cow<'a, str>),
    /// A document: its name and a data URL.
    File { name: Cow<'a, str>, data: String },
    /// A recording: its base64 data, and `wav` or `mp3`.
    Audio { data: &'a str, format: &'static str },
}

impl Reader {
    /// The server of this provider, which accepts these media unless the settings say otherwise.
    pub(crate) fn new(settings: &Settings, provider: &str, said: &[MediaKind], results: &[MediaKind]) -> Self {
        let takes = |by_default: &[MediaKind]| match &settings.media {
            Some(media) => media.clone(),
            None => by_default.iter().copied().collect(),
        };
        let is_openai = matches!(provider, "openai" | "azure");
        Self { said: takes(said), results: takes(results), most_tools: most_tools(provider), is_openai }
    }

    /// The id of a call, for the call and for its result.
    pub(crate) fn id<'a>(&self, id: &'a CallId) -> Cow<'a, str> {
        let id = id.as_str();
        if !self.is_openai || id.len() <= MAX_ID_BYTES {
            return Cow::Borrowed(id);
        }
        let hash = Sha256::digest(id);
        let stem = id.get(..MAX_ID_BYTES - 2 * HASH_BYTES - 1).unwrap_or("call");
        Cow::Owned(format!("{stem}_{}", hex(hash.get(..HASH_BYTES).unwrap_or(&hash))))
    }

    /// Arguments as text. OpenAI gets malformed JSON of the model unchanged; other servers parse the arguments, and
    /// would reject the conversation from then on.
    pub(crate) fn arguments<'a>(&self, input: &'a Arguments) -> Result<Cow<'a, str>, serde_json::Error> {
        match input {
            Arguments::Object(object) => serde_json::to_string(object).map(Cow::Owned),
            Arguments::Malformed(text) if self.is_openai => Ok(Cow::Borrowed(text)),
            Arguments::Malformed(text) => Ok(Cow::Owned(json!({"malformed_arguments": text}).to_string())),
        }
    }
}

/// The part in the form for a server that accepts these media.
pub(crate) fn content_form<'a>(part: &'a Part, media: &BTreeSet<MediaKind>) -> ContentForm<'a> {
    match carried(part, media) {
        Ok(Some(carried)) => carried,
        Ok(None) => ContentForm::Text(as_text(part)),
        Err(why) => ContentForm::Text(part_text(part, Some(why))),
    }
}

fn carried<'a>(part: &'a Part, media: &BTreeSet<MediaKind>) -> Result<Option<ContentForm<'a>>, Unfit> {
    Ok(match part {
        Part::Image(image) if media.contains(&MediaKind::Images) => image_url(image)?.map(ContentForm::Image),
        Part::Audio(Media { media_type, data: Some(data), .. })
        | Part::Resource { media_type: Some(media_type), data: Some(data), .. } => {
            embedded(part, media_type, data, media)?
        }
        Part::Text { .. }
        | Part::Image(_)
        | Part::Audio(_)
        | Part::Resource { .. }
        | Part::Reasoning { .. }
        | Part::ToolUse { .. }
        | Part::ToolResult { .. } => None,
    })
}

/// Data of this type, if the server accepts such media.
fn embedded<'a>(
    part: &'a Part,
    media_type: &str,
    data: &'a str,
    media: &BTreeSet<MediaKind>,
) -> Result<Option<ContentForm<'a>>, Unfit> {
    let takes = |kind| media.contains(&kind);
    if is_image(media_type) && takes(MediaKind::Images) {
        return image_data(data).map(|url| Some(ContentForm::Image(url)));
    }
    if is_pdf(media_type) && takes(MediaKind::Files) {
        LIMITS.pdf(data)?;
        let data = format!("data:application/pdf;base64,{data}");
        return Ok(Some(ContentForm::File { name: file_name(part), data }));
    }
    let Some(format) = audio_format(media_type).filter(|_| takes(MediaKind::Audio)) else { return Ok(None) };
    LIMITS.recording(data)?;
    Ok(Some(ContentForm::Audio { data, format }))
}

fn audio_format(media_type: &str) -> Option<&'static str> {
    match media_type.strip_prefix("audio/")? {
        "wav" | "x-wav" | "wave" | "vnd.wave" => Some("wav"),
        "mpeg" | "mp3" => Some("mp3"),
        _ => None,
    }
}

/// An image as a data URL, with the type that its bytes have.
fn image_data(data: &str) -> Result<Cow<'_, str>, Unfit> {
    Ok(Cow::Owned(format!("data:{};base64,{data}", LIMITS.image(data)?)))
}

fn file_name(part: &Part) -> Cow<'_, str> {
    let Part::Resource { uri, name, .. } = part else { return Cow::Borrowed("document.pdf") };
    let last = uri.rsplit('/').next().unwrap_or(uri);
    match name.as_deref().unwrap_or(last) {
        "" => Cow::Borrowed("document.pdf"),
        name => Cow::Borrowed(name),
    }
}

/// Any part as text, at least as a note that it exists.
pub(crate) fn as_text(part: &Part) -> Cow<'_, str> {
    part_text(part, None)
}

fn part_text(part: &Part, why: Option<Unfit>) -> Cow<'_, str> {
    attachment::part_text(part, why, |content, is_error| {
        marked(joined(content.iter().map(as_text).collect(), "\n"), is_error)
    })
}

/// The text of a result. There is no error flag, so the text marks an error.
pub(crate) fn marked(text: Cow<'_, str>, is_error: bool) -> Cow<'_, str> {
    let says_so = text.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("error"));
    if is_error && !says_so { Cow::Owned(format!("Error: {text}")) } else { text }
}

/// Joins texts; a single one is not copied.
pub(crate) fn joined<'a>(mut texts: Vec<Cow<'a, str>>, separator: &str) -> Cow<'a, str> {
    match (texts.pop(), texts.is_empty()) {
        (None, _) => Cow::Borrowed(""),
        (Some(only), true) => only,
        (Some(last), false) => {
            texts.push(last);
            Cow::Owned(texts.join(separator))
        }
    }
}

/// The name that the model wrote, or a valid one if servers would reject it and the whole conversation.
pub(crate) fn accepted_name(name: &str) -> Cow<'_, str> {
    if ToolName::parse(name).is_some() {
        return Cow::Borrowed(name);
    }
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    let name: String = name.chars().map(safe).take(MAX_NAME_CHARS).collect();
    Cow::Owned(if name.is_empty() { "unnamed".into() } else { name })
}

/// The output schema as a response format; `None` for a schema that is not an object. It binds the model only within
/// the subset of strict formats; toolgate validates answers in any case.
pub(crate) fn answer_format(schema: &Value) -> Option<Value> {
    let mut format = super::openai_schema::project(schema).ok()?;
    let strict = super::openai_schema::is_strict(&mut format, true);
    Some(json!({"name": "answer", "schema": format.schema, "strict": strict}))
}

fn image_url(image: &Media) -> Result<Option<Cow<'_, str>>, Unfit> {
    Ok(match (&image.data, &image.url) {
        (Some(data), _) => Some(image_data(data)?),
        // A handle of our own store has no meaning to a server.
        (None, Some(url)) if url.starts_with("https://") || url.starts_with("http://") => Some(Cow::Borrowed(url)),
        (None, _) => None,
    })
}

/// The most tools of a request, as the servers' own errors tell it: Groq `'tools' : maximum number of items is 128`, xAI
/// "the maximum is 200".
fn most_tools(provider: &str) -> Option<usize> {
    match provider {
        "openai" | "azure" | "api.groq.com" => Some(128),
        "api.x.ai" => Some(200),
        _ => None,
    }
}
