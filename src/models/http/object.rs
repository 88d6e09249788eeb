//! JSON object writer: builds an object from rendered parts, so that a request costs one copy of its bytes.

use serde::Serialize;
use serde_json::{Map, Value};

/// An object under construction.
#[derive(Debug)]
pub(crate) struct Object(Vec<u8>);

/// The fields that are the same in every request, rendered once.
#[derive(Clone, Debug)]
pub(crate) struct RequestPrefix(Vec<u8>);

impl RequestPrefix {
    /// Renders these fields.
    pub(crate) fn new(fields: Map<String, Value>) -> Self {
        let json = Value::Object(fields).to_string();
        Self(json.strip_suffix('}').unwrap_or(&json).as_bytes().to_vec())
    }
}

impl Object {
    /// An object that starts with `prefix` and reserves about `room` more bytes.
    pub(crate) fn new(prefix: &RequestPrefix, room: usize) -> Self {
        let mut json = Vec::with_capacity(prefix.0.len() + room + 1024);
        json.extend_from_slice(&prefix.0);
        Self(json)
    }

    /// Adds a field.
    pub(crate) fn field(&mut self, name: &str, value: &impl Serialize) -> Result<(), serde_json::Error> {
        self.begin(name);
        serde_json::to_writer(&mut self.0, value)
    }

    /// Adds a field from rendered JSON, in pieces.
    pub(crate) fn rendered(&mut self, name: &str, json: &[&[u8]]) {
        self.begin(name);
        json.iter().for_each(|piece| self.0.extend_from_slice(piece));
    }

    /// The complete object.
    pub(crate) fn end(mut self) -> Vec<u8> {
        self.0.push(b'}');
        self.0
    }

    fn begin(&mut self, name: &str) {
        if self.0 != b"{" {
            self.0.push(b',');
        }
        // The names are our own plain words.
        self.0.push(b'"');
        self.0.extend_from_slice(name.as_bytes());
        self.0.extend_from_slice(b"\":");
    }
}
