//! Content block of a request.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};

/// A content block.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block<'a> {
    /// Text that is not blank.
    Text {
        text: Cow<'a, str>,
    },
    Image {
        source: Source<'a>,
    },
    /// A PDF or a text file.
    Document {
        source: Source<'a>,
        #[serde(skip_serializing_if = "String::is_empty")]
        title: String,
    },
    /// A tool call.
    ToolUse {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: Cow<'a, Map<String, Value>>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: Vec<Block<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    /// A block as the API sent it.
    #[serde(untagged)]
    Raw(Cow<'a, Value>),
}

/// The source of a block's data.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Source<'a> {
    /// Inline, in base64.
    Base64 { media_type: &'a str, data: &'a str },
    /// Inline, as text.
    Text { media_type: &'static str, data: &'a str },
    /// By URL.
    Url { url: &'a str },
}

/// Whether the API rejects the text as blank.
pub(super) fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}
