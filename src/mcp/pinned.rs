//! Pinned arguments of a server's tools: the operator's values, which are removed from the tools that are listed and
//! added to the calls that are sent. No other part of toolgate has them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use secrecy::ExposeSecret as _;
use serde_json::{Map, Value, json};
use toolgate_core::json;
use toolgate_core::tool::{LeftOut, McpTool, PinnedArguments, ServerTools};
pub use toolgate_settings::mcp::PinnedValue;

/// Keywords of a schema that apply to all arguments at once, besides `properties` and `required`.
const WHOLE: [&str; 12] = [
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentSchemas",
    "dependentRequired",
    "dependencies",
    "$ref",
    "$dynamicRef",
];

/// Pinned arguments by the server's name of the tool, and by their own name.
#[derive(Clone, Debug, Default)]
pub struct PinnedTools(BTreeMap<String, BTreeMap<String, PinnedValue>>);

impl From<BTreeMap<String, BTreeMap<String, PinnedValue>>> for PinnedTools {
    fn from(mut tools: BTreeMap<String, BTreeMap<String, PinnedValue>>) -> Self {
        tools.retain(|_, arguments| !arguments.is_empty());
        Self(tools)
    }
}

impl PinnedTools {
    /// The listed tools without their pinned arguments. A tool whose schema does not allow that is left out, and so that a
    /// misspelt name does not leave an argument to the model, names that the server does not list are reported.
    pub(super) fn hidden(&self, mut listed: ServerTools) -> ServerTools {
        if self.0.is_empty() || listed.tools.is_empty() {
            return listed;
        }
        let mut unlisted: BTreeSet<&String> = self.0.keys().collect();
        unlisted.retain(|name| !listed.left_out.iter().any(|left| left.tool.as_ref() == Some(*name)));
        let server = &listed.server;
        let mut left_out = |tool: &str, reason: String| {
            let tool = Some(tool.to_owned());
            listed.left_out.push(LeftOut { server: Some(server.clone()), tool, reason });
        };
        Arc::make_mut(&mut listed.tools).retain_mut(|tool| {
            unlisted.remove(&tool.name);
            match self.0.get(&tool.name).map_or(Ok(()), |values| pin(tool, values)) {
                Ok(()) => true,
                Err(reason) => {
                    left_out(&tool.name, reason);
                    false
                }
            }
        });
        for name in unlisted {
            left_out(name, "the configuration sets arguments of it, and the server has no such tool".to_owned());
        }
        listed
    }

    /// The arguments of a call with the pinned ones, which win.
    pub(super) fn added_to<'a>(&self, tool: &str, arguments: &'a Map<String, Value>) -> Cow<'a, Map<String, Value>> {
        let Some(pinned) = self.0.get(tool) else { return Cow::Borrowed(arguments) };
        let mut arguments = arguments.clone();
        arguments.extend(pinned.iter().map(|(name, value)| (name.clone(), to_json(value))));
        Cow::Owned(arguments)
    }
}

fn to_json(value: &PinnedValue) -> Value {
    match value {
        PinnedValue::Plain(value) => value.clone(),
        PinnedValue::Secret(secret) => secret.expose_secret().into(),
    }
}

/// Removes pinned arguments from the definition of a tool.
fn pin(tool: &mut McpTool, values: &BTreeMap<String, PinnedValue>) -> Result<(), String> {
    let wrong = |what: String| format!("the configuration sets {what}, so that toolgate cannot hide it from the model");
    let Value::Object(schema) = &mut tool.input_schema else { return Ok(()) };
    for name in values.keys() {
        if schema.get("properties").is_none_or(|properties| properties.get(name).is_none()) {
            return Err(format!("the configuration sets its argument `{name}`, which its schema does not declare"));
        }
        let mentions = |keyword: &&str| schema.get(*keyword).is_some_and(|value| mentions(value, name));
        if let Some(keyword) = WHOLE.iter().find(|keyword| mentions(keyword)) {
            return Err(wrong(format!("its argument `{name}`, which its schema mentions in `{keyword}`")));
        }
    }
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.retain(|name, _| !values.contains_key(name));
    }
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|name| !name.as_str().is_some_and(|name| values.contains_key(name)));
        // Earlier drafts of JSON Schema do not allow an empty list.
        if required.is_empty() {
            schema.retain(|keyword, _| keyword != "required");
        }
    }
    let plain = values.iter().filter_map(|(name, value)| match value {
        PinnedValue::Plain(value) => Some((name.clone(), value.clone())),
        PinnedValue::Secret(_) => None,
    });
    let names: Vec<String> = values.keys().cloned().collect();
    let fingerprint = json::hash(&json!({"names": names, "values": plain.collect::<Map<_, _>>()}));
    tool.pinned = Some(PinnedArguments { names, fingerprint });
    Ok(())
}

/// Whether a part of a schema says something about an argument. A reference may lead anywhere.
fn mentions(schema: &Value, name: &str) -> bool {
    match schema {
        Value::String(text) => text == name || text.starts_with('#'),
        Value::Array(items) => items.iter().any(|item| mentions(item, name)),
        Value::Object(members) => {
            members.iter().any(|(key, value)| key == name || key == "$ref" || mentions(value, name))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_core::tool::Annotations;

    fn listed(schema: Value) -> ServerTools {
        let tool = McpTool {
            name: "create".into(),
            description: String::new(),
            input_schema: schema,
            output_schema: None,
            annotations: Annotations::default(),
            pinned: None,
        };
        let (tools, left_out) = (Arc::new(vec![tool]), Vec::new());
        ServerTools {
            server: "shop".into(),
            trusted: false,
            endpoint: None,
            tools,
            left_out,
            stale: None,
            authorization: None,
        }
    }

    fn pins(values: &[(&str, PinnedValue)]) -> PinnedTools {
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        PinnedTools::from(BTreeMap::from([("create".to_owned(), values.collect())]))
    }

    fn plain(value: &str) -> PinnedValue {
        PinnedValue::Plain(value.into())
    }

    fn schema() -> Value {
        let properties = json!({"zone": {"type": "string"}, "region": {"type": "string"}, "name": {"type": "string"}});
        json!({"type": "object", "properties": properties, "required": ["region"]})
    }

    #[test]
    fn a_pinned_argument_is_not_in_the_schema() {
        let shown = pins(&[("region", plain("eu"))]).hidden(listed(schema()));
        let properties = json!({"zone": {"type": "string"}, "name": {"type": "string"}});
        let tool = &shown.tools[0];
        assert_eq!(tool.input_schema.to_string(), json!({"type": "object", "properties": properties}).to_string());
        assert_eq!(tool.pinned.as_ref().expect("pinned").names, ["region"]);
        assert_eq!(shown.left_out, []);
    }

    #[test]
    fn a_pinned_argument_wins_over_a_given_one() {
        let given = json!({"region": "us", "name": "a"});
        let given = given.as_object().expect("an object");
        let pins = pins(&[("region", plain("eu")), ("key", PinnedValue::Secret("hunter2".into()))]);
        let sent = Value::Object(pins.added_to("create", given).into_owned());
        assert_eq!(sent, json!({"region": "eu", "name": "a", "key": "hunter2"}));
        assert!(matches!(pins.added_to("delete", given), Cow::Borrowed(_)), "another tool");
        assert!(!format!("{pins:?}").contains("hunter2") && !format!("{pins:?}").contains("eu"), "{pins:?}");
    }

    #[test]
    fn another_plain_value_is_another_definition_and_another_secret_is_not() {
        let hash = |value| pins(&[("region", value)]).hidden(listed(schema())).tools[0].pinned.clone();
        assert_ne!(hash(plain("eu")), hash(plain("us")));
        assert_ne!(hash(plain("eu")), hash(PinnedValue::Secret("eu".into())));
        assert_eq!(hash(PinnedValue::Secret("eu".into())), hash(PinnedValue::Secret("us".into())));
    }

    #[test]
    fn a_tool_whose_schema_mentions_a_pinned_argument_elsewhere_is_left_out() {
        for (keyword, value) in [
            ("anyOf", json!([{"required": ["region"]}, {"required": ["zone"]}])),
            ("not", json!({"properties": {"region": {"const": "us"}}})),
            ("dependentRequired", json!({"zone": ["region"]})),
            ("allOf", json!([{"$ref": "#/$defs/place"}])),
            ("$ref", json!("#/$defs/place")),
        ] {
            let mut schema = schema();
            schema[keyword] = value;
            let shown = pins(&[("region", plain("eu"))]).hidden(listed(schema));
            assert!(shown.tools.is_empty(), "{keyword}");
            assert!(shown.left_out[0].reason.contains(keyword), "{:?}", shown.left_out);
        }
    }

    #[test]
    fn a_misspelt_argument_or_tool_is_reported() {
        let shown = pins(&[("regoin", plain("eu"))]).hidden(listed(schema()));
        assert!(shown.tools.is_empty() && shown.left_out[0].reason.contains("`regoin`"), "{:?}", shown.left_out);
        let other = BTreeMap::from([("craete".to_owned(), BTreeMap::from([("region".to_owned(), plain("eu"))]))]);
        let shown = PinnedTools::from(other).hidden(listed(schema()));
        assert_eq!(shown.left_out[0].tool.as_deref(), Some("craete"));
        assert_eq!(shown.tools.len(), 1);
    }
}
