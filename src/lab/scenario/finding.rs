//! Finding: one expectation that a run did not meet.

use serde::Serialize;
use serde_json::Value;

/// An unmet expectation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The key of the scenario, such as `expect.calls[0].arguments`.
    pub expectation: String,
    /// The place in the run, such as `call 2 (mcp_shop_find), $.name`; absent for the run as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// What is wrong, in words.
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actual: Option<Value>,
}

impl Finding {
    pub(super) fn new(expectation: impl Into<String>, message: impl Into<String>) -> Self {
        let (expectation, message) = (expectation.into(), message.into());
        Self { expectation, place: None, message, expected: None, actual: None }
    }

    #[must_use]
    pub(super) fn at(self, place: impl Into<String>) -> Self {
        Self { place: Some(place.into()), ..self }
    }

    #[must_use]
    pub(super) fn values(self, expected: impl Into<Value>, actual: impl Into<Value>) -> Self {
        Self { expected: Some(expected.into()), actual: Some(actual.into()), ..self }
    }

    /// The finding as text: one line, and one for each value.
    pub fn lines(&self) -> Vec<String> {
        let place = self.place.as_ref().map(|place| format!(" at {place}")).unwrap_or_default();
        let mut lines = vec![format!("{}{place}: {}", self.expectation, self.message)];
        if self.expected.is_some() || self.actual.is_some() {
            let shown = |value: &Option<Value>| value.as_ref().map_or("nothing".to_owned(), shortened);
            lines.push(format!("  expected: {}", shown(&self.expected)));
            lines.push(format!("  actual:   {}", shown(&self.actual)));
        }
        lines
    }
}

/// The most characters of a value in a text report.
const SHOWN: usize = 400;

fn shortened(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
