//! Members that events share with the resources of the HTTP API, in one form: each of their members is always there, and
//! null if it has no value. A journal leaves such members out, so it has a form of its own.

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::chat::Media;
use crate::run::Output;

#[derive(Serialize)]
struct OutputJson<'a> {
    text: &'a str,
    value: Option<&'a Value>,
    media: Vec<MediaJson<'a>>,
}

#[derive(Serialize)]
struct MediaJson<'a> {
    media_type: &'a str,
    data: Option<&'a str>,
    url: Option<&'a str>,
}

/// For `#[serde(serialize_with)]`: an answer, if there is one: `{"text", "value", "media"}`.
pub fn optional_output<S: Serializer>(output: &Option<Output>, serializer: S) -> Result<S::Ok, S::Error> {
    output.as_ref().map(OutputJson::new).serialize(serializer)
}

/// The same for an answer whose outer `None` stands for content that is not included.
pub(super) fn included_output<S: Serializer>(
    output: &Option<Option<Output>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    output.iter().flatten().next().map(OutputJson::new).serialize(serializer)
}

impl<'a> OutputJson<'a> {
    fn new(Output { text, value, media }: &'a Output) -> Self {
        Self { text, value: value.as_ref(), media: media.iter().map(MediaJson::new).collect() }
    }
}

impl<'a> MediaJson<'a> {
    fn new(Media { media_type, data, url }: &'a Media) -> Self {
        Self { media_type, data: data.as_deref(), url: url.as_deref() }
    }
}
