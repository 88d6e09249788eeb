//! Tools as the model sees them, and the definitions they are made from.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Endpoint, LeftOut, Origin, PinnedArguments, Problem, ToolName, Undo, external_name};
use crate::id::ServerId;
use crate::json;
use crate::policy::Verdict;

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
    /// It may be destructive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Calling it again with the same arguments changes nothing more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// It interacts with an open world.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

/// A tool that the calling application declares and runs itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExternalTool {
    /// The caller's name for it; the model sees `ext_<name>`.
    pub name: String,
    #[serde(default)]
    pub description: String,
    /// JSON Schema of its arguments; default: any object.
    #[serde(default = "any_object", alias = "parameters", alias = "inputSchema")]
    pub input_schema: Value,
    /// JSON Schema of its result; a resume with a result that does not match is refused.
    #[serde(default, skip_serializing_if = "Option::is_none", alias = "outputSchema")]
    pub result_schema: Option<Value>,
    /// The priority: of the calls in one reply only those of the highest priority run.
    #[serde(default)]
    pub priority: i32,
    /// Seconds the caller has for its result; after that the model reads that there was none in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_s: Option<u64>,
}

/// A tool as an MCP server listed it, schemas verbatim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpTool {
    /// The server's name for it.
    pub name: String,
    pub description: String,
    /// The `inputSchema`, unaltered except for pinned arguments.
    pub input_schema: Value,
    /// The `outputSchema`, unaltered.
    pub output_schema: Option<Value>,
    /// The server's hints.
    pub annotations: Annotations,
    /// The arguments that the operator sets; `input_schema` lacks them.
    pub pinned: Option<PinnedArguments>,
}

/// A tool of a run's toolset.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// The name the model sees.
    pub name: ToolName,
    /// Its name if no other tool had the same one. The policy applies to both names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_name: Option<ToolName>,
    /// The origin, and its name there.
    pub origin: Origin,
    /// The endpoint of its MCP server: another program or address under the same name is another server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<Endpoint>,
    pub description: String,
    /// JSON Schema of its arguments, verbatim.
    pub input_schema: Arc<Value>,
    /// JSON Schema of its result, verbatim, if declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Arc<Value>>,
    /// The server's hints.
    #[serde(default)]
    pub annotations: Annotations,
    /// The arguments that the operator sets; `input_schema` lacks them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<PinnedArguments>,
    /// The tool that undoes its calls, in the runs of agents that compensate. Not part of the hash: it changes neither what
    /// the model reads nor what a call does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<Undo>,
    /// Whether the operator trusts the server's hints.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trusted: bool,
    /// The priority: of the calls in one reply only those of the highest priority run.
    #[serde(default)]
    pub priority: i32,
    /// Seconds for an answer, if its calls are answered from outside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_s: Option<u64>,
    /// The policy's verdict on the tool before any call is known.
    pub verdict: Verdict,
    /// Whether its definition changed during the run. Its calls then require approval, unless its server is trusted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub changed: bool,
    /// Whether the model sees it only while a grant covers calls of it: each of its calls requires approval.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
    /// Hash of the definition (origin, endpoint, description, schemas, annotations, pinned arguments); a changed tool is
    /// another tool.
    pub hash: String,
}

impl ExternalTool {
    /// A tool that takes any object, returns anything, and has the priority 0 and no deadline.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            input_schema: any_object(),
            result_schema: None,
            priority: 0,
            deadline_s: None,
        }
    }

    /// The same tool with this JSON Schema of its arguments.
    #[must_use]
    pub fn input_schema(self, input_schema: Value) -> Self {
        Self { input_schema, ..self }
    }

    /// The same tool with this JSON Schema of its result.
    #[must_use]
    pub fn result_schema(self, schema: Value) -> Self {
        Self { result_schema: Some(schema), ..self }
    }

    /// The tool under its own name, before the policy is applied.
    pub fn to_tool(&self) -> Tool {
        let origin = Origin::External { tool: self.name.clone() };
        let annotations = Annotations::default();
        let (input, output) = (&self.input_schema, self.result_schema.as_ref());
        Tool {
            name: external_name(&self.name),
            own_name: None,
            hash: Tool::definition_hash((&origin, None), &self.description, input, output, (&annotations, None)),
            origin,
            endpoint: None,
            description: self.description.clone(),
            input_schema: Arc::new(input.clone()),
            output_schema: output.cloned().map(Arc::new),
            annotations,
            pinned: None,
            undo: None,
            trusted: false,
            priority: self.priority,
            deadline_s: self.deadline_s,
            verdict: Verdict::Ask,
            changed: false,
            hidden: false,
        }
    }
}

impl Tool {
    /// The hash of a tool's definition as its server or caller declares it.
    pub(super) fn definition_hash(
        (origin, endpoint): (&Origin, Option<&Endpoint>),
        description: &str,
        input_schema: &Value,
        output_schema: Option<&Value>,
        (annotations, pinned): (&Annotations, Option<&PinnedArguments>),
    ) -> String {
        let mut definition = json!({
            "origin": origin, "description": description, "input": input_schema, "output": output_schema,
            "annotations": annotations,
        });
        // Without an endpoint or pinned arguments the hash is the same as before they were part of it.
        let endpoint = endpoint.map(|endpoint| ("endpoint", &endpoint.fingerprint));
        let pinned = pinned.map(|pinned| ("pinned", &pinned.fingerprint));
        if let Value::Object(members) = &mut definition {
            let optional = endpoint.into_iter().chain(pinned);
            members.extend(optional.map(|(name, hash)| (name.to_owned(), hash.as_str().into())));
        }
        json::hash(&definition)
    }

    /// A problem for each argument that only the operator sets.
    pub fn pinned_problems(&self, arguments: &Map<String, Value>) -> Vec<Problem> {
        self.pinned.as_ref().map(|pinned| pinned.problems(arguments)).unwrap_or_default()
    }

    /// Whether a call whose outcome is unknown may simply be made again (law 4): only when the operator trusts the
    /// server and the server says that repeating is harmless.
    pub fn is_repeatable(&self) -> bool {
        self.is_read_only() || (self.trusted && self.annotations.idempotent_hint == Some(true))
    }

    /// Whether a server that the operator trusts says that the tool changes nothing.
    pub fn is_read_only(&self) -> bool {
        self.trusted && self.annotations.read_only_hint == Some(true)
    }

    /// The entry of the tool in the list of omitted tools, with the reason.
    pub(super) fn left_out(&self, reason: String) -> LeftOut {
        LeftOut { server: self.server().cloned(), tool: Some(self.origin.tool_name().to_owned()), reason }
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
