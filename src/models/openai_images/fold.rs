//! Images answer: images, as base64 or by URL, and their usage.

use serde::Deserialize;
use serde_json::Value;
use toolgate_core::chat::{Media, Part, Reply, Usage};
use toolgate_core::lifecycle::Delta;

use crate::http::{CallIds, Fault, Fold, read};

const NO_IMAGE: Fault = Fault::NoMessage("there is no image in `data`");

/// The base64 prefixes of image formats, with their media types.
const SIGNATURES: [(&str, &str); 4] =
    [("iVBORw0KGgo", "image/png"), ("/9j/", "image/jpeg"), ("R0lGOD", "image/gif"), ("UklGR", "image/webp")];

/// An answer on its way to a reply.
#[derive(Debug)]
pub(super) struct ImagesFold {
    requested_format: Option<String>,
    answer: Answer,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Answer {
    data: Option<Vec<Image>>,
    output_format: Option<String>,
    usage: Option<Value>,
}

#[derive(Deserialize)]
struct Image {
    b64_json: Option<String>,
    url: Option<String>,
}

impl std::fmt::Debug for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Image")
    }
}

impl ImagesFold {
    /// The start of an answer to a request for this format.
    pub(super) fn new(requested_format: Option<String>) -> Self {
        Self { requested_format, answer: Answer::default() }
    }
}

impl Fold for ImagesFold {
    fn event(&mut self, _data: &str, _deltas: &mut dyn FnMut(Delta)) -> Result<(), Fault> {
        Err(Fault::Unreadable("it is an event stream, which was not requested".into()))
    }

    fn whole(&mut self, body: &[u8]) -> Result<(), Fault> {
        self.answer = read(body)?;
        if self.answer.images().next().is_some() { Ok(()) } else { Err(NO_IMAGE) }
    }

    fn is_done(&self) -> bool {
        false
    }

    fn is_finished(&self) -> bool {
        false
    }

    fn has_begun(&self) -> bool {
        false
    }

    fn usage(&self) -> Usage {
        let count = |name: &str| self.answer.usage.as_ref()?.get(name)?.as_u64();
        Usage { input_tokens: count("input_tokens"), output_tokens: count("output_tokens"), ..Usage::default() }
    }

    fn into_reply(self: Box<Self>, _known: &CallIds) -> Result<Reply, Fault> {
        let usage = self.usage();
        let Self { requested_format, answer } = *self;
        let content =
            answer.images().map(|image| Part::Image(image.media(&answer, requested_format.as_deref()))).collect();
        Ok(Reply { content, usage, ..Reply::empty() })
    }
}

impl Answer {
    /// The images in the answer: an entry is empty if a filter removed its image.
    fn images(&self) -> impl Iterator<Item = &Image> {
        let all = self.data.iter().flatten();
        all.filter(|image| image.data().is_some() || image.url.as_ref().is_some_and(|url| !url.is_empty()))
    }
}

impl Image {
    fn data(&self) -> Option<&str> {
        self.b64_json.as_deref().filter(|data| !data.is_empty())
    }

    fn media(&self, answer: &Answer, requested_format: Option<&str>) -> Media {
        let reported_format = answer.output_format.as_deref().and_then(media_type);
        let seen = || self.data().and_then(signed);
        let media_type =
            reported_format.or_else(seen).or_else(|| requested_format.and_then(media_type)).unwrap_or("image/png");
        let data = self.data().map(str::to_owned);
        // A URL may expire before the run ends, so inline data is preferred.
        let url = self.url.clone().filter(|_| data.is_none());
        Media { media_type: media_type.to_owned(), data, url }
    }
}

/// The media type of an output format.
fn media_type(format: &str) -> Option<&'static str> {
    match format {
        "png" => Some("image/png"),
        "jpeg" | "jpg" => Some("image/jpeg"),
        "webp" => Some("image/webp"),
        "gif" => Some("image/gif"),
        "svg" => Some("image/svg+xml"),
        _ => None,
    }
}

/// The media type according to the start of base64 data.
fn signed(data: &str) -> Option<&'static str> {
    SIGNATURES.iter().find(|(start, _)| data.starts_with(start)).map(|(_, media_type)| *media_type)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read_answer(requested_format: Option<&str>, body: Value) -> Result<Reply, Fault> {
        let mut fold = ImagesFold::new(requested_format.map(str::to_owned));
        fold.whole(body.to_string().as_bytes())?;
        Box::new(fold).into_reply(&CallIds::default())
    }

    fn images(requested_format: Option<&str>, body: Value) -> Vec<Media> {
        read_answer(requested_format, body).unwrap().content.iter().filter_map(Part::as_media).collect()
    }

    fn inline(media_type: &str, data: &str) -> Media {
        Media { media_type: media_type.into(), data: Some(data.into()), url: None }
    }

    #[test]
    fn the_answer_decides_the_image_type_before_the_request() {
        let jpeg = || json!([{"b64_json": "/9j/4AAQ"}]);
        let reported_format = images(Some("png"), json!({"data": jpeg(), "output_format": "webp"}));
        let shown = images(Some("png"), json!({"data": jpeg()}));
        let requested_format = images(Some("svg"), json!({"data": [{"b64_json": "PHN2Zz4="}]}));
        let unknown = images(None, json!({"data": [{"b64_json": "AAAA"}]}));
        assert_eq!(reported_format, [inline("image/webp", "/9j/4AAQ")]);
        assert_eq!(shown, [inline("image/jpeg", "/9j/4AAQ")]);
        assert_eq!(requested_format, [inline("image/svg+xml", "PHN2Zz4=")]);
        assert_eq!(unknown, [inline("image/png", "AAAA")]);
    }

    #[test]
    fn each_image_is_a_part_and_a_url_counts_without_data() {
        let data = json!([{"b64_json": "AAAA", "url": "http://h/1"}, {"url": "http://h/2"}, {"b64_json": null}]);
        let expected = [inline("image/png", "AAAA"), Media::at("image/png", "http://h/2")];
        assert_eq!(images(None, json!({"data": data})), expected);
    }

    #[test]
    fn missing_usage_stays_unknown() {
        let data = json!([{"b64_json": "AAAA"}]);
        let usage = json!({"input_tokens": 9, "output_tokens": 1056, "total_tokens": 1065});
        let said = read_answer(None, json!({"data": data, "usage": usage})).unwrap().usage;
        assert_eq!((said.input_tokens, said.output_tokens), (Some(9), Some(1056)));
        assert_eq!(read_answer(None, json!({"data": data})).unwrap().usage, Usage::default());
    }

    #[test]
    fn an_answer_without_an_image_fails() {
        for body in [json!({}), json!({"data": []}), json!({"data": [{"b64_json": ""}]}), json!({"data": null})] {
            assert_eq!(read_answer(None, body), Err(NO_IMAGE));
        }
    }
}
