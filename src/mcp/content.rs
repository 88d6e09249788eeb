//! Content of a `tools/call` result, as the model reads it. Nothing is lost: content of an unknown kind, or that
//! violates MCP, is kept as its JSON with a note. A violation is also reported as a problem.

use serde_json::{Map, Value};
use toolgate_core::chat::{Media, Part};
use toolgate_core::json;
use toolgate_core::tool::{Problem, ToolOutput};

use super::measure::excerpt;

/// The upper limit of problems that are reported one by one.
const MAX_PROBLEMS: usize = 10;
/// The longest JSON that a problem quotes.
const MAX_RECEIVED: usize = 100;

/// Reads a complete result. The error states what is wrong with it.
pub(super) fn read(mut result: Map<String, Value>) -> Result<ToolOutput, String> {
    if !["content", "structuredContent", "isError"].iter().any(|member| result.contains_key(*member)) {
        let got = excerpt(&Value::Object(result));
        return Err(format!("it has neither `content` nor `structuredContent`: {got}"));
    }
    let is_error = match result.get("isError") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(is_error)) => *is_error,
        Some(other) => return Err(format!("`isError` is {}, not a boolean", excerpt(other))),
    };
    let structured = result.remove("structuredContent");
    if structured.as_ref().is_some_and(|value| json::is_deeper_than(value, json::MAX_DEPTH)) {
        return Err(format!("`structuredContent` is nested deeper than {} levels", json::MAX_DEPTH));
    }
    let (mut content, problems) = match result.remove("content") {
        None => Default::default(),
        // Servers written in Go send an empty list as `null`.
        Some(Value::Null) => (Vec::new(), vec![null_content()]),
        Some(Value::Array(blocks)) => parts(blocks),
        Some(other) => return Err(format!("`content` is {}, not a list", excerpt(&other))),
    };
    if let Some(structured) = &structured
        && (content.is_empty() || !(structured.is_null() || content.iter().any(has_words)))
    {
        content.push(Part::text(structured.to_string()));
    }
    Ok(ToolOutput { content, structured, is_error, problems, ..ToolOutput::default() })
}

/// Whether a part has words for the model. An image does not show what the structured form beside it says.
fn has_words(part: &Part) -> bool {
    part.as_text().is_some_and(|text| !text.trim().is_empty())
}

fn null_content() -> Problem {
    let message = "`content` is null, not a list; the result counts as empty".to_owned();
    Problem { path: "/content".into(), rule: Problem::NULL_CONTENT.into(), message, received: None }
}

/// One part for each block, and the problems of blocks that cannot be read.
fn parts(blocks: Vec<Value>) -> (Vec<Part>, Vec<Problem>) {
    let (mut problems, mut unreported) = (Vec::new(), 0);
    let parts = blocks.into_iter().enumerate().map(|(position, block)| {
        part(&block).unwrap_or_else(|flaw| {
            if problems.len() < MAX_PROBLEMS {
                problems.push(flaw.within(&format!("/content/{position}")).found());
            } else {
                unreported += 1;
            }
            Part::text(format!("[content that violates MCP, as JSON] {block}"))
        })
    });
    let parts = parts.collect();
    if unreported > 0 {
        problems.push(Flaw::whole(&format!("{unreported} more parts cannot be read")).within("/content").found());
    }
    (parts, problems)
}

/// Why a block cannot be read.
struct Flaw {
    /// The JSON pointer, relative to the block.
    path: String,
    message: String,
    received: Option<Value>,
}

impl Flaw {
    fn whole(message: &str) -> Self {
        Self { path: String::new(), message: message.to_owned(), received: None }
    }

    /// A missing member, or one of the wrong type.
    fn member(name: &str, got: Option<&Value>, wanted: &str) -> Self {
        let message = match got {
            None => format!("`{name}` is missing"),
            Some(_) => format!("`{name}` is not {wanted}"),
        };
        Self { received: got.and_then(short), ..Self::whole(&message) }.within(&format!("/{name}"))
    }

    fn within(self, place: &str) -> Self {
        Self { path: format!("{place}{}", self.path), ..self }
    }

    fn found(self) -> Problem {
        let Self { path, message, received } = self;
        Problem { path, rule: Problem::UNREADABLE_CONTENT.into(), message, received }
    }
}

/// The part for a block.
fn part(block: &Value) -> Result<Part, Flaw> {
    let Value::Object(object) = block else {
        return Err(Flaw { received: short(block), ..Flaw::whole("this is not an object") });
    };
    match text(object, "type")?.as_str() {
        "text" => Ok(Part::Text { text: text(object, "text")? }),
        "image" => Ok(Part::Image(inline(object)?)),
        "audio" => Ok(Part::Audio(inline(object)?)),
        "resource_link" => Ok(Part::Resource {
            uri: text(object, "uri")?,
            name: optional(object, "name")?,
            media_type: optional(object, "mimeType")?,
            text: None,
            data: None,
        }),
        "resource" => match object.get("resource") {
            Some(Value::Object(resource)) => embedded(resource).map_err(|flaw| flaw.within("/resource")),
            other => Err(Flaw::member("resource", other, "an object")),
        },
        kind => Ok(Part::text(format!("[content of type `{kind}` that toolgate cannot interpret, as JSON] {block}"))),
    }
}

fn embedded(resource: &Map<String, Value>) -> Result<Part, Flaw> {
    let data = optional(resource, "blob")?.map(|blob| base64("blob", blob)).transpose()?;
    let (uri, body) = (text(resource, "uri")?, optional(resource, "text")?);
    if body.is_none() && data.is_none() {
        return Err(Flaw::whole("it has neither `text` nor `blob`"));
    }
    let (name, media_type) = (optional(resource, "name")?, optional(resource, "mimeType")?);
    Ok(Part::Resource { uri, name, media_type, text: body, data })
}

fn inline(object: &Map<String, Value>) -> Result<Media, Flaw> {
    let data = base64("data", text(object, "data")?)?;
    Ok(Media { media_type: text(object, "mimeType")?, data: Some(data), url: None })
}

fn base64(name: &str, data: String) -> Result<String, Flaw> {
    let received = short(&Value::from(data.as_str()));
    let flaw = || Flaw { received, ..Flaw::whole(&format!("`{name}` is not base64")) }.within(&format!("/{name}"));
    Media::normalized(data).ok_or_else(flaw)
}

/// A required member.
fn text(object: &Map<String, Value>, name: &str) -> Result<String, Flaw> {
    match object.get(name) {
        Some(Value::String(text)) => Ok(text.clone()),
        other => Err(Flaw::member(name, other, "a string")),
    }
}

/// An optional member; `null`, which many serializers write, counts as missing.
fn optional(object: &Map<String, Value>, name: &str) -> Result<Option<String>, Flaw> {
    object.get(name).filter(|value| !value.is_null()).map(|_| text(object, name)).transpose()
}

/// The value, if it is short enough to quote.
fn short(value: &Value) -> Option<Value> {
    (value.to_string().len() <= MAX_RECEIVED).then(|| value.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(result: Value) -> Result<ToolOutput, String> {
        let Value::Object(result) = result else { panic!("results are objects") };
        super::read(result)
    }

    #[test]
    fn every_kind_of_content_is_converted_to_its_part() {
        let output = read(json!({"content": [
            {"type": "text", "text": "hello", "annotations": {"priority": 1}},
            {"type": "image", "mimeType": "image/png", "data": "aW1n"},
            {"type": "audio", "mimeType": "audio/wav", "data": "c25k"},
            {"type": "resource_link", "uri": "file:///a", "name": "a", "mimeType": "text/plain"},
            {"type": "resource", "resource": {"uri": "file:///b", "mimeType": "text/plain", "text": "b"}},
            {"type": "resource", "resource": {"uri": "file:///c", "blob": "Yw=="}},
        ]}));
        let resource =
            |uri: &str, name: Option<&str>, media_type: Option<&str>, text: Option<&str>, data: Option<&str>| {
                let own = |text: Option<&str>| text.map(str::to_owned);
                Part::Resource {
                    uri: uri.into(),
                    name: own(name),
                    media_type: own(media_type),
                    text: own(text),
                    data: own(data),
                }
            };
        let expected = vec![
            Part::text("hello"),
            Part::Image(Media::inline("image/png", b"img")),
            Part::Audio(Media::inline("audio/wav", b"snd")),
            resource("file:///a", Some("a"), Some("text/plain"), None, None),
            resource("file:///b", None, Some("text/plain"), Some("b"), None),
            resource("file:///c", None, None, None, Some("Yw==")),
        ];
        assert_eq!(output, Ok(ToolOutput { content: expected, ..ToolOutput::default() }));
    }

    #[test]
    fn content_of_an_unknown_type_is_kept_as_json_without_a_problem() {
        let output = read(json!({"content": [{"type": "hologram", "data": 1}]})).expect("readable");
        let kept =
            r#"[content of type `hologram` that toolgate cannot interpret, as JSON] {"type":"hologram","data":1}"#;
        assert_eq!((output.content, output.problems), (vec![Part::text(kept)], vec![]));
    }

    #[test]
    fn content_that_violates_mcp_is_a_finding_that_names_its_place_and_is_kept_as_json() {
        let resource = |resource: Value| json!({"type": "resource", "resource": resource});
        for (block, place, message) in [
            (json!(null), "", "this is not an object"),
            (json!("fine"), "", "this is not an object"),
            (json!({"text": "fine"}), "/type", "`type` is missing"),
            (json!({"type": 1, "text": "fine"}), "/type", "`type` is not a string"),
            (json!({"type": "text"}), "/text", "`text` is missing"),
            (json!({"type": "text", "text": null}), "/text", "`text` is not a string"),
            (json!({"type": "image", "data": "aW1n"}), "/mimeType", "`mimeType` is missing"),
            (json!({"type": "image", "mimeType": "image/png"}), "/data", "`data` is missing"),
            (json!({"type": "audio", "mimeType": "audio/wav", "data": "%%%"}), "/data", "`data` is not base64"),
            (json!({"type": "resource_link", "name": "a"}), "/uri", "`uri` is missing"),
            (json!({"type": "resource_link", "uri": "a:b", "name": 7}), "/name", "`name` is not a string"),
            (resource(json!(null)), "/resource", "`resource` is not an object"),
            (resource(json!({"uri": "file:///a"})), "/resource", "it has neither `text` nor `blob`"),
            (resource(json!({"uri": "file:///a", "blob": "%%%"})), "/resource/blob", "`blob` is not base64"),
            (resource(json!({"text": "a"})), "/resource/uri", "`uri` is missing"),
        ] {
            let output = read(json!({"content": [{"type": "text", "text": "fine"}, block]})).expect("readable");
            let found: Vec<(&str, &str)> =
                output.problems.iter().map(|problem| (problem.path.as_str(), problem.message.as_str())).collect();
            assert_eq!(found, [(format!("/content/1{place}").as_str(), message)]);
            let kept = format!("[content that violates MCP, as JSON] {block}");
            assert_eq!(output.content, [Part::text("fine"), Part::text(kept)]);
            assert!(output.problems[0].violates_mcp() && !output.is_error);
        }
    }

    #[test]
    fn variants_of_common_serializers_are_read() {
        let picture = |data: &str| json!({"type": "image", "mimeType": "image/png", "data": data});
        let output = read(json!({"content": [
            picture("aW1\r\nn"), picture("_-_-"), picture("aW1nMQ"), picture(""),
            {"type": "resource_link", "uri": "file:///a", "name": null, "mimeType": null},
        ]}))
        .expect("readable");
        let mut content = output.content;
        let data: Vec<String> = content.iter_mut().filter_map(|part| Some(part.take_data()?.1)).collect();
        assert_eq!((data.join(" "), output.problems), ("aW1n /+/+ aW1nMQ ".to_owned(), vec![]));
    }

    #[test]
    fn a_list_of_content_that_is_null_is_empty_and_a_finding() {
        let output = read(json!({"content": null, "structuredContent": {"sum": 3}})).expect("readable");
        assert_eq!((output.content, output.problems), (vec![Part::text(r#"{"sum":3}"#)], vec![null_content()]));
    }

    #[test]
    fn ten_thousand_broken_parts_are_reported_in_eleven_findings() {
        let output = read(json!({"content": vec![json!({}); 10_000]})).expect("readable");
        assert_eq!((output.content.len(), output.problems.len()), (10_000, MAX_PROBLEMS + 1));
        let last = &output.problems[MAX_PROBLEMS];
        assert_eq!((last.path.as_str(), last.message.as_str()), ("/content", "9990 more parts cannot be read"));
    }

    #[test]
    fn an_answer_that_is_only_structured_is_also_readable() {
        let output = read(json!({"structuredContent": {"sum": 3}, "isError": true})).expect("readable");
        assert_eq!(output.content, [Part::text(r#"{"sum":3}"#)]);
        assert_eq!((output.structured, output.is_error), (Some(json!({"sum": 3})), true));
    }

    #[test]
    fn a_structured_form_without_text_beside_it_is_shown() {
        let image = json!({"type": "image", "data": "aW1n", "mimeType": "image/png"});
        let audio = json!({"type": "audio", "data": "aW1n", "mimeType": "audio/wav"});
        let link = json!({"type": "resource_link", "uri": "file:///a", "name": "a"});
        let blank = json!({"type": "text", "text": " "});
        for content in [json!([image]), json!([audio, link]), json!([image, blank])] {
            let count = content.as_array().map_or(0, Vec::len);
            let output = read(json!({"content": content, "structuredContent": {"width": 1440}})).expect("readable");
            assert_eq!(output.content.len(), count + 1, "{content}");
            assert_eq!(output.content.last(), Some(&Part::text(r#"{"width":1440}"#)), "{content}");
        }
    }

    #[test]
    fn a_structured_form_beside_text_is_not_shown_twice() {
        let content = json!([{"type": "text", "text": "1440 wide"}]);
        let output = read(json!({"content": content, "structuredContent": {"width": 1440}})).expect("readable");
        assert_eq!(output.content, [Part::text("1440 wide")]);
        let image = json!([{"type": "image", "data": "aW1n", "mimeType": "image/png"}]);
        assert_eq!(read(json!({"content": image, "structuredContent": null})).expect("readable").content.len(), 1);
    }

    fn nested(levels: usize) -> Value {
        (0..levels).fold(Value::Null, |inner, _| json!([inner]))
    }

    #[test]
    fn an_invalid_result_is_refused_with_the_reason() {
        for (result, complaint) in [
            (json!({}), "neither `content` nor `structuredContent`: {}"),
            (json!({"content": "hi"}), "`content` is \"hi\", not a list"),
            (json!({"content": [], "isError": "no"}), "`isError` is \"no\""),
            (json!({"structuredContent": nested(json::MAX_DEPTH + 1)}), "nested deeper than 100 levels"),
        ] {
            let error = read(result).expect_err("refused");
            assert!(error.contains(complaint), "{error}");
        }
    }
}
