//! Invalid images and documents: for any attachment of a tool or a caller, the request stays valid for the provider,
//! and the model reads which content is missing and why.

use serde_json::Value;
use toolgate::core::chat::{Media, Message, Part, Role};
use toolgate::models::{HttpModel, MediaKind, Settings, anthropic, gemini, openai_chat, openai_responses};

use super::asking::{ask, calls, user};

const JPEG: &[u8] = b"\xff\xd8\xff\xe0 and so on";
const WEBP: &[u8] = b"RIFF\x01\x02\x03\x04WEBPVP8 ";
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Every wire, with the largest base64 that it accepts for an image.
fn wires() -> [(&'static str, HttpModel, usize); 4] {
    let settings = Settings {
        media: Some([MediaKind::Images, MediaKind::Files].into()),
        ..Settings::new("http://server", "gemini-3-x")
    };
    [
        ("anthropic", anthropic::model(&settings).unwrap(), 5 << 20),
        ("openai_chat", openai_chat::model(&settings).unwrap(), (20 << 20) / 3 * 4),
        ("openai_responses", openai_responses::model(&settings).unwrap(), (20 << 20) / 3 * 4),
        ("gemini", gemini::model(&settings).unwrap(), 20 << 20),
    ]
}

fn image(media_type: &str, bytes: &[u8]) -> Part {
    Part::Image(Media::inline(media_type, bytes))
}

fn written(media_type: &str, data: &str) -> Part {
    Part::Image(Media { media_type: media_type.into(), data: Some(data.into()), url: None })
}

fn resource(media_type: &str, data: Option<String>) -> Part {
    let media_type = Some(media_type.into());
    Part::Resource { uri: "shop://it".into(), name: None, media_type, text: None, data }
}

fn file(media_type: &str, bytes: &[u8]) -> Part {
    resource(media_type, Media::inline(media_type, bytes).data)
}

/// The request when the user attaches this part, and when a tool does.
fn sent(model: &HttpModel, part: &Part) -> [String; 2] {
    let message = |content| Message { role: Role::User, content, provider_state: None };
    let result = Part::ToolResult { tool_use_id: "a".into(), content: vec![part.clone()], is_error: false };
    let attached = ask([message(vec![part.clone()])]);
    let returned = ask([user("go"), calls(&["a"]), message(vec![result])]);
    [attached, returned].map(|asked| {
        let body = model.body(&asked.request()).unwrap();
        serde_json::from_slice::<Value>(&body).unwrap();
        String::from_utf8(body).unwrap()
    })
}

#[test]
fn invalid_images_and_documents_become_notes() {
    let svg = b"<svg xmlns='http://www.w3.org/2000/svg'/>";
    for (part, why) in [
        (image("image/svg+xml", svg), "image image/svg+xml, not shown here: its bytes are none of PNG, JPEG"),
        (image("image/png", svg), "image image/png, not shown here: its bytes are none of PNG, JPEG"),
        (image("image/png", b""), "image image/png, not shown here: its data is not base64"),
        (written("image/png", "iVBORw0KGgo"), "image image/png, not shown here: its data is not base64"),
        (written("image/png", "<html>"), "image image/png, not shown here: its data is not base64"),
        (written("image/png", "data:image/png;base64,iVBORw0KGgo="), "not shown here: its data is not base64"),
        (file("image/svg+xml", svg), "(image/svg+xml), its content is not shown here: its bytes are none of PNG"),
        (file("application/pdf", b"<html>"), "its content is not shown here: its bytes are not a PDF"),
        (resource("application/pdf", Some("%PDF".into())), "its content is not shown here: its data is not base64"),
    ] {
        let Some(Media { data: Some(data), .. }) = part.as_media() else { panic!("it has data") };
        for (wire, model, _) in wires() {
            for body in sent(&model, &part) {
                assert!(body.contains(why), "{wire} does not give the reason: {body}");
                assert!(data.is_empty() || !body.contains(&data), "{wire} sends it: {body}");
            }
        }
    }
}

#[test]
fn an_image_is_sent_with_the_type_of_its_bytes() {
    for (part, media_type) in [
        (image("image/png", JPEG), "image/jpeg"),
        (image("application/octet-stream", WEBP), "image/webp"),
        (file("image/jpg", PNG), "image/png"),
    ] {
        let Some(Media { data: Some(data), .. }) = part.as_media() else { panic!("it has data") };
        for (wire, model, _) in wires() {
            for body in sent(&model, &part) {
                let is_sent = body.contains(&data) && body.contains(media_type);
                assert!(is_sent && !body.contains("not shown here"), "{wire} does not send it as {media_type}: {body}");
            }
        }
    }
}

#[test]
fn an_image_that_is_too_large_becomes_a_note() {
    for (wire, model, max) in wires() {
        let large = |size: usize| written("image/png", &format!("iVBORw0KGgo{}", "A".repeat(size - 11)));
        for body in sent(&model, &large(max / 4 * 4)) {
            assert!(body.len() > max - 4, "{wire} does not send an image at the limit");
        }
        for body in sent(&model, &large(max / 4 * 4 + 4)) {
            let why = format!("not shown here: it has more than {} MiB of base64", max >> 20);
            assert!(body.len() < 2_000 && body.contains(&why), "{wire}: {} bytes", body.len());
        }
    }
}
