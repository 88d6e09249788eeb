//! Media in results: base64, and the first bytes of well-known types.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// First bytes of image types.
const MAGIC: [(&str, &[u8]); 4] = [
    ("image/png", b"\x89PNG\r\n\x1a\n"),
    ("image/jpeg", b"\xff\xd8\xff"),
    ("image/gif", b"GIF8"),
    ("image/webp", b"RIFF"),
];

/// What is wrong with a content block, and the member that has it.
pub(super) fn problem(block: &Value) -> Option<(&'static str, String)> {
    let text = |place: &str| block.pointer(place).and_then(Value::as_str);
    match text("/type")? {
        "image" => data(text("/data")?, text("/mimeType")).map(|why| ("/data", why)),
        "audio" => data(text("/data")?, None).map(|why| ("/data", why)),
        "resource" => data(text("/resource/blob")?, text("/resource/mimeType")).map(|why| ("/resource/blob", why)),
        _ => None,
    }
}

fn data(data: &str, kind: Option<&str>) -> Option<String> {
    if data.starts_with("data:") {
        return Some("the data is a `data:` URL and not base64".into());
    }
    let Ok(bytes) = STANDARD.decode(data) else { return Some("the data is not valid base64".into()) };
    if bytes.is_empty() {
        return Some("the data is empty".into());
    }
    let named = MAGIC.iter().find(|(name, _)| Some(*name) == kind);
    if let Some((name, magic)) = named.filter(|(_, magic)| !bytes.starts_with(magic)) {
        let real = MAGIC.iter().find(|(_, magic)| bytes.starts_with(magic)).map(|(name, _)| format!(" but {name}"));
        let _ = magic;
        return Some(format!("the data is not {name}{}", real.unwrap_or_default()));
    }
    None
}
