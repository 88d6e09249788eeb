//! External tools, which the calling application runs: parsed from toolgate's own format and from OpenAI's function
//! format.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};
use toolgate_core::tool::ExternalTool;

use super::error::{ConfigError, Fault};
use super::resolver::Resolver;
use super::spanned::Located;
use super::{suggest, yaml};

/// Reads a JSON or YAML file with a list of tools, or with `tools:` and the list. No variables are expanded.
pub fn external_tools_file(path: &Path) -> Result<Vec<ExternalTool>, ConfigError> {
    let source = yaml::read(path)?;
    let written: Vec<Located<Value>> = match yaml::parse(&source)? {
        Value::Object(_) => yaml::parse::<ToolsMember>(&source)?.tools,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => yaml::parse(&source)?,
    };
    let mut scope = Resolver::new(source, Path::new(""), &|_| None);
    let tools = tools(&written, &mut scope);
    scope.finish(tools)
}

const KEYS: [&str; 6] = ["name", "description", "input_schema", "result_schema", "priority", "deadline_s"];
/// The schema keys, each with its names in other formats.
const ALIASES: [(&str, &[&str]); 2] =
    [("input_schema", &["parameters", "inputSchema"]), ("result_schema", &["outputSchema"])];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolsMember {
    tools: Vec<Located<Value>>,
}

/// Parses the tools. Reports duplicate names.
pub(super) fn tools(written: &[Located<Value>], scope: &mut Resolver<'_>) -> Vec<ExternalTool> {
    let mut names = BTreeSet::new();
    let mut tools = Vec::with_capacity(written.len());
    for placed in written {
        match tool(placed.value()) {
            Ok(tool) if names.insert(tool.name.clone()) => tools.push(tool),
            Ok(tool) => {
                let fault = Fault::new(format!("the external tool `{}` is declared twice", tool.name));
                scope.fault(fault.with_remedy("remove or rename one of the two"), placed.place());
            }
            Err(fault) => scope.fault(fault, placed.place()),
        }
    }
    tools
}

fn tool(written: &Value) -> Result<ExternalTool, Fault> {
    let unwrapped = written.as_object().map(function);
    let Some(declaration) = unwrapped else {
        return Err(
            Fault::new("an external tool is a mapping").with_remedy("write `name`, `description` and `input_schema`")
        );
    };
    let name = declaration.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    if name.trim().is_empty() {
        return Err(Fault::new("an external tool needs a name").with_remedy("add `name:`"));
    }
    let is_alias = |key: &str| ALIASES.iter().any(|(_, aliases)| aliases.contains(&key));
    if let Some(key) = declaration.keys().find(|key| !(KEYS.contains(&key.as_str()) || is_alias(key))) {
        let fault = Fault::new(format!("unknown key `{key}` in the external tool `{name}`"));
        return Err(fault.with_remedy(suggest::remedy(key, KEYS, "keys")));
    }
    for (key, aliases) in ALIASES {
        let present: Vec<String> = [key]
            .iter()
            .chain(aliases)
            .filter(|name| declaration.contains_key(**name))
            .map(|name| format!("`{name}`"))
            .collect();
        if present.len() > 1 {
            let fault =
                Fault::new(format!("the external tool `{name}` has {}, which mean the same", present.join(" and ")));
            return Err(fault.with_remedy(format!("keep `{key}`")));
        }
    }
    let tool: ExternalTool = serde_json::from_value(Value::Object(declaration))
        .map_err(|error| Fault::new(format!("the external tool `{name}` cannot be read: {error}")))?;
    if !tool.input_schema.is_object() {
        let fault = Fault::new(format!("the `input_schema` of the external tool `{}` is not a JSON Schema", tool.name));
        return Err(fault.with_remedy("write `input_schema: { type: object, … }`"));
    }
    if tool.deadline_s == Some(0) {
        let fault = Fault::new(format!("the external tool `{}` has a deadline of 0 seconds", tool.name));
        return Err(fault.with_remedy("write `deadline_s: 60`, or leave it out"));
    }
    Ok(tool)
}

/// The content of OpenAI's `{type: function, function: {…}}`, without members that only that API defines.
fn function(written: &Map<String, Value>) -> Map<String, Value> {
    let is_function = written.get("type").and_then(Value::as_str) == Some("function");
    if !is_function {
        return written.clone();
    }
    let mut inner = written.get("function").and_then(Value::as_object).unwrap_or(written).clone();
    inner.retain(|key, value| !(["type", "strict"].contains(&key.as_str()) || value.is_null()));
    inner
}
