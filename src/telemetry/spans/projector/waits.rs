//! Waits of an execution: for admission, and for servers. A wait for a server is followed by the tools that it listed, if
//! they changed.

use std::sync::Arc;

use jiff::Timestamp;
use toolgate_core::id::ServerId;
use toolgate_core::run::{Run, ServerWait, Step, labels};
use toolgate_core::tool::Toolset;

use super::{Projector, milliseconds};
use crate::spans::execution::Child;
use crate::spans::listing::{Listing, ListingResult};
use crate::spans::names;
use crate::spans::span::{Kind, Span, Status};
use crate::spans::tool::CutShort;

impl Projector {
    /// The execution waits for admission.
    pub(super) fn queued(&mut self, seq: u64, at: Timestamp) {
        if let Some(execution) = &mut self.execution {
            execution.queued = Some((seq, at));
        }
    }

    /// The wait for admission is over, or was cut short. A run that leaves the queue without admission did not fail.
    pub(super) fn left_queue(&mut self, at: Timestamp) -> Option<Span> {
        let execution = self.execution.as_mut()?;
        let (seq, since) = execution.queued.take()?;
        let child = Child {
            label: labels::admission(seq),
            name: "admission".to_owned(),
            kind: Kind::Internal,
            start: since,
            end: at,
            status: Status::Ok,
            events: Vec::new(),
        };
        execution.child(child, |to| {
            to.word(names::SPAN_KIND, "CHAIN");
            to.int(names::WAIT_MS, milliseconds(at.duration_since(since)));
        })
    }

    /// The execution waited for servers. Their spans are finished by the next fact.
    pub(super) fn waited(&mut self, waits: &[ServerWait]) {
        if let Some(execution) = &mut self.execution {
            execution.waits.extend_from_slice(waits);
        }
    }

    /// The servers were listed, all of them or those that the execution waited for.
    pub(super) fn listed(&mut self, seq: u64, at: Timestamp, toolset: &Toolset) -> Vec<Span> {
        let Some(run) = self.lifecycle.run() else { return Vec::new() };
        let (is_first, servers) = (run.tools().is_none(), run.started().spec.servers.clone());
        let Some(execution) = &mut self.execution else { return Vec::new() };
        let seq = if is_first { execution.seq } else { seq };
        let (waits, since) = (std::mem::take(&mut execution.waits), execution.last);
        // The other servers listed their tools at once. Without any waits, it is unknown how long they took.
        let others = waits.iter().map(|wait| wait.since).min().map_or((since, at), |begun| (begun, begun));
        let spans = servers.iter().filter_map(|server| {
            let wait = waits.iter().find(|wait| wait.server == *server);
            let is_listed = is_first || waits.is_empty();
            match wait {
                Some(wait) => self.wait_span(seq, wait, toolset),
                None if is_listed => self.listing_span(seq, others, server, None, ListingResult::Found(toolset)),
                None => None,
            }
        });
        spans.collect()
    }

    /// The execution goes on with the tools of before: finishes the spans of the servers that it waited for.
    pub(super) fn listed_the_same(&mut self, seq: u64) -> Vec<Span> {
        let waits = self.execution.as_mut().map(|execution| std::mem::take(&mut execution.waits)).unwrap_or_default();
        if waits.is_empty() {
            return Vec::new();
        }
        let tools = self.lifecycle.run().and_then(Run::tools).map(Arc::clone).unwrap_or_default();
        waits.iter().filter_map(|wait| self.wait_span(seq, wait, &tools)).collect()
    }

    /// The execution ended during the first discovery.
    pub(super) fn listing_cut_short(&mut self, at: Timestamp, cut: CutShort) -> Vec<Span> {
        let (Some(run), Some(execution)) = (self.lifecycle.run(), &self.execution) else { return Vec::new() };
        if run.next() != Step::ListTools {
            return Vec::new();
        }
        let (seq, interval, servers) = (execution.seq, (execution.last, at), run.started().spec.servers.clone());
        let cut = ListingResult::CutShort(cut);
        servers.iter().filter_map(|server| self.listing_span(seq, interval, server, None, cut)).collect()
    }

    fn wait_span(&mut self, seq: u64, wait: &ServerWait, tools: &Toolset) -> Option<Span> {
        let result = match &wait.error {
            Some(why) => ListingResult::Failed(tools, why),
            None => ListingResult::Found(tools),
        };
        self.listing_span(seq, (wait.since, wait.until()), &wait.server, wait.connect_ms, result)
    }

    fn listing_span(
        &mut self,
        seq: u64,
        (start, end): (Timestamp, Timestamp),
        server: &ServerId,
        connect_ms: Option<u64>,
        result: ListingResult<'_>,
    ) -> Option<Span> {
        let (iteration, content) = (self.lifecycle.iteration(), self.content);
        let listing = Listing { server, connect_ms, result, content };
        let (status, exception) = listing.status(end);
        let child = Child {
            label: labels::listing(seq, server),
            name: format!("{} {server}", listing.method()),
            kind: Kind::Client,
            start,
            end,
            status,
            events: exception.into_iter().collect(),
        };
        self.execution.as_mut()?.child(child, |to| {
            to.int(names::ITERATION, u64::from(iteration));
            listing.attributes(to);
        })
    }
}
