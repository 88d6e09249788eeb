//! Tool declarations for this API.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use toolgate_core::chat::{Message, Part};
use toolgate_core::tool::Tool;

use super::names::accepted_name;
use super::{root, subset};
use crate::http::{Declaration, Declared};

/// The most strict tools of a request; the API rejects more.
const MOST_STRICT: usize = 20;

/// The declaration of a tool; strict if that is requested and its schema allows it.
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

/// Declarations for the calls of a conversation without tools; `None` if it has no call. The API accepts calls and
/// results only in a request that declares tools, whatever their names.
pub(super) fn stubs<'a>(messages: &'a [Arc<Message>]) -> Option<Vec<Value>> {
    let calls = messages.iter().flat_map(|message| &message.content).filter_map(Part::tool_use);
    let names: BTreeSet<Cow<'a, str>> = calls.map(|(_, name, _)| accepted_name(name)).collect();
    let stub = |name: Cow<'a, str>| json!({"name": name, "input_schema": {"type": "object"}});
    (!names.is_empty()).then(|| names.into_iter().map(stub).collect())
}

/// Keeps as many tools strict as one request may have.
pub(super) fn bound(declarations: &mut [Declaration]) {
    let strict = declarations.iter_mut().filter_map(|declaration| declaration.json.as_object_mut());
    let strict = strict.filter(|json| json.get("strict") == Some(&Value::Bool(true)));
    let mut loosened = 0;
    for json in strict.skip(MOST_STRICT) {
        json.shift_remove("strict");
        loosened += 1;
    }
    if loosened > 0 {
        tracing::warn!(most = MOST_STRICT, loosened, "strict tools beyond the server's limit declared without strict");
    }
}
