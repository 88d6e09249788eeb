//! A tool as it is offered to the model, and the definitions it is made from.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Endpoint, LeftOut, ToolName, external_name};
use crate::core::id::ServerId;
use crate::core::json;
use crate::core::policy::Verdict;

/// Who runs a tool.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Origin {
    /// An MCP server, by toolgate.
    Mcp {
        /// The configured server.
        server: ServerId,
        /// What the server calls the tool.
        tool: String,
    },
    /// The calling application; the run waits for its result.
    External {
        /// What the caller calls the tool.
        tool: String,
    },
    /// toolgate itself.
    Builtin {
        /// The tool; also the name the model sees.
        tool: String,
    },
}

/// Hints a server gives about a tool (MCP `ToolAnnotations`). Hints, not facts: unless the server is trusted they may
/// only make a policy stricter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Annotations {
    /// A title for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// It changes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// It may destroy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Calling it again with the same arguments changes nothing more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// It reaches an open world.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

/// A tool that the calling application declares and runs itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExternalTool {
    /// The caller's name for it; the model sees `ext_<name>`.
    pub name: String,
    /// What it does, for the model.
    #[serde(default)]
    pub description: String,
    /// JSON Schema of its arguments; default: any object.
    #[serde(default = "any_object", alias = "parameters", alias = "inputSchema")]
    pub input_schema: Value,
    /// JSON Schema of its result; results that do not fit are refused when the run is resumed.
    #[serde(default, skip_serializing_if = "Option::is_none", alias = "outputSchema")]
    pub result_schema: Option<Value>,
    /// Of the calls in one reply only those of the highest priority run.
    #[serde(default)]
    pub priority: i32,
    /// Seconds the caller has for its result; after that the model reads that there was none in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_s: Option<u64>,
}

/// A tool as an MCP server listed it, schemas verbatim.
#[derive(Clone, Debug, PartialEq)]
pub struct McpTool {
    /// The server's name for it.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The `inputSchema`, unaltered.
    pub input_schema: Value,
    /// The `outputSchema`, unaltered.
    pub output_schema: Option<Value>,
    /// The server's hints.
    pub annotations: Annotations,
}

/// A tool of a run's toolset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    /// The name the model sees.
    pub name: ToolName,
    /// The name it would have, had another tool not the same one. What a policy says of either holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_name: Option<ToolName>,
    /// Who runs it, and under which name.
    pub origin: Origin,
    /// How its server is reached, for MCP tools: another program or address under the same name is another server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<Endpoint>,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of its arguments, verbatim.
    pub input_schema: Arc<Value>,
    /// JSON Schema of its result, verbatim, if declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Arc<Value>>,
    /// The server's hints.
    #[serde(default)]
    pub annotations: Annotations,
    /// Whether the operator trusts the server's hints.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trusted: bool,
    /// Of the calls in one reply only those of the highest priority run.
    #[serde(default)]
    pub priority: i32,
    /// Seconds there are for whoever answers its calls, if it is answered from outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_s: Option<u64>,
    /// What the policy says of the tool before any call is known.
    pub verdict: Verdict,
    /// Whether its definition changed during the run. Unless its server is trusted, its calls are asked about then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub changed: bool,
    /// Hash of the definition (origin, endpoint, description, schemas, annotations); a changed tool is another tool.
    pub hash: String,
}

impl ExternalTool {
    /// The tool as the model is shown it, under the name that is its own. What a policy says of it is not known here.
    pub fn to_tool(&self) -> Tool {
        let origin = Origin::External { tool: self.name.clone() };
        let annotations = Annotations::default();
        let (input, output) = (&self.input_schema, self.result_schema.as_ref());
        Tool {
            name: external_name(&self.name),
            own_name: None,
            hash: Tool::definition_hash((&origin, None), &self.description, input, output, &annotations),
            origin,
            endpoint: None,
            description: self.description.clone(),
            input_schema: Arc::new(input.clone()),
            output_schema: output.cloned().map(Arc::new),
            annotations,
            trusted: false,
            priority: self.priority,
            deadline_s: self.deadline_s,
            verdict: Verdict::Ask,
            changed: false,
        }
    }
}

impl Tool {
    /// The hash of what a server or caller says a tool is.
    pub(super) fn definition_hash(
        (origin, endpoint): (&Origin, Option<&Endpoint>),
        description: &str,
        input_schema: &Value,
        output_schema: Option<&Value>,
        annotations: &Annotations,
    ) -> String {
        let mut definition = json!({
            "origin": origin, "description": description, "input": input_schema, "output": output_schema,
            "annotations": annotations,
        });
        // Where there is no server to be reached, the hash is what it was before servers were told apart.
        if let (Some(endpoint), Value::Object(members)) = (endpoint, &mut definition) {
            members.insert("endpoint".to_owned(), endpoint.fingerprint.as_str().into());
        }
        json::hash(&definition)
    }

    /// Whether a call whose outcome is unknown may simply be made again (law 4): only when the operator trusts the
    /// server and the server says that repeating is harmless.
    pub fn is_repeatable(&self) -> bool {
        let hint = |hint: Option<bool>| hint == Some(true);
        self.trusted && (hint(self.annotations.read_only_hint) || hint(self.annotations.idempotent_hint))
    }

    /// That it is not offered, and why.
    pub(super) fn left_out(&self, reason: String) -> LeftOut {
        let (Origin::Mcp { tool, .. } | Origin::External { tool } | Origin::Builtin { tool }) = &self.origin;
        LeftOut { server: self.server().cloned(), tool: Some(tool.clone()), reason }
    }

    /// The server that runs it, if one does.
    pub fn server(&self) -> Option<&ServerId> {
        match &self.origin {
            Origin::Mcp { server, .. } => Some(server),
            Origin::External { .. } | Origin::Builtin { .. } => None,
        }
    }
}

fn any_object() -> Value {
    json!({"type": "object"})
}
