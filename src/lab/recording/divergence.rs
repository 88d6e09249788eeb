//! Divergence: one place where a replayed run differs from its recording.

use serde::Serialize;
use serde_json::Value;

use super::difference::Difference;

/// A place where a replayed run differs from its recording.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Divergence {
    pub kind: DivergenceKind,
    /// The number of the call in the run, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<usize>,
    /// The tool, by the name that the model sees.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The place in the arguments, the result, the answer or the definition, as a JSON path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The recorded value or matcher; absent if the recording has nothing there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<Value>,
    /// The value of the replayed run; absent if it has nothing there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actual: Option<Value>,
}

/// The kinds of divergence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DivergenceKind {
    /// The server no longer lists a tool.
    ToolRemoved,
    /// The server lists a tool that the recording lacks.
    ToolAdded,
    /// The definition of a tool differs: its description, a schema or its annotations.
    ToolChanged,
    /// Another tool was called.
    Call,
    /// The recorded calls came in another order.
    Order,
    /// A recorded call was not made.
    MissingCall,
    /// A call was made that the recording lacks.
    ExtraCall,
    Arguments,
    Result,
    /// The run ended in another way.
    Ending,
    Answer,
}

impl DivergenceKind {
    /// The kind in words, for a report.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::ToolRemoved => "the tool is no longer listed",
            Self::ToolAdded => "the tool is new",
            Self::ToolChanged => "the definition of the tool changed",
            Self::Call => "another tool was called",
            Self::Order => "the calls came in another order",
            Self::MissingCall => "the call was not made",
            Self::ExtraCall => "the call is not in the recording",
            Self::Arguments => "the arguments differ",
            Self::Result => "the result differs",
            Self::Ending => "the run ended in another way",
            Self::Answer => "the answer differs",
        }
    }

    /// The part of a recording whose values `ignore` excludes from the comparison; `None` for other kinds.
    fn ignorable_part(self) -> Option<&'static str> {
        match self {
            Self::ToolChanged => Some("definition"),
            Self::Arguments => Some("arguments"),
            Self::Result => Some("result"),
            Self::Answer => Some("answer"),
            Self::ToolRemoved
            | Self::ToolAdded
            | Self::Call
            | Self::Order
            | Self::MissingCall
            | Self::ExtraCall
            | Self::Ending => None,
        }
    }
}

impl Divergence {
    pub(super) fn new(kind: DivergenceKind) -> Self {
        Self { kind, call: None, tool: None, path: None, expected: None, actual: None }
    }

    pub(super) fn of_tool(kind: DivergenceKind, tool: &str) -> Self {
        Self { tool: Some(tool.to_owned()), ..Self::new(kind) }
    }

    /// A divergence of the call at this position, counted from 0.
    pub(super) fn of_call(kind: DivergenceKind, index: usize, tool: &str) -> Self {
        Self { call: Some(index + 1), ..Self::of_tool(kind, tool) }
    }

    #[must_use]
    pub(super) fn at(self, difference: Difference) -> Self {
        let Difference { path, expected, actual } = difference;
        Self { path: Some(path.to_string()), expected, actual, ..self }
    }

    /// The place in words, such as `call 2 (mcp_shop_get_invoice), $.order_id`.
    pub fn place(&self) -> String {
        let subject = match (self.call, &self.tool) {
            (Some(call), Some(tool)) => format!("call {call} ({tool})"),
            (Some(call), None) => format!("call {call}"),
            (None, Some(tool)) => tool.clone(),
            (None, None) => "the end of the run".to_owned(),
        };
        match &self.path {
            Some(path) => format!("{subject}, {path}"),
            None => subject,
        }
    }

    /// The line of a recording that allows the difference; `None` where the file cannot allow it.
    pub fn remedy(&self) -> Option<String> {
        let part = self.kind.ignorable_part()?;
        let tool = self.tool.as_ref().map(|tool| format!("tool: {tool}, ")).unwrap_or_default();
        let path = self.path.as_ref().map(|path| format!(", path: {}", Value::from(path.as_str()))).unwrap_or_default();
        Some(format!("ignore: [{{ {tool}in: {part}{path} }}]"))
    }
}
