//! CHAIN span of tool discovery, which includes connecting to the servers.
//!
//! A run continues without an unavailable server, as it does after the error of a tool. The span is still an error, so
//! that a search for failures finds it.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::json;
use toolgate_core::id::ServerId;
use toolgate_core::tool::{LeftOut, Origin, Toolset};

use super::attributes::Attributes;
use super::span::{SpanEvent, Status};
use super::tool::CutShort;
use super::{SpanContent, names};

/// The most tools, and the most left-out tools, that the span names.
const NAMED: usize = 200;

/// The result of tool discovery.
#[derive(Clone, Copy, Debug)]
pub(super) enum DiscoveryResult<'a> {
    Found(&'a Toolset),
    /// The execution ended first.
    CutShort(CutShort),
}

impl DiscoveryResult<'_> {
    /// The value of `error.type` and a sentence, if it failed.
    fn failure(self, servers: &[ServerId], content: SpanContent) -> Option<(&'static str, String)> {
        match self {
            Self::CutShort(cut) => Some((cut.as_str(), cut.message().to_owned())),
            Self::Found(toolset) => {
                let failed: BTreeSet<&ServerId> = failures(toolset).filter_map(|left| left.server.as_ref()).collect();
                let offers = |server: &ServerId| toolset.iter().any(|tool| tool.server() == Some(server));
                if !servers.iter().any(|server| failed.contains(server) && !offers(server)) {
                    return None;
                }
                let why = match content.hide_outputs {
                    true => "a server could not be listed".to_owned(),
                    false => failures(toolset).map(|left| left.reason.as_str()).collect::<Vec<_>>().join("; "),
                };
                Some(("unavailable", why))
            }
        }
    }
}

/// All attributes except the ones common to all spans of an execution.
pub(super) fn attributes(servers: &[ServerId], listed: DiscoveryResult<'_>, content: SpanContent, to: &mut Attributes) {
    to.text(names::SPAN_KIND, "CHAIN");
    to.text(names::MCP_METHOD, "tools/list");
    to.text_if(names::ERROR_TYPE, listed.failure(servers, content).map(|(word, _)| word));
    to.texts(names::LISTED_SERVERS, servers.iter().map(ToString::to_string));
    to.input(&json!({ "servers": servers }).to_string(), content.hide_inputs);
    let DiscoveryResult::Found(toolset) = listed else { return };
    let offered = || toolset.iter().filter(|tool| matches!(tool.origin, Origin::Mcp { .. }));
    let left_out = || toolset.left_out().iter().filter(|left| left.server.is_some());
    to.int(names::LISTED_TOOLS, offered().count() as u64);
    to.int(names::LISTED_LEFT_OUT, left_out().count() as u64);
    let tools: Vec<&str> = offered().map(|tool| tool.name.as_str()).take(NAMED).collect();
    let left_out: Vec<&LeftOut> = left_out().take(NAMED).collect();
    to.output(&json!({ "tools": tools, "skipped": left_out }).to_string(), content.hide_outputs);
}

/// The status and, for a failure, the exception event.
pub(super) fn status(
    servers: &[ServerId],
    listed: DiscoveryResult<'_>,
    at: Timestamp,
    content: SpanContent,
) -> (Status, Option<SpanEvent>) {
    match listed.failure(servers, content) {
        None => (Status::Ok, None),
        Some((word, why)) => (Status::error(&why), Some(SpanEvent::exception(word, &why, at))),
    }
}

/// The servers that could not be listed, with the reasons.
fn failures(toolset: &Toolset) -> impl Iterator<Item = &LeftOut> {
    toolset.left_out().iter().filter(|left| left.server.is_some() && left.tool.is_none())
}
