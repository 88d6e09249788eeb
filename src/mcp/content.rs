//! The content of a `tools/call` result as the model will read it. Nothing a server said is lost: content of a kind that
//! toolgate does not know, or that is malformed, is kept as its JSON with a note.

use serde_json::{Map, Value};

use super::answer::excerpt;
use crate::core::chat::{Media, Part};
use crate::core::json;
use crate::core::tool::ToolOutput;

/// Reads a complete result. The error says what is wrong with it.
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
    let mut content: Vec<Part> = match result.remove("content") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(blocks)) => blocks.into_iter().map(part).collect(),
        Some(other) => return Err(format!("`content` is {}, not a list", excerpt(&other))),
    };
    if let (true, Some(structured)) = (content.is_empty(), &structured) {
        content.push(Part::text(structured.to_string()));
    }
    Ok(ToolOutput { content, structured, is_error, ..ToolOutput::default() })
}

fn part(block: Value) -> Part {
    known(&block).unwrap_or_else(|| {
        let kind = block.get("type").and_then(Value::as_str).unwrap_or("none");
        Part::text(format!("[content of type `{kind}` that toolgate cannot interpret, as JSON] {block}"))
    })
}

/// The part a well-formed block of a known type stands for.
fn known(block: &Value) -> Option<Part> {
    let text = |name: &str| text(block.as_object()?, name);
    match block.get("type")?.as_str()? {
        "text" => Some(Part::Text { text: text("text")? }),
        "image" => Some(Part::Image(inline(text("mimeType")?, text("data")?))),
        "audio" => Some(Part::Audio(inline(text("mimeType")?, text("data")?))),
        "resource_link" => Some(Part::Resource {
            uri: text("uri")?,
            name: text("name"),
            media_type: text("mimeType"),
            text: None,
            data: None,
        }),
        "resource" => embedded(block.get("resource")?.as_object()?),
        _ => None,
    }
}

fn embedded(resource: &Map<String, Value>) -> Option<Part> {
    let (text_form, data) = (text(resource, "text"), text(resource, "blob"));
    (text_form.is_some() || data.is_some()).then_some(())?;
    let media_type = text(resource, "mimeType");
    Some(Part::Resource {
        uri: text(resource, "uri")?,
        name: text(resource, "name"),
        media_type,
        text: text_form,
        data,
    })
}

fn inline(media_type: String, data: String) -> Media {
    Media { media_type, data: Some(data), url: None }
}

fn text(object: &Map<String, Value>, name: &str) -> Option<String> {
    object.get(name)?.as_str().map(str::to_owned)
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
    fn every_kind_of_content_arrives_as_what_it_is() {
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
            Part::Image(inline("image/png".into(), "aW1n".into())),
            Part::Audio(inline("audio/wav".into(), "c25k".into())),
            resource("file:///a", Some("a"), Some("text/plain"), None, None),
            resource("file:///b", None, Some("text/plain"), Some("b"), None),
            resource("file:///c", None, None, None, Some("Yw==")),
        ];
        assert_eq!(output, Ok(ToolOutput { content: expected, ..ToolOutput::default() }));
    }

    #[test]
    fn unknown_and_malformed_content_is_kept_as_json_with_a_note() {
        let output = read(json!({"content": [{"type": "hologram", "data": 1}, {"type": "image", "data": "x"}, 7]}));
        let texts: Vec<String> =
            output.expect("readable").content.iter().filter_map(|part| part.as_text().map(str::to_owned)).collect();
        assert_eq!(
            texts,
            [
                r#"[content of type `hologram` that toolgate cannot interpret, as JSON] {"type":"hologram","data":1}"#,
                r#"[content of type `image` that toolgate cannot interpret, as JSON] {"type":"image","data":"x"}"#,
                "[content of type `none` that toolgate cannot interpret, as JSON] 7",
            ]
        );
    }

    #[test]
    fn an_answer_that_is_only_structured_is_also_readable() {
        let output = read(json!({"structuredContent": {"sum": 3}, "isError": true})).expect("readable");
        assert_eq!(output.content, [Part::text(r#"{"sum":3}"#)]);
        assert_eq!((output.structured, output.is_error), (Some(json!({"sum": 3})), true));
    }

    fn nested(levels: usize) -> Value {
        (0..levels).fold(Value::Null, |inner, _| json!([inner]))
    }

    #[test]
    fn what_is_no_result_is_refused_with_what_is_wrong() {
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
