//! CHAIN spans of the servers whose tools were listed, with starting the server, connecting and reconnecting.
//!
//! A run continues without an unavailable server, as it does after the error of a tool. The span is still an error, so
//! that a search for failures finds it.

use jiff::Timestamp;
use serde_json::json;
use toolgate_core::id::ServerId;
use toolgate_core::tool::{LeftOut, Toolset};

use super::attributes::Attributes;
use super::span::{SpanEvent, Status};
use super::tool::CutShort;
use super::{SpanContent, names};

/// The most tools, and the most left-out tools, that the span names.
const NAMED: usize = 200;

/// The listing of a server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Listing<'a> {
    pub(super) server: &'a ServerId,
    /// How long opening a connection took, if one was opened.
    pub(super) connect_ms: Option<u64>,
    pub(super) result: ListingResult<'a>,
    pub(super) content: SpanContent,
}

/// The result of a listing.
#[derive(Clone, Copy, Debug)]
pub(super) enum ListingResult<'a> {
    /// The tools of all servers.
    Found(&'a Toolset),
    /// The tools are those of before, because the server did not list them, with the reason.
    Failed(&'a Toolset, &'a str),
    /// The execution ended first.
    CutShort(CutShort),
}

impl<'a> Listing<'a> {
    /// The MCP method that took the time: opening a connection takes longer than the list.
    pub(super) fn method(&self) -> &'static str {
        if self.connect_ms.is_some() { "initialize" } else { "tools/list" }
    }

    /// All attributes except the ones common to all spans of an execution.
    pub(super) fn attributes(&self, to: &mut Attributes) {
        to.word(names::SPAN_KIND, "CHAIN");
        to.text(names::MCP_METHOD, self.method());
        to.text_if(names::ERROR_TYPE, self.failure().map(|(word, _)| word));
        to.text(names::LISTED_SERVER, self.server.as_str());
        to.int(names::CONNECT_MS, self.connect_ms);
        to.input(&json!({ "server": self.server }).to_string(), self.content.hide_inputs);
        let Some(toolset) = self.toolset() else { return };
        let offered = || toolset.iter().filter(|tool| tool.server() == Some(self.server));
        let left_out = || toolset.left_out().iter().filter(|left| left.server.as_ref() == Some(self.server));
        to.int(names::LISTED_TOOLS, offered().count() as u64);
        to.int(names::LISTED_LEFT_OUT, left_out().count() as u64);
        let tools: Vec<&str> = offered().map(|tool| tool.name.as_str()).take(NAMED).collect();
        let left_out: Vec<&LeftOut> = left_out().take(NAMED).collect();
        to.output(&json!({ "tools": tools, "skipped": left_out }).to_string(), self.content.hide_outputs);
    }

    /// The status and, for a failure, the exception event.
    pub(super) fn status(&self, at: Timestamp) -> (Status, Option<SpanEvent>) {
        match self.failure() {
            None => (Status::Ok, None),
            Some((word, why)) => (Status::error(why), Some(SpanEvent::exception(word, why, at))),
        }
    }

    /// The value of `error.type` and a sentence, if it failed.
    fn failure(&self) -> Option<(&'static str, &'a str)> {
        let why = match self.result {
            ListingResult::CutShort(cut) => return Some((cut.as_str(), cut.message())),
            ListingResult::Failed(_, why) => why,
            ListingResult::Found(toolset) => {
                let is_missing = |left: &&LeftOut| left.server.as_ref() == Some(self.server) && left.tool.is_none();
                let missing = toolset.left_out().iter().find(is_missing)?;
                if toolset.iter().any(|tool| tool.server() == Some(self.server)) {
                    return None;
                }
                missing.reason.as_str()
            }
        };
        Some(("unavailable", if self.content.hide_outputs { "the server could not be listed" } else { why }))
    }

    fn toolset(&self) -> Option<&'a Toolset> {
        match self.result {
            ListingResult::Found(toolset) | ListingResult::Failed(toolset, _) => Some(toolset),
            ListingResult::CutShort(_) => None,
        }
    }
}
