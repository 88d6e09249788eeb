//! Tool reference: a tool as programs read it, in events, reports and the HTTP API.

use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Origin, Tool};
use crate::id::ServerId;

/// A tool for programs. In JSON `{"type", "server", "name", "title"}`: `type` is `mcp`, `external` or `builtin`; `server` is
/// null except for `mcp`, and `title` if the tool has none.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolRef {
    pub origin: Origin,
    /// The title for people, from the annotations of the tool.
    pub title: Option<String>,
}

impl ToolRef {
    /// The reference to a defined tool, with the title of its annotations.
    pub fn new(tool: &Tool) -> Self {
        Self { origin: tool.origin.clone(), title: tool.annotations.title.clone() }
    }

    /// The name that its server, or the application, has for the tool.
    pub fn name(&self) -> &str {
        self.origin.tool_name()
    }
}

impl From<Origin> for ToolRef {
    /// The tool without a title.
    fn from(origin: Origin) -> Self {
        Self { origin, title: None }
    }
}

impl Serialize for ToolRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (kind, server) = match &self.origin {
            Origin::Mcp { server, .. } => ("mcp", Some(server)),
            Origin::External { .. } => ("external", None),
            Origin::Builtin { .. } => ("builtin", None),
        };
        let mut object = serializer.serialize_struct("ToolRef", 4)?;
        object.serialize_field("type", kind)?;
        object.serialize_field("server", &server)?;
        object.serialize_field("name", self.name())?;
        object.serialize_field("title", &self.title)?;
        object.end()
    }
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Written {
    Mcp { server: ServerId, name: String, title: Option<String> },
    External { name: String, title: Option<String> },
    Builtin { name: String, title: Option<String> },
}

impl<'de> Deserialize<'de> for ToolRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (origin, title) = match Written::deserialize(deserializer)? {
            Written::Mcp { server, name, title } => (Origin::Mcp { server, tool: name }, title),
            Written::External { name, title } => (Origin::External { tool: name }, title),
            Written::Builtin { name, title } => (Origin::Builtin { tool: name }, title),
        };
        Ok(Self { origin, title })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_origin_has_its_type_and_is_read_back() {
        let refund = || "refund".to_owned();
        for (origin, title, expected) in [
            (
                Origin::Mcp { server: "shop".into(), tool: refund() },
                Some("Refund"),
                json!({"type": "mcp", "server": "shop", "name": "refund", "title": "Refund"}),
            ),
            (
                Origin::External { tool: refund() },
                None,
                json!({"type": "external", "server": null, "name": "refund", "title": null}),
            ),
        ] {
            let tool = ToolRef { origin, title: title.map(str::to_owned) };
            assert_eq!(json!(tool), expected);
            assert_eq!(serde_json::from_value::<ToolRef>(expected).unwrap(), tool);
        }
    }
}
