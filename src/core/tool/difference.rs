//! Where a tool is not what it was, told so that a person sees it at a glance.

use serde::{Deserialize, Serialize};

use super::Tool;

/// How much of each side is shown, from a little before the place where they begin to differ.
const SHOWN_CHARS: usize = 240;
const LEAD_CHARS: usize = 40;

/// One thing that is not as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// What, in words: `description`, `input schema`, `policy` and the like.
    pub what: String,
    /// What it was, or the part of it that differs.
    pub was: String,
    /// What it is.
    pub is: String,
}

impl Difference {
    /// Two texts, cut to the part where they differ.
    pub fn new(what: &str, was: &str, is: &str) -> Self {
        let same = was.chars().zip(is.chars()).take_while(|(a, b)| a == b).count();
        let from = same.saturating_sub(LEAD_CHARS);
        let part = |text: &str| {
            let lead = if from > 0 { "…" } else { "" };
            let tail = if text.chars().count() > from + SHOWN_CHARS { "…" } else { "" };
            format!("{lead}{}{tail}", text.chars().skip(from).take(SHOWN_CHARS).collect::<String>())
        };
        Self { what: what.to_owned(), was: part(was), is: part(is) }
    }
}

impl Tool {
    /// Where the definition of a tool differs from what it was. Empty if the hashes agree, and only then.
    pub fn differences(&self, now: &Self) -> Vec<Difference> {
        if self.hash == now.hash {
            return Vec::new();
        }
        let json = |value: Option<String>| value.unwrap_or_else(|| "none".to_owned());
        let schema = |tool: &Self| Some(tool.input_schema.to_string());
        let result = |tool: &Self| tool.output_schema.as_ref().map(ToString::to_string);
        let hints = |tool: &Self| serde_json::to_string(&tool.annotations).ok();
        let sides = [
            ("description", Some(self.description.clone()), Some(now.description.clone())),
            ("input schema", schema(self), schema(now)),
            ("result schema", result(self), result(now)),
            ("annotations", hints(self), hints(now)),
            ("server (the way it is reached)", self.endpoint.clone(), now.endpoint.clone()),
        ];
        let sides = sides.into_iter().map(|(what, was, is)| (what, json(was), json(is)));
        let differing = sides.filter(|(_, was, is)| was != is);
        let found: Vec<_> = differing.map(|(what, was, is)| Difference::new(what, &was, &is)).collect();
        match found.is_empty() {
            // Something that is hashed and not shown, or a hash of other days.
            true => vec![Difference::new("definition", &self.hash, &now.hash)],
            false => found,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::core::tool::{Annotations, ExternalTool, Origin, Toolset, ToolsetRules};

    fn external(description: &str) -> Tool {
        let declared = json!({"name": "order", "description": description});
        let declared: ExternalTool = serde_json::from_value(declared).expect("a declaration");
        let toolset = Toolset::assemble(&[declared], &[], &ToolsetRules::default());
        let tool = toolset.iter().next().expect("one tool");
        (**tool).clone()
    }

    #[test]
    fn a_tool_without_a_server_is_hashed_as_it_was_before_servers_had_addresses() {
        let tool = external("orders");
        let before = json!({
            "origin": Origin::External { tool: "order".into() }, "description": "orders",
            "input": {"type": "object"}, "output": null, "annotations": Annotations::default(),
        });
        assert_eq!(tool.hash, crate::core::json::hash(&before));
    }

    #[test]
    fn two_hashes_are_never_without_a_difference() {
        let tool = external("orders");
        let other = Tool { hash: "sha256:of other days".into(), ..tool.clone() };
        assert_eq!(tool.differences(&other), [Difference::new("definition", &tool.hash, &other.hash)]);
        assert_eq!(tool.differences(&external("sells"))[0].what, "description");
        assert_eq!(tool.differences(&tool), []);
    }
}
