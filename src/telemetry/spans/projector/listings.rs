//! Tool discovery. Only its result is journaled, so it starts at the preceding fact.

use jiff::Timestamp;
use toolgate_core::run::{Step, labels};
use toolgate_core::tool::Toolset;

use super::Projector;
use crate::spans::execution::Child;
use crate::spans::listing::{self, DiscoveryResult};
use crate::spans::names;
use crate::spans::span::{Kind, Span};
use crate::spans::tool::CutShort;

impl Projector {
    /// The servers were listed.
    pub(super) fn listed(&mut self, seq: u64, at: Timestamp, toolset: &Toolset) -> Option<Span> {
        let is_first = self.lifecycle.run()?.tools().is_none();
        let seq = if is_first { self.execution.as_ref()?.seq } else { seq };
        self.listing_span(seq, at, DiscoveryResult::Found(toolset))
    }

    /// The execution ended during discovery.
    pub(super) fn listing_cut_short(&mut self, at: Timestamp, cut: CutShort) -> Option<Span> {
        if self.lifecycle.run()?.next() != Step::ListTools {
            return None;
        }
        self.listing_span(self.execution.as_ref()?.seq, at, DiscoveryResult::CutShort(cut))
    }

    fn listing_span(&mut self, seq: u64, end: Timestamp, listed: DiscoveryResult<'_>) -> Option<Span> {
        let spec = &self.lifecycle.run()?.started().spec;
        if spec.servers.is_empty() {
            return None;
        }
        let (status, exception) = listing::status(&spec.servers, listed, end, self.content);
        let execution = self.execution.as_mut()?;
        let child = Child {
            label: labels::listing(seq),
            name: "tools/list".to_owned(),
            kind: Kind::Client,
            start: execution.last,
            end,
            status,
            events: exception.into_iter().collect(),
        };
        let (iteration, content) = (self.lifecycle.iteration(), self.content);
        execution.child(child, |to| {
            to.int(names::ITERATION, u64::from(iteration));
            listing::attributes(&spec.servers, listed, content, to);
        })
    }
}
