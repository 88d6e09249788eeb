//! Request types: turns and their parts.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};

/// A turn.
#[derive(Debug, Serialize)]
pub(super) struct Content<'a> {
    pub(super) role: &'static str,
    pub(super) parts: Vec<WirePart<'a>>,
}

/// A part of a turn.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(super) enum WirePart<'a> {
    /// Text; the API rejects empty text.
    Text(Cow<'a, str>),
    /// Media as base64.
    InlineData { mime_type: &'static str, data: &'a str },
    /// Media by URL.
    FileData { mime_type: &'static str, file_uri: &'a str },
    /// The result of a call.
    FunctionResponse {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<&'a str>,
        name: Cow<'a, str>,
        response: Response<'a>,
        /// Media in the result.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        parts: Vec<WirePart<'a>>,
    },
    /// A call of another model.
    #[serde(untagged)]
    Call {
        function_call: Call<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        thought_signature: Option<&'static str>,
    },
    /// A part as this model wrote it.
    #[serde(untagged)]
    AsWritten(Cow<'a, Value>),
}

/// A call by name and arguments.
#[derive(Debug, Serialize)]
pub(super) struct Call<'a> {
    pub(super) name: Cow<'a, str>,
    pub(super) args: Cow<'a, Map<String, Value>>,
}

/// The outcome of a call.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Response<'a> {
    Output(FunctionOutput<'a>),
    Error(FunctionOutput<'a>),
}

/// The output of a tool.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum FunctionOutput<'a> {
    Text(Cow<'a, str>),
    Object(Map<String, Value>),
}
