//! Undo: the tool that reverses the effect of another tool's calls, and where its arguments come from.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::result::find;
use super::{Arguments, Outcome};

/// The undo of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undo {
    /// The server's name of the tool that undoes; a tool of the same server.
    pub tool: String,
    /// The arguments of the undo call: JSON pointers (RFC 6901) into `{arguments, result}` of the call that it undoes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, String>,
}

impl Undo {
    /// The arguments that undo a call with these arguments and this outcome. If a pointer leads nowhere, they are malformed
    /// and give the reason: without an argument, the undo could reverse more than the call did.
    pub fn arguments_for(&self, arguments: &Arguments, outcome: &Outcome) -> Arguments {
        let call = json!({"arguments": arguments.to_value(), "result": result_of(outcome)});
        let found = self.arguments.iter().map(|(name, pointer)| Ok((name.clone(), find(&call, pointer)?.clone())));
        match found.collect::<Result<_, String>>() {
            Ok(arguments) => Arguments::from_value(Value::Object(arguments)),
            Err(reason) => Arguments::Malformed(reason),
        }
    }
}

/// The structured result; otherwise its text, parsed if it is JSON.
fn result_of(outcome: &Outcome) -> Value {
    let Outcome::Returned(output) = outcome else { return Value::Null };
    let text = || {
        let text = output.joined_text();
        serde_json::from_str(&text).unwrap_or(Value::String(text))
    };
    output.structured.clone().unwrap_or_else(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::ToolOutput;

    fn arguments(pointer: &str, outcome: &Outcome) -> Arguments {
        let undo = Undo { tool: "cancel".into(), arguments: BTreeMap::from([("id".to_owned(), pointer.to_owned())]) };
        undo.arguments_for(&Arguments::from_value(json!({"sku": "tea"})), outcome)
    }

    #[test]
    fn arguments_come_from_the_call_and_from_its_structured_or_textual_result() {
        let structured = Outcome::Returned(ToolOutput::from_value(json!({"order": {"id": 7}})));
        let json_text = Outcome::Returned(ToolOutput::text(r#"{"order": {"id": 7}}"#));
        let plain = Outcome::Returned(ToolOutput::text("ord_7"));
        for (pointer, outcome, id) in [
            ("/result/order/id", &structured, json!(7)),
            ("/result/order/id", &json_text, json!(7)),
            ("/result", &plain, json!("ord_7")),
            ("/arguments/sku", &plain, json!("tea")),
        ] {
            assert_eq!(arguments(pointer, outcome), Arguments::from_value(json!({"id": id})), "{pointer}");
        }
    }

    #[test]
    fn a_pointer_that_leads_nowhere_gives_the_reason_instead_of_arguments() {
        let outcome = Outcome::Returned(ToolOutput::from_value(json!({"id": 7})));
        let Arguments::Malformed(reason) = arguments("/result/order", &outcome) else { panic!("there is no order") };
        assert_eq!(reason, "`/result/order` leads nowhere: `/result` is an object with the members `id`");
    }
}
