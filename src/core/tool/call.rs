//! Tool calls as the model wrote them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Arguments;
use crate::chat::Part;
use crate::id::CallId;

/// Id, name and arguments. The name may not exist and the arguments may not be JSON: the model corrects both by
/// feedback.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Unique within the run.
    pub id: CallId,
    /// The name the model wrote.
    pub name: String,
    /// The arguments the model wrote.
    pub arguments: Arguments,
}

impl ToolCall {
    /// A call with an argument object; any other value becomes malformed text.
    pub fn new(id: impl Into<CallId>, name: impl Into<String>, arguments: Value) -> Self {
        Self { id: id.into(), name: name.into(), arguments: Arguments::from_value(arguments) }
    }

    /// The call in a message part.
    pub fn from_part(part: &Part) -> Option<Self> {
        let (id, name, arguments) = part.tool_use()?;
        Some(Self { id: id.clone(), name: name.to_owned(), arguments: arguments.clone() })
    }

    /// The message part of this call.
    pub fn into_part(self) -> Part {
        Part::ToolUse { id: self.id, name: self.name, input: self.arguments }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::Reply;
    use crate::json;
    use crate::run::Event;

    fn nested(levels: usize) -> String {
        format!("{}null{}", r#"{"a":"#.repeat(levels), "}".repeat(levels))
    }

    #[test]
    fn arguments_nested_too_deep_are_malformed() {
        for levels in [json::MAX_DEPTH, json::MAX_DEPTH + 1, 126] {
            let arguments = Arguments::parse(&nested(levels));
            assert_eq!(arguments.as_object().is_some(), levels <= json::MAX_DEPTH, "{levels}");
            let call = ToolCall { id: "c".into(), name: "t".into(), arguments };
            let reply = Reply { content: vec![call.into_part()], ..Reply::text("") };
            let event = Event::ModelReplied { reply: reply.into() };
            let written = serde_json::to_string(&event).expect("written");
            assert_eq!(serde_json::from_str::<Event>(&written).expect("read"), event);
        }
    }
}
