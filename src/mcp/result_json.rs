//! Results of the SDK as JSON.

use rmcp::model::ServerResult;
use serde_json::Value;

use super::fault::Fault;

/// The result as JSON. The SDK guesses its type; whatever the guess, no member that is read here is lost.
pub(super) fn raw(result: ServerResult) -> Result<Value, Fault> {
    if let ServerResult::CustomResult(untyped) = result {
        return Ok(untyped.0);
    }
    serde_json::to_value(result).map_err(|error| Fault::Unreadable(error.to_string()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_json_of_a_result_does_not_depend_on_its_type_in_the_sdk() {
        for sent in [
            json!({}),
            json!({"tools": [{"name": "bare"}]}),
            json!({"tools": [{"name": "t", "inputSchema": {"z": 1, "a": true}, "outputSchema": {"type": "array"}}]}),
            json!({"content": [{"type": "hologram"}], "isError": true}),
            json!({"resultType": "complete", "content": [{"type": "hologram"}]}),
            json!({"resultType": "input_required", "requestState": "s"}),
            json!({"content": [{"type": "text", "text": "t"}], "structuredContent": [1, 2.5, null]}),
            json!({"content": [], "structuredContent": null}),
        ] {
            let read: ServerResult = serde_json::from_value(sent.clone()).expect("any object is a result");
            assert_eq!(raw(read).map(|json| json.to_string()), Ok(sent.to_string()));
        }
    }
}
