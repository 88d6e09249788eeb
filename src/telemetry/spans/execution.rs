//! Active execution: one trace, its root span, and the open spans below it.

use jiff::{SignedDuration, Timestamp};
use toolgate_core::chat::Usage;
use toolgate_core::error::Failure;
use toolgate_core::id::ModelName;
use toolgate_core::run::{Call, PendingItem, ServerWait, ToolAccess, labels};
use toolgate_core::trace::{SpanId, Trace};

use super::attributes::{Attributes, truncate, truncate_value};
use super::span::{Kind, Link, Parent, Span, SpanEvent, Status};
use super::{Redaction, SpanContent, Value, names};

/// One execution of a run.
#[derive(Clone, Debug)]
pub(super) struct Execution {
    /// The trace of its spans.
    pub(super) trace: Trace,
    /// The position of the fact that started it.
    pub(super) seq: u64,
    /// How long the run was idle before, in milliseconds.
    pub(super) waited_ms: Option<u64>,
    pub(super) root: SpanId,
    /// The start time.
    pub(super) started: Timestamp,
    /// The time of the last known fact.
    pub(super) last: Timestamp,
    /// The root span of the previous execution.
    pub(super) link: Option<Link>,
    pub(super) model: Option<OpenModelCall>,
    /// The waits for servers whose spans are finished by the next fact.
    pub(super) waits: Vec<ServerWait>,
    /// Its wait for admission, if it waits: the position and the time of the fact.
    pub(super) queued: Option<(u64, Timestamp)>,
    /// The calls sent to their servers.
    pub(super) calls: Vec<OpenCall>,
    /// The last answer, which is validated next.
    pub(super) answer: Option<(Timestamp, String)>,
    /// The pending items of the run before any of them was answered; `None` while its driver is active.
    pub(super) pending: Option<Vec<PendingItem>>,
    /// The position of the fact that finishes the next spans.
    pub(super) position: u64,
    /// Of an execution that ends while it waits: the position at which its root was finished, if the run was released.
    pub(super) rested_at: Option<u64>,
    /// The position before which spans are left out.
    pub(super) from: u64,
    /// What it was given, if it continues a run: answers and messages, and whether they quote results.
    pub(super) given: Option<Given>,
    /// Whether it has done anything since.
    pub(super) has_gone_on: bool,
    /// The usage of the run before this execution.
    pub(super) before: Usage,
    common: Attributes,
    content: SpanContent,
    /// Secrets removed from all texts of its spans.
    redaction: Redaction,
    events: Vec<SpanEvent>,
}

/// What an execution was given to continue a run.
#[derive(Clone, Debug)]
pub(super) struct Given {
    pub(super) text: String,
    /// Whether it quotes results and decisions, and not only messages.
    pub(super) has_answers: bool,
}

/// A call of one model without a reply.
#[derive(Clone, Debug)]
pub(super) struct OpenModelCall {
    pub(super) model: ModelName,
    /// The model that it is a fallback for.
    pub(super) instead_of: Option<ModelName>,
    pub(super) seq: u64,
    pub(super) start: Timestamp,
    pub(super) tool_access: ToolAccess,
    pub(super) attempts: u32,
    pub(super) usage: Usage,
    /// The last attempt's failure, unless another attempt is in progress.
    pub(super) failure: Option<(Timestamp, Failure)>,
    pub(super) events: Vec<SpanEvent>,
    /// The number of messages that are kept, if the model is called for a summary of those before them.
    pub(super) summarizes: Option<u64>,
}

/// A tool call without an outcome.
#[derive(Clone, Debug)]
pub(super) struct OpenCall {
    pub(super) call: Call,
    pub(super) start: Timestamp,
    /// The time since which it is held open for an answer to its server.
    pub(super) held_since: Option<Timestamp>,
    /// The total time it was held for answers that came.
    pub(super) waited: SignedDuration,
}

impl OpenCall {
    /// A call sent at that time.
    pub(super) fn sent(call: Call, start: Timestamp) -> Self {
        Self { call, start, held_since: None, waited: SignedDuration::ZERO }
    }

    /// How much of the time until `end` the call waited for answers to its server; `None` if it was not held.
    pub(super) fn waited_ms(&self, end: Timestamp) -> Option<u64> {
        let waited = self.waited + self.held_since.map(|since| end.duration_since(since)).unwrap_or_default();
        (!waited.is_zero()).then(|| waited.as_millis().try_into().unwrap_or_default())
    }
}

/// A span below the root, without its attributes.
pub(super) struct Child {
    pub(super) label: String,
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) start: Timestamp,
    pub(super) end: Timestamp,
    pub(super) status: Status,
    pub(super) events: Vec<SpanEvent>,
}

impl Execution {
    /// Starts at the fact at `seq`. `common` goes onto every span, and the mask of `content` is applied last to each
    /// attribute.
    pub(super) fn begin(
        seq: u64,
        at: Timestamp,
        trace: Trace,
        link: Option<Link>,
        common: Attributes,
        content: SpanContent,
    ) -> Self {
        let root = trace.span(&labels::execution(seq));
        Self {
            trace,
            seq,
            waited_ms: None,
            root,
            started: at,
            last: at,
            link,
            model: None,
            waits: Vec::new(),
            queued: None,
            calls: Vec::new(),
            answer: None,
            pending: None,
            position: seq,
            rested_at: None,
            from: 0,
            given: None,
            has_gone_on: false,
            before: Usage::default(),
            common,
            content,
            redaction: Redaction::default(),
            events: Vec::new(),
        }
    }

    /// Removes these secrets from its spans from now on.
    pub(super) fn redact(&mut self, redaction: Redaction) {
        self.common.clean_again(|value| redaction.value(value));
        self.redaction = redaction;
    }

    /// Adds events for facts without a span of their own.
    pub(super) fn note(&mut self, events: impl IntoIterator<Item = SpanEvent>) {
        if self.trace.sampled {
            self.events.extend(events);
        }
    }

    /// Whether a span that finishes now is reported.
    pub(super) fn is_reported(&self) -> bool {
        self.trace.sampled && self.position >= self.from
    }

    /// A finished span below the root, clamped to the time of the execution. `None`, without building anything, if the
    /// execution is not recorded.
    pub(super) fn child(&mut self, child: Child, build: impl FnOnce(&mut Attributes)) -> Option<Span> {
        let start = child.start.max(self.started);
        let end = child.end.max(start);
        self.last = self.last.max(end);
        if !self.is_reported() {
            return None;
        }
        let mut events = child.events;
        for event in &mut events {
            event.at = event.at.clamp(start, end);
        }
        let mut span = Span {
            trace: self.trace.id,
            id: self.trace.span(&child.label),
            parent: Some(Parent { id: self.root, remote: false }),
            state: self.trace.state.clone(),
            links: Vec::new(),
            seq: self.position,
            name: child.name,
            kind: child.kind,
            start,
            end,
            status: child.status,
            attributes: Vec::new(),
            events,
        };
        self.complete(&mut span, build);
        Some(span)
    }

    /// Finishes the root span; `failure` is an error word and a sentence. `None` if the execution is not recorded.
    pub(super) fn finish(
        mut self,
        name: String,
        end: Timestamp,
        failure: Option<(&str, &str)>,
        build: impl FnOnce(&mut Attributes),
    ) -> Option<Span> {
        self.position = self.rested_at.unwrap_or(self.position);
        if !self.is_reported() {
            return None;
        }
        let end = end.max(self.last);
        let mut events = std::mem::take(&mut self.events);
        events.retain(|event| event.at <= end);
        // Clocks of two processes may differ.
        events.iter_mut().for_each(|event| event.at = event.at.max(self.started));
        let status = match failure {
            None => Status::Ok,
            Some((word, message)) => {
                events.push(SpanEvent::exception(word, message, end));
                Status::error(message)
            }
        };
        let mut span = Span {
            trace: self.trace.id,
            id: self.root,
            parent: self.trace.parent.map(|id| Parent { id, remote: true }),
            state: self.trace.state.clone(),
            links: self.link.into_iter().collect(),
            seq: self.position,
            name,
            kind: Kind::Internal,
            start: self.started,
            end,
            status,
            attributes: Vec::new(),
            events,
        };
        self.complete(&mut span, build);
        Some(span)
    }

    /// Adds the attributes of a span, and removes its secrets and what is too long.
    fn complete(&self, span: &mut Span, build: impl FnOnce(&mut Attributes)) {
        let mut attributes = self.common.clone();
        build(&mut attributes);
        attributes.clean(|value| self.redaction.value(value));
        let (mut truncated, mut attributes) = attributes.into_parts();
        let limit = self.content.value_bytes;
        let said = span.events.iter_mut().flat_map(|event| &mut event.attributes);
        truncated += said.map(|(_, value)| truncate_value(value, limit)).sum::<u64>();
        if let Status::Error(message) = &mut span.status {
            truncated += u64::from(truncate(message, limit));
        }
        if truncated > 0 {
            let count = Value::Int(i64::try_from(truncated).unwrap_or(i64::MAX));
            attributes.insert(self.common.len(), (names::TRUNCATED_VALUES.into(), count));
        }
        span.attributes = self.content.mask.apply(attributes);
        self.redaction.apply(span);
    }
}
