//! Resolution of links in a call's paths, before a policy with path conditions judges the call.

use serde_json::{Map, Value};
use toolgate_core::policy::{Links, Policy};
use toolgate_core::tool::Tool;

use super::Driver;

/// The maximum number of paths of one call that are resolved.
const MAX_PATHS: usize = 1000;

/// The longest path that is resolved, in bytes; systems accept no longer ones.
const MAX_PATH_BYTES: usize = 4096;

impl Driver<'_> {
    /// The targets of the links in a call's paths, if the policy needs them.
    pub(super) async fn links(&self, policy: &Policy, tool: &Tool, arguments: Option<&Map<String, Value>>) -> Links {
        let mut paths: Vec<String> = policy.folders().map(str::to_owned).collect();
        let Some(arguments) = arguments.filter(|_| !paths.is_empty()) else { return Links::Ignored };
        let Some(server) = tool.server() else {
            return Links::Unresolvable("the application runs the tool, not a server".to_owned());
        };
        arguments.values().for_each(|value| collect(value, &mut paths));
        if paths.len() > MAX_PATHS {
            return Links::Unresolvable(format!("the call has more than {MAX_PATHS} paths"));
        }
        self.ports.paths.resolve(server, &paths).await
    }
}

/// Collects every text that may be an absolute path.
fn collect(value: &Value, paths: &mut Vec<String>) {
    match value {
        Value::String(text) if text.starts_with('/') && text.len() <= MAX_PATH_BYTES => paths.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, paths)),
        Value::Object(members) => members.values().for_each(|member| collect(member, paths)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
