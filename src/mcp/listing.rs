//! Paginated `tools/list`. A broken tool is left out alone, with the reason; the rest is kept. So are the pages of a
//! list that takes too long. Schemas are passed on unchanged.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ClientRequest, ListToolsRequest, PaginatedRequestParams};
use serde::Deserialize;
use serde_json::{Map, Value};
use toolgate_core::tool::{Annotations, McpTool};

use super::answer::wrong_result_type;
use super::call_transport::LastRequest;
use super::connection::Connection;
use super::fault::{Fault, seconds};
use super::limits::Limits;
use super::measure::{depth, excerpt, shortened, size};
use super::negotiation::Era;
use super::transport::JsonFlaw;

/// The upper limit of pages without a tool; a server with more of them does not end its list. The tool limit bounds
/// all other pages.
const MAX_EMPTY_PAGES: usize = 100;

/// The longest name and the longest description that are passed on, in bytes.
const MAX_NAME: usize = 256;
const MAX_DESCRIPTION: usize = 64 * 1024;
const MAX_TITLE: usize = 1024;
/// The size and depth limits of a schema that is passed on. The journal nests it in other values, and it is compiled.
const MAX_SCHEMA: usize = 256 * 1024;
const MAX_DEPTH: usize = 64;
/// The size limits of a list, in bytes: how much is kept, and how much is read.
const MAX_KEPT: usize = 16 * 1024 * 1024;
const MAX_READ: usize = 64 * 1024 * 1024;
const MAX_CURSOR: usize = 64 * 1024;

/// What to do about a list that takes too long.
pub(super) const SLOW_LIST_REMEDY: &str = "raise its `start_timeout_s`, which also limits this, if it needs longer";

/// The tool list of a server.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Listing {
    /// The upper limit of tools. Each one is journaled, named and compiled.
    pub(super) max_tools: usize,
    /// The usable tools, by name; tools of the same name in the server's order.
    pub(super) tools: Arc<Vec<McpTool>>,
    /// The unusable tools: the name, if there is one, and the reason.
    pub(super) left_out: Vec<(Option<String>, String)>,
    /// The lifetime that the server states (`ttlMs`): the shortest of its pages.
    pub(super) time_to_live: Option<Duration>,
    /// The size of the kept tools, in bytes.
    pub(super) kept: usize,
    /// Why only the first pages are here; completes the sentence "the MCP server `x` ...".
    pub(super) incomplete: Option<String>,
}

/// Requests all pages. The result is sorted, because prompts and comparisons depend on a stable order.
pub(super) async fn list(
    connection: &Connection,
    meta: &Map<String, Value>,
    limits: Limits,
    max_tools: usize,
) -> Result<Listing, Fault> {
    let mut listing = all_pages(connection, meta, limits, max_tools).await?;
    let tools = Arc::make_mut(&mut listing.tools);
    connection.register_tools(tools, &mut listing.left_out);
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(listing)
}

async fn all_pages(
    connection: &Connection,
    meta: &Map<String, Value>,
    limits: Limits,
    max_tools: usize,
) -> Result<Listing, Fault> {
    let mut listing = Listing { max_tools, ..Listing::default() };
    let mut cursor = None;
    let (mut seen, mut read, mut empty_pages) = (HashSet::new(), 0, 0);
    loop {
        let before = listing.tool_count();
        let params = PaginatedRequestParams::default().with_cursor(cursor.take());
        let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
        let (page, flaws) =
            match connection.exchange_leniently(request, meta.clone(), limits, &LastRequest::default()).await {
                Err(Fault::Silent(_) | Fault::Late(_) | Fault::OutOfTime(_)) if !listing.tools.is_empty() => {
                    listing.mark_late(limits.total);
                    return Ok(listing);
                }
                // It says that it has no tools, and tools are asked for all the same: some servers forget to say it.
                Err(Fault::Refused { .. }) if !connection.has_tools_capability() => return Ok(listing),
                answered => answered?,
            };
        read += size(&page);
        if let (Era::Modern, Some(wrong)) = (connection.era(), wrong_result_type(&page)) {
            return Err(Fault::Unreadable(wrong));
        }
        let Some(next) = listing.add_page(page, &flaws, connection.era())? else {
            return Ok(listing);
        };
        if listing.is_full() {
            return Ok(listing);
        }
        empty_pages += usize::from(listing.tool_count() == before);
        if let Some(why) = cursor_error(&next, &seen, read, empty_pages) {
            listing.mark_endless(&why);
            return Ok(listing);
        }
        seen.insert(next.clone());
        cursor = Some(next);
    }
}

/// Why not to request the next page.
fn cursor_error(next: &str, seen: &HashSet<String>, read: usize, empty_pages: usize) -> Option<String> {
    if empty_pages >= MAX_EMPTY_PAGES {
        return Some(format!("{empty_pages} of its pages have no tool"));
    }
    if read > MAX_READ {
        return Some(format!("it is longer than {} MiB", MAX_READ / 1024 / 1024));
    }
    if next.len() > MAX_CURSOR {
        return Some(format!("it gave a cursor that is longer than {} KiB", MAX_CURSOR / 1024));
    }
    seen.contains(next).then(|| format!("it gave the cursor `{}` twice", shortened(next)))
}

impl Listing {
    /// Adds the tools of a page and returns the cursor of the next one.
    fn add_page(&mut self, page: Value, flaws: &[JsonFlaw], era: Era) -> Result<Option<String>, Fault> {
        let Value::Object(mut page) = page else {
            return Err(Fault::Unreadable(excerpt(&page)));
        };
        let Some(Value::Array(tools)) = page.remove("tools") else {
            return Err(Fault::Unreadable(format!("`tools` is no list in {}", excerpt(&Value::Object(page)))));
        };
        if let Some(time_to_live) = page.get("ttlMs").and_then(Value::as_u64).map(Duration::from_millis) {
            self.time_to_live = Some(self.time_to_live.map_or(time_to_live, |shortest| shortest.min(time_to_live)));
        }
        let mut broken = broken_tools(flaws);
        for (position, tool) in tools.into_iter().enumerate() {
            if self.is_full() {
                return Ok(None);
            }
            let name = tool.get("name").and_then(Value::as_str).map(str::to_owned);
            let read = match broken.remove(&position.to_string()) {
                Some(flaw) => Err(flaw.to_string()),
                None => read(tool),
            };
            match read {
                Ok(tool) => {
                    self.kept += bytes(&tool);
                    Arc::make_mut(&mut self.tools).push(tool);
                }
                Err(wrong) => {
                    let place = self.tool_count() + 1;
                    let name = name.filter(|name| name.len() <= MAX_NAME).unwrap_or_else(|| format!("#{place}"));
                    let reason = format!("its definition is malformed: {wrong}. Correct it in the server");
                    self.left_out.push((Some(name), reason));
                }
            }
        }
        match page.remove("nextCursor") {
            None | Some(Value::Null) => Ok(None),
            // The revision 2026-07-28 counts every text as a cursor. Before, servers send the empty one for "no more".
            Some(Value::String(cursor)) if cursor.is_empty() && era == Era::Legacy => Ok(None),
            Some(Value::String(cursor)) => Ok(Some(cursor)),
            Some(other) => {
                let kept = self.tools.len();
                let reason = format!(
                    "its `nextCursor` is {}, not a string, so the next page cannot be requested; the {kept} tools up to \
                     there are used",
                    excerpt(&other)
                );
                self.left_out.push((None, reason));
                Ok(None)
            }
        }
    }

    /// The number of listed tools.
    fn tool_count(&self) -> usize {
        self.tools.len() + self.left_out.len()
    }

    /// Whether the limit is reached, although there is another tool. The first such tool is reported.
    fn is_full(&mut self) -> bool {
        let (kept, most) = (self.tools.len(), self.max_tools);
        let reason = if self.kept > MAX_KEPT {
            let most = MAX_KEPT / 1024 / 1024;
            format!("its tools come to more than {most} MiB; the {kept} tools up to there are used")
        } else if self.tool_count() >= most {
            format!(
                "it has more than {most} tools; the {kept} tools up to there are used. Raise its `max_tools` if it needs more"
            )
        } else {
            return false;
        };
        self.left_out.push((None, reason));
        true
    }

    fn mark_late(&mut self, within: Duration) {
        let (kept, within) = (self.tools.len(), seconds(within));
        self.incomplete = Some(format!("did not complete its list of tools within {within} s; {SLOW_LIST_REMEDY}"));
        let reason = format!(
            "its list of tools was not complete within {within} s; the {kept} tools up to there are used. Raise its \
             `start_timeout_s` if it needs longer"
        );
        self.left_out.push((None, reason));
    }

    fn mark_endless(&mut self, why: &str) {
        let kept = self.tools.len();
        let reason = format!("its list of tools does not end ({why}); the {kept} tools up to there are used");
        self.left_out.push((None, reason));
    }
}

/// The tools of a page that contain a value that is not JSON, by their position, each with its first flaw.
fn broken_tools(flaws: &[JsonFlaw]) -> HashMap<String, JsonFlaw> {
    let inside = flaws.iter().filter_map(|flaw| flaw.within("tools"));
    let of_tool = inside.filter_map(|flaw| {
        let position = flaw.outermost()?.to_owned();
        let own = flaw.within(&position)?;
        Some((position, own))
    });
    // The first flaw of a tool is inserted last, and therefore kept.
    of_tool.collect::<Vec<_>>().into_iter().rev().collect()
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
    // The error message quotes the value, however long it is.
    let definition: Definition = serde_json::from_value(tool).map_err(|error| shortened(&error.to_string()))?;
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
    if definition
        .annotations
        .as_ref()
        .and_then(|hints| hints.title.as_ref())
        .is_some_and(|title| title.len() > MAX_TITLE)
    {
        return Err(format!("`annotations.title` is longer than {MAX_TITLE} bytes"));
    }
    is_measured("inputSchema", &input_schema)?;
    definition.output_schema.iter().try_for_each(|schema| is_measured("outputSchema", schema))?;
    if let Some(output) = definition.output_schema.as_ref().filter(|schema| !schema.is_object()) {
        return Err(format!("`outputSchema` is {}, not an object", excerpt(output)));
    }
    Ok(McpTool {
        name: definition.name,
        description: definition.description.unwrap_or_default(),
        input_schema,
        output_schema: definition.output_schema,
        annotations: definition.annotations.unwrap_or_default(),
        pinned: None,
    })
}

fn is_measured(name: &str, schema: &Value) -> Result<(), String> {
    if size(schema) > MAX_SCHEMA {
        return Err(format!("`{name}` is longer than {} KiB", MAX_SCHEMA / 1024));
    }
    match depth(schema) > MAX_DEPTH {
        true => Err(format!("`{name}` is nested more than {MAX_DEPTH} levels deep")),
        false => Ok(()),
    }
}

fn bytes(tool: &McpTool) -> usize {
    let output = tool.output_schema.as_ref().map_or(0, size);
    tool.name.len() + tool.description.len() + size(&tool.input_schema) + output
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const MOST: usize = 500;

    fn listing() -> Listing {
        Listing { max_tools: MOST, ..Listing::default() }
    }

    fn tool(name: &str) -> Value {
        json!({"name": name, "inputSchema": {"type": "object"}})
    }

    #[test]
    fn a_malformed_tool_is_left_out_alone() {
        let mut listing = listing();
        let page = json!({"tools": [
            tool("good"), {"name": "bare"}, {"name": "permissive", "inputSchema": true}, {"inputSchema": {}},
            {"name": "odd", "inputSchema": {}, "annotations": {"readOnlyHint": "yes"}}, tool("fine"),
        ]});
        assert_eq!(listing.add_page(page, &[], Era::Legacy), Ok(None));
        let kept: Vec<&str> = listing.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(kept, ["good", "fine"]);
        let left_out: Vec<Option<&str>> = listing.left_out.iter().map(|(name, _)| name.as_deref()).collect();
        assert_eq!(left_out, [Some("bare"), Some("permissive"), Some("#4"), Some("odd")]);
        assert!(listing.left_out[1].1.contains("`inputSchema` is true, not an object"), "{:?}", listing.left_out);
    }

    #[test]
    fn a_list_lives_as_long_as_the_shortest_of_its_pages() {
        let mut listing = listing();
        for (time_to_live, expected) in
            [(json!(null), None), (json!(5000), Some(5)), (json!(9000), Some(5)), (json!(-1), Some(5))]
        {
            listing.add_page(json!({"tools": [], "ttlMs": time_to_live}), &[], Era::Legacy).expect("a page");
            assert_eq!(listing.time_to_live, expected.map(Duration::from_secs));
        }
    }

    #[test]
    fn an_empty_cursor_is_a_cursor_since_2026_and_any_other_value_than_a_text_is_reported() {
        let page = |cursor: Value| json!({"tools": [tool("t")], "nextCursor": cursor});
        let next = |cursor: Value, era: Era| listing().add_page(page(cursor), &[], era);
        assert_eq!(next("".into(), Era::Modern), Ok(Some(String::new())));
        assert_eq!(next("".into(), Era::Legacy), Ok(None));
        assert_eq!(next(Value::Null, Era::Modern), Ok(None));
        let mut listing = listing();
        assert_eq!(listing.add_page(page(7.into()), &[], Era::Modern), Ok(None));
        assert!(listing.left_out[0].1.starts_with("its `nextCursor` is 7, not a string"), "{:?}", listing.left_out);
    }

    #[test]
    fn a_list_over_the_tool_limit_is_cut() {
        let mut listing = listing();
        let many: Vec<Value> = (0..MOST + 5).map(|number| tool(&format!("t{number}"))).collect();
        assert_eq!(listing.add_page(json!({"tools": many, "nextCursor": "2"}), &[], Era::Legacy), Ok(None));
        assert_eq!(listing.tools.len(), MOST);
        let cut =
            "it has more than 500 tools; the 500 tools up to there are used. Raise its `max_tools` if it needs more";
        assert_eq!(listing.left_out, [(None, cut.to_owned())]);
    }

    #[test]
    fn a_name_or_a_description_as_long_as_a_book_leaves_its_tool_out() {
        let mut listing = listing();
        let mut wordy = tool("wordy");
        wordy["description"] = "x".repeat(MAX_DESCRIPTION + 1).into();
        let page = json!({"tools": [tool(&"x".repeat(MAX_NAME + 1)), wordy, tool(&"x".repeat(MAX_NAME))]});
        assert_eq!(listing.add_page(page, &[], Era::Legacy), Ok(None));
        let left_out: Vec<(Option<&str>, bool)> =
            listing.left_out.iter().map(|(name, why)| (name.as_deref(), why.contains("is longer than"))).collect();
        assert_eq!((left_out, listing.tools.len()), (vec![(Some("#1"), true), (Some("wordy"), true)], 1));
    }

    #[test]
    fn an_oversized_schema_leaves_its_tool_out() {
        let nested = |levels: usize| (0..levels).fold(json!({}), |inner, _| json!({"not": inner}));
        let mut listing = listing();
        let page = json!({"tools": [
            {"name": "long", "inputSchema": {"description": "x".repeat(MAX_SCHEMA)}},
            {"name": "deep", "inputSchema": nested(MAX_DEPTH)},
            {"name": "out", "inputSchema": {}, "outputSchema": nested(MAX_DEPTH)},
            {"name": "titled", "inputSchema": {}, "annotations": {"title": "x".repeat(MAX_TITLE + 1)}},
            {"name": "fine", "inputSchema": nested(MAX_DEPTH - 1)},
        ]});
        assert_eq!(listing.add_page(page, &[], Era::Legacy), Ok(None));
        let reasons: Vec<&str> = listing.left_out.iter().map(|(_, why)| why.as_str()).collect();
        for (reason, complaint) in reasons.iter().zip([
            "`inputSchema` is longer than 256 KiB",
            "`inputSchema` is nested more than 64 levels deep",
            "`outputSchema` is nested more than 64 levels deep",
            "`annotations.title` is longer than 1024 bytes",
        ]) {
            assert!(reason.contains(complaint), "{reason}");
        }
        assert_eq!((reasons.len(), listing.tools.len()), (4, 1));
    }

    #[test]
    fn the_size_limit_of_a_list_covers_all_pages() {
        let mut listing = listing();
        let page = |from: usize| {
            let big = |number: usize| json!({"name": format!("t{number}"), "inputSchema": {"x": "x".repeat(200_000)}});
            json!({"tools": (from..from + 30).map(big).collect::<Vec<_>>(), "nextCursor": "more"})
        };
        let pages = (0..10)
            .take_while(|number| listing.add_page(page(number * 30), &[], Era::Legacy).expect("a page").is_some())
            .count();
        assert!((2..3).contains(&pages), "{pages}");
        assert!(listing.kept < MAX_KEPT + MAX_SCHEMA, "{}", listing.kept);
        assert!(listing.left_out[0].1.contains("its tools come to more than 16 MiB"), "{:?}", listing.left_out);
    }

    #[test]
    fn a_complaint_is_short_whatever_it_complains_of() {
        let mut listing = listing();
        let page = json!({"tools": [{"name": "t", "inputSchema": {}, "annotations": "A".repeat(3_000_000)}]});
        assert_eq!(listing.add_page(page, &[], Era::Legacy), Ok(None));
        assert!(listing.left_out[0].1.len() < 1000, "{}", listing.left_out[0].1.len());
        let cursor = "c".repeat(MAX_CURSOR);
        let why = cursor_error(&cursor, &HashSet::from([cursor.clone()]), 0, 0).expect("it was there");
        assert!(why.ends_with("...` twice") && why.len() < 1000, "{why}");
        assert!(cursor_error(&(cursor + "c"), &HashSet::new(), 0, 0).expect("too long").contains("longer than 64 KiB"));
        assert!(cursor_error("c", &HashSet::new(), MAX_READ + 1, 0).expect("too much").contains("longer than 64 MiB"));
        let why = cursor_error("c", &HashSet::new(), 0, MAX_EMPTY_PAGES).expect("too many");
        assert_eq!(why, "100 of its pages have no tool");
        assert_eq!(cursor_error("c", &HashSet::new(), MAX_READ, MAX_EMPTY_PAGES - 1), None);
    }

    #[test]
    fn schemas_keep_every_byte_and_annotations_their_hints() {
        let schema = json!({"type": "object", "z": 1, "a": {"$ref": "#/$defs/b"}, "x-own": [null]});
        let mut listing = listing();
        let page = json!({"tools": [{
            "name": "t", "description": "d", "inputSchema": schema, "outputSchema": schema,
            "annotations": {"title": "T", "readOnlyHint": true, "destructiveHint": false}, "execution": {},
        }], "nextCursor": "2"});
        assert_eq!(listing.add_page(page, &[], Era::Legacy), Ok(Some("2".into())));
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
