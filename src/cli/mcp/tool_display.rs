//! Display of a tool for its author.

use serde_json::Value;

use super::signature::signature;
use crate::cli::text::one_line;
use crate::cli::view::DisplaySettings;
use crate::core::tool::{Annotations, Tool};

/// Descriptions are written for models, so this is the limit on lines to show.
const LINES: usize = 2;

/// The level of detail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Schemas {
    /// Schemas and full descriptions.
    Shown,
    /// The arguments on one line and the start of the description.
    Hidden,
}

/// The lines of a tool: names and hints, description, arguments.
pub(super) fn tool(tool: &Tool, schemas: Schemas, look: DisplaySettings) -> Vec<String> {
    let paint = look.paint;
    let title = tool.annotations.title.as_ref().map(|title| format!("  {}", one_line(title, 60))).unwrap_or_default();
    let name = paint.bold(one_line(tool.origin.tool_name(), 200));
    let mut lines = vec![format!("{name}{title}  {}", paint.dim(format!("→ {}", tool.name)))];
    let description = tool.description.trim().to_owned();
    let shown = match schemas {
        Schemas::Shown => description,
        Schemas::Hidden => one_line(&description, look.room(2) * LINES),
    };
    lines.extend(shown.lines().map(|line| format!("  {line}")));
    lines.push(format!("  {}{}", paint.cyan(signature(&tool.input_schema)), paint.dim(hints(&tool.annotations))));
    if schemas == Schemas::Shown {
        lines.extend(schema("takes", &tool.input_schema));
        lines.extend(tool.output_schema.iter().flat_map(|output| schema("returns", output)));
    }
    lines
}

fn schema(what: &str, schema: &Value) -> Vec<String> {
    let text = serde_json::to_string_pretty(schema).unwrap_or_else(|_| schema.to_string());
    [format!("  {what}:")].into_iter().chain(text.lines().map(|line| format!("    {line}"))).collect()
}

/// The server's annotations in words.
fn hints(annotations: &Annotations) -> String {
    let hints = [
        (annotations.read_only_hint, "read-only", "writes"),
        (annotations.destructive_hint, "destructive", "not destructive"),
        (annotations.idempotent_hint, "idempotent", "not idempotent"),
        (annotations.open_world_hint, "open world", "closed world"),
    ];
    let words = hints.into_iter().filter_map(|(hint, yes, no)| hint.map(|hint| if hint { yes } else { no }));
    let words: Vec<&str> = words.collect();
    if words.is_empty() { String::new() } else { format!("  [{}]", words.join(", ")) }
}
