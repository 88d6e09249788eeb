//! Tools as this API declares them.

use serde_json::json;

use super::{root, subset};
use crate::core::tool::Tool;
use crate::models::http::Declared;

/// The declaration of a tool; strict where that is wanted and its schema allows it.
pub(super) fn declare(tool: &Tool, strict: bool) -> Declared {
    let Tool { name, description, input_schema, .. } = tool;
    match root::fit(input_schema) {
        Ok((schema, lost)) => {
            let is_strict = strict && subset::holds(&schema);
            let mut json = json!({"name": name, "description": description, "input_schema": schema});
            if let Some(json) = json.as_object_mut().filter(|_| is_strict) {
                json.insert("strict".into(), json!(true));
            }
            Declared::As { json, lost }
        }
        Err(why) => Declared::Refused(why),
    }
}
