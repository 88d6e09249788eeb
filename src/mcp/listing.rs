//! The tools of a server, page by page. A broken tool is left out alone, with the reason; the rest is kept. Schemas are
//! passed on as they are.

use std::collections::HashSet;
use std::time::Duration;

use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::answer::excerpt;
use super::connection::Connection;
use super::exchange::Limits;
use super::fault::Fault;
use crate::core::tool::{Annotations, McpTool};

/// No server has that many pages; one that says so repeats itself.
const MAX_PAGES: usize = 100;

/// More tools than this no model is offered; every one of them is journaled, named and compiled.
const MAX_TOOLS: usize = 1000;
/// The longest name and the longest description that are passed on, in bytes.
const MAX_NAME: usize = 256;
const MAX_DESCRIPTION: usize = 64 * 1024;

/// What a server listed.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Listing {
    /// The tools that can be used, by name; those of one name in the server's order.
    pub(super) tools: Vec<McpTool>,
    /// What cannot be used: the tool's name, if it has one, and the reason.
    pub(super) left_out: Vec<(Option<String>, String)>,
    /// How long the server says that this holds (`ttlMs`): the shortest time of its pages.
    pub(super) time_to_live: Option<Duration>,
}

/// Asks for all pages. The order does not depend on the server's mood: prompts and comparisons live on that.
pub(super) async fn list(connection: &Connection, meta: &Map<String, Value>, limits: Limits) -> Result<Listing, Fault> {
    let mut listing = all_pages(connection, meta, limits).await?;
    connection.take_up(&mut listing);
    listing.tools.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(listing)
}

async fn all_pages(connection: &Connection, meta: &Map<String, Value>, limits: Limits) -> Result<Listing, Fault> {
    let mut listing = Listing::default();
    let mut cursor = None;
    let mut seen = HashSet::new();
    for _ in 0..MAX_PAGES {
        let params = PaginatedRequestParams::default().with_cursor(cursor.take());
        let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
        let page = connection.exchange(request, meta.clone(), limits, &|_| {}).await?;
        let Some(next) = listing.add_page(page)? else {
            return Ok(listing);
        };
        if listing.is_full() {
            listing.overflowed();
            return Ok(listing);
        }
        if !seen.insert(next.clone()) {
            listing.stopped(&format!("it gave the cursor `{next}` twice"));
            return Ok(listing);
        }
        cursor = Some(next);
    }
    listing.stopped(&format!("it has more than {MAX_PAGES} pages"));
    Ok(listing)
}

impl Listing {
    /// Adds the tools of a page and returns the cursor of the next one.
    fn add_page(&mut self, page: Value) -> Result<Option<String>, Fault> {
        let Value::Object(mut page) = page else {
            return Err(Fault::Unreadable(excerpt(&page)));
        };
        let Some(Value::Array(tools)) = page.remove("tools") else {
            return Err(Fault::Unreadable(format!("`tools` is no list in {}", excerpt(&Value::Object(page)))));
        };
        if let Some(time_to_live) = page.get("ttlMs").and_then(Value::as_u64).map(Duration::from_millis) {
            self.time_to_live = Some(self.time_to_live.map_or(time_to_live, |shortest| shortest.min(time_to_live)));
        }
        for tool in tools {
            if self.is_full() {
                self.overflowed();
                return Ok(None);
            }
            let name = tool.get("name").and_then(Value::as_str).map(str::to_owned);
            match read(tool) {
                Ok(tool) => self.tools.push(tool),
                Err(wrong) => {
                    let place = self.tools.len() + self.left_out.len() + 1;
                    let name = name.filter(|name| name.len() <= MAX_NAME).unwrap_or_else(|| format!("#{place}"));
                    let reason = format!("its definition is malformed: {wrong}. Correct it in the server");
                    self.left_out.push((Some(name), reason));
                }
            }
        }
        match page.remove("nextCursor") {
            Some(Value::String(cursor)) if !cursor.is_empty() => Ok(Some(cursor)),
            _ => Ok(None),
        }
    }

    fn is_full(&self) -> bool {
        self.tools.len() + self.left_out.len() >= MAX_TOOLS
    }

    fn overflowed(&mut self) {
        self.stopped(&format!("it has more than {MAX_TOOLS} tools"));
    }

    fn stopped(&mut self, why: &str) {
        let kept = self.tools.len();
        let reason = format!("its list of tools does not end ({why}); the {kept} tools up to there are used");
        self.left_out.push((None, reason));
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Definition {
    name: String,
    description: Option<String>,
    input_schema: Option<Value>,
    output_schema: Option<Value>,
    annotations: Option<Annotations>,
}

fn read(tool: Value) -> Result<McpTool, String> {
    let definition: Definition = serde_json::from_value(tool).map_err(|error| error.to_string())?;
    if definition.name.is_empty() {
        return Err("`name` is empty".into());
    }
    if definition.name.len() > MAX_NAME {
        return Err(format!("`name` is longer than {MAX_NAME} bytes"));
    }
    if definition.description.as_ref().is_some_and(|text| text.len() > MAX_DESCRIPTION) {
        return Err(format!("`description` is longer than {} KiB", MAX_DESCRIPTION / 1024));
    }
    let input_schema = definition.input_schema.ok_or("`inputSchema` is missing")?;
    if !input_schema.is_object() {
        return Err(format!("`inputSchema` is {}, not an object", excerpt(&input_schema)));
    }
    if let Some(output) = definition.output_schema.as_ref().filter(|schema| !schema.is_object()) {
        return Err(format!("`outputSchema` is {}, not an object", excerpt(output)));
    }
    Ok(McpTool {
        name: definition.name,
        description: definition.description.unwrap_or_default(),
        input_schema,
        output_schema: definition.output_schema,
        annotations: definition.annotations.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str) -> Value {
        json!({"name": name, "inputSchema": {"type": "object"}})
    }

    #[test]
    fn a_malformed_tool_is_left_out_alone() {
        let mut listing = Listing::default();
        let page = json!({"tools": [
            tool("good"), {"name": "bare"}, {"name": "permissive", "inputSchema": true}, {"inputSchema": {}},
            {"name": "odd", "inputSchema": {}, "annotations": {"readOnlyHint": "yes"}}, tool("fine"),
        ]});
        assert_eq!(listing.add_page(page), Ok(None));
        let kept: Vec<&str> = listing.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(kept, ["good", "fine"]);
        let left_out: Vec<Option<&str>> = listing.left_out.iter().map(|(name, _)| name.as_deref()).collect();
        assert_eq!(left_out, [Some("bare"), Some("permissive"), Some("#4"), Some("odd")]);
        assert!(listing.left_out[1].1.contains("`inputSchema` is true, not an object"), "{:?}", listing.left_out);
    }

    #[test]
    fn a_list_lives_as_long_as_the_shortest_of_its_pages() {
        let mut listing = Listing::default();
        for (time_to_live, expected) in
            [(json!(null), None), (json!(5000), Some(5)), (json!(9000), Some(5)), (json!(-1), Some(5))]
        {
            listing.add_page(json!({"tools": [], "ttlMs": time_to_live})).expect("a page");
            assert_eq!(listing.time_to_live, expected.map(Duration::from_secs));
        }
    }

    #[test]
    fn a_server_that_lists_without_measure_is_cut_to_one() {
        let mut listing = Listing::default();
        let many: Vec<Value> = (0..MAX_TOOLS + 5).map(|number| tool(&format!("t{number}"))).collect();
        assert_eq!(listing.add_page(json!({"tools": many, "nextCursor": "2"})), Ok(None));
        assert_eq!(listing.tools.len(), MAX_TOOLS);
        let cut = "its list of tools does not end (it has more than 1000 tools); the 1000 tools up to there are used";
        assert_eq!(listing.left_out, [(None, cut.to_owned())]);
    }

    #[test]
    fn a_name_or_a_description_as_long_as_a_book_leaves_its_tool_out() {
        let mut listing = Listing::default();
        let mut wordy = tool("wordy");
        wordy["description"] = "x".repeat(MAX_DESCRIPTION + 1).into();
        let page = json!({"tools": [tool(&"x".repeat(MAX_NAME + 1)), wordy, tool(&"x".repeat(MAX_NAME))]});
        assert_eq!(listing.add_page(page), Ok(None));
        let told: Vec<(Option<&str>, bool)> =
            listing.left_out.iter().map(|(name, why)| (name.as_deref(), why.contains("is longer than"))).collect();
        assert_eq!((told, listing.tools.len()), (vec![(Some("#1"), true), (Some("wordy"), true)], 1));
    }

    #[test]
    fn schemas_keep_every_byte_and_annotations_their_hints() {
        let schema = json!({"type": "object", "z": 1, "a": {"$ref": "#/$defs/b"}, "x-own": [null]});
        let mut listing = Listing::default();
        let page = json!({"tools": [{
            "name": "t", "description": "d", "inputSchema": schema, "outputSchema": schema,
            "annotations": {"title": "T", "readOnlyHint": true, "destructiveHint": false}, "execution": {},
        }], "nextCursor": "2"});
        assert_eq!(listing.add_page(page), Ok(Some("2".into())));
        let tool = &listing.tools[0];
        assert_eq!(tool.input_schema.to_string(), schema.to_string());
        assert_eq!(tool.output_schema, Some(schema));
        let hints = &tool.annotations;
        assert_eq!(
            (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint),
            (Some(true), Some(false), None)
        );
    }
}
