//! Span sink: folds runs into spans and queues them for export.

use std::collections::BTreeSet;
use std::slice;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use opentelemetry::InstrumentationScope;
use opentelemetry_sdk::trace::SpanExporter as _;
use toolgate_core::id::RunId;
use toolgate_core::run::{Event, JournalEntry};
use toolgate_ports::{ClaimedSpans, EventSink, Feedback, RunStore, SPAN_LEASE, SpanClaim, Update};

use super::convert::span_data;
use super::limits::Limits;
use super::marked_span::{MarkedSpan, MarkedSpans};
use super::marks::{Admission, Marks, Receipt};
use super::resource::resource;
use super::runtime::ExportRuntime;
use super::sender::ExportSender;
use super::{Export, ExportError, FLUSH, Signal, SpanCounts, console};
use crate::per_run::PerRun;
use crate::spans::{IdentityOf, Projector, Redaction, Span, SpanContent};

/// What is kept of a run that is executed.
#[derive(Debug)]
enum RunSpans {
    Projected(Box<Projector>),
    /// The execution is not sampled: only the position of the next fact is kept.
    Unsampled {
        next_seq: u64,
    },
}

impl RunSpans {
    fn of(projector: Projector) -> Self {
        Self::Projected(Box::new(projector))
    }

    /// The spans that a fact finishes, and the position before which facts finish no further span. `None` if facts before it
    /// are missing.
    fn observe(&mut self, recorded: &JournalEntry) -> Option<(Vec<Span>, u64)> {
        match self {
            Self::Projected(projector) if recorded.seq <= projector.next_seq() => {
                let spans = projector.observe(recorded);
                let finished_to = projector.finished_to();
                if recorded.event.trace().is_some() && projector.is_unsampled() {
                    *self = Self::Unsampled { next_seq: projector.next_seq() };
                }
                Some((spans, finished_to))
            }
            // Facts between were withheld. A sampled execution needs them.
            Self::Unsampled { next_seq } if !recorded.event.trace().is_some_and(|trace| trace.sampled) => {
                *next_seq = (*next_seq).max(recorded.seq + 1);
                Some((Vec::new(), *next_seq))
            }
            Self::Projected(_) | Self::Unsampled { .. } => None,
        }
    }

    /// The spans that end because the driver stopped, and the same position.
    fn pause(&mut self) -> (Vec<Span>, u64) {
        match self {
            Self::Projected(projector) => (projector.pause(), projector.finished_to()),
            Self::Unsampled { next_seq } => (Vec::new(), *next_seq),
        }
    }
}

/// An event sink that exports the spans of every run.
pub struct SpanSink {
    runs: PerRun<RunSpans>,
    sender: Option<ExportSender<MarkedSpan>>,
    marking: Option<Marking>,
    left: Mutex<BTreeSet<RunId>>,
    console: bool,
    limits: Limits,
    scope: InstrumentationScope,
    content: SpanContent,
    redaction: Redaction,
    identity_of: IdentityOf,
}

impl SpanSink {
    /// Starts exporting. Call it anywhere, also within an async runtime. With a store, it moves the marks of runs there.
    pub fn start(
        export: &Export,
        identity_of: IdentityOf,
        store: Option<Arc<dyn RunStore>>,
    ) -> Result<Self, ExportError> {
        let runtime = ExportRuntime::start()?;
        let sender = sender(export, &runtime)?;
        let store = store.filter(|_| sender.is_some());
        Ok(Self {
            runs: PerRun::default(),
            sender,
            marking: store.map(|store| Marking::start(store, runtime)),
            left: Mutex::default(),
            console: export.console,
            limits: export.limits,
            scope: InstrumentationScope::builder("toolgate").with_version(env!("CARGO_PKG_VERSION")).build(),
            content: export.content,
            redaction: export.redaction.clone(),
            identity_of,
        })
    }

    /// Whether it moves the marks of runs.
    pub fn is_marking(&self) -> bool {
        self.marking.is_some()
    }

    /// Sends the remaining spans and stops. Blocks as long as a receiver accepts spans, at most [`FLUSH`], or a few
    /// seconds if it accepts no spans. An error reports the number of spans lost since the start.
    pub fn shutdown(&self) -> Result<(), ExportError> {
        self.shutdown_within(FLUSH)
    }

    /// The same with another limit.
    pub fn shutdown_within(&self, limit: Duration) -> Result<(), ExportError> {
        let finished = self.sender.as_ref().map_or(Ok(()), |sender| sender.finish(limit));
        self.marking.iter().for_each(Marking::finish);
        finished
    }

    /// Sends all spans of a run from its journal, and those of the feedback on it, also those that a receiver has: their ids
    /// are the same. Returns the number of spans.
    pub fn send_again(&self, run: &RunId, journal: &[JournalEntry], feedback: &[Feedback]) -> usize {
        let mut spans = self.projector(run).project_all(journal);
        if !feedback.is_empty() {
            spans.extend(self.projector(run).project_feedback(journal, feedback));
        }
        let count = spans.len();
        self.send(spans.into_iter().map(|span| (span, None)));
        count
    }

    /// Sends the spans of a run that a receiver lacks, from the journal of a run that is not executed, and moves its mark.
    /// The caller has claimed the lease. Returns the number of spans.
    pub fn send_from(&self, run: &RunId, journal: &[JournalEntry], from: u64) -> usize {
        let Some(marking) = self.marking.as_ref().filter(|marking| !marking.marks.has(run)) else { return 0 };
        self.left_runs().remove(run);
        marking.marks.begin(run, from);
        let mut projector = self.projector(run).from(from);
        let mut spans: Vec<Span> = journal.iter().flat_map(|recorded| projector.observe(recorded)).collect();
        spans.extend(projector.pause());
        let count = spans.len();
        self.send_marked(run, spans);
        marking.marks.finished(run, projector.finished_to());
        marking.marks.release(run);
        self.sender.iter().for_each(ExportSender::flush);
        count
    }

    /// Waits until a receiver accepted all spans of the run that wait, or one was given up; returns which.
    pub async fn settled(&self, run: &RunId) -> bool {
        match &self.marking {
            Some(marking) => marking.marks.settled(run).await,
            None => false,
        }
    }

    /// The runs whose spans this process did not send, because the exporter of an earlier execution had the lease.
    pub fn left(&self) -> Vec<RunId> {
        self.left_runs().iter().cloned().collect()
    }

    /// The outcomes of the spans so far.
    pub fn span_counts(&self) -> SpanCounts {
        self.sender.as_ref().map(ExportSender::span_counts).unwrap_or_default()
    }

    fn send_marked(&self, run: &RunId, spans: Vec<Span>) {
        let Some(marking) = &self.marking else { return self.send(spans.into_iter().map(|span| (span, None))) };
        let admitted = spans.into_iter().filter_map(|span| match marking.marks.admit(run, span.seq) {
            Admission::Unmarked => Some((span, None)),
            Admission::Marked(receipt) => Some((span, Some(receipt))),
            Admission::Left => None,
        });
        self.send(admitted);
    }

    fn send(&self, spans: impl Iterator<Item = (Span, Option<Receipt>)>) {
        for (mut span, receipt) in spans {
            let left_out = self.limits.apply(&mut span);
            if self.console {
                console::write(&span);
            }
            if let Some(sender) = &self.sender {
                sender.offer(MarkedSpan { data: span_data(span, left_out, &self.scope), receipt });
            }
        }
    }

    /// The position from which this process sends spans of a run that it executes from now on; `None` if it sends none.
    fn claim(&self, run: &RunId, history: &[JournalEntry]) -> Option<u64> {
        let at = history.len() as u64;
        let Some(marking) = &self.marking else { return Some(at) };
        if let Some(sends) = marking.marks.resume(run) {
            return sends.then_some(at);
        }
        if history.is_empty() {
            // The append of the first event claimed the lease.
            marking.marks.begin(run, 0);
            return Some(0);
        }
        let mut projector = self.projector(run).from(u64::MAX);
        history.iter().for_each(|recorded| drop(projector.observe(recorded)));
        // No process releases a run in the middle of an execution without a fact that ends it.
        let is_abandoned = projector.is_interrupted();
        match marking.claim(SpanClaim { run: run.clone(), at, is_abandoned, lease: SPAN_LEASE }) {
            Some(ClaimedSpans::From(from)) => {
                marking.marks.begin(run, from);
                Some(from)
            }
            Some(ClaimedSpans::Unmarked) => Some(at),
            Some(ClaimedSpans::Held) | None => None,
        }
    }

    fn finished(&self, run: &RunId, to: u64) {
        self.marking.iter().for_each(|marking| marking.marks.finished(run, to));
    }

    fn left_runs(&self) -> MutexGuard<'_, BTreeSet<RunId>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn projector(&self, run: &RunId) -> Projector {
        let identity_of = IdentityOf::clone(&self.identity_of);
        Projector::new(run.clone(), self.content, identity_of).redacting(self.redaction.clone())
    }
}

fn sender(export: &Export, runtime: &ExportRuntime) -> Result<Option<ExportSender<MarkedSpan>>, ExportError> {
    let Some(transport) = &export.transport else { return Ok(None) };
    let (mut exporter, reachability) = transport.span_exporter(runtime)?;
    exporter.set_resource(&resource(export.service_name.as_deref()));
    let exporter = (MarkedSpans(exporter), reachability);
    Ok(Some(ExportSender::start(Signal::Traces, exporter, transport.address(), export.batching, runtime.clone())))
}

/// The marks of runs, and where they are stored.
struct Marking {
    marks: Arc<Marks>,
    store: Arc<dyn RunStore>,
    runtime: ExportRuntime,
}

impl Marking {
    fn start(store: Arc<dyn RunStore>, runtime: ExportRuntime) -> Self {
        let marks = Arc::new(Marks::default());
        runtime.spawn(Arc::clone(&marks).store_all(store.clone()));
        Self { marks, store, runtime }
    }

    /// Claims the lease of a run; `None` if the store failed.
    fn claim(&self, claim: SpanClaim) -> Option<ClaimedSpans> {
        let store = self.store.clone();
        match self.runtime.wait_for(async move { store.claim_spans(&claim).await })? {
            Ok(claimed) => Some(claimed),
            Err(error) => {
                tracing::warn!(%error, "failed to claim the spans of a run; they are sent later");
                None
            }
        }
    }

    /// Stores the last marks and releases the leases.
    fn finish(&self) {
        let (marks, store) = (self.marks.clone(), self.store.clone());
        if let Some(Err(error)) = self.runtime.wait_for(async move { marks.store(&*store, true).await }) {
            tracing::warn!(%error, "failed to store which spans were sent; they may be sent again");
        }
    }
}

impl EventSink for SpanSink {
    fn observe(&self, run: &RunId, update: &Update) {
        let Update::JournalEntry(recorded) = update else { return };
        let told = |spans: &mut RunSpans| spans.observe(recorded);
        let told = if !matches!(recorded.event, Event::Started(_)) {
            self.runs.with(run, told)
        } else if self.left_runs().contains(run) {
            None
        } else {
            Some(self.runs.with_new(run, || RunSpans::of(self.projector(run)), told))
        };
        let Some(told) = told else { return };
        let Some((spans, finished_to)) = told else {
            // Facts were dropped because they arrived too fast: the spans that they finish are unknown here.
            self.runs.forget(run);
            self.marking.iter().for_each(|marking| marking.marks.give_up(run));
            return;
        };
        if matches!(recorded.event, Event::Ended { .. }) {
            self.runs.forget(run);
        }
        self.send_marked(run, spans);
        self.finished(run, finished_to);
    }

    fn claimed(&self, run: &RunId, history: &[JournalEntry]) {
        let Some(from) = self.claim(run, history) else {
            self.left_runs().insert(run.clone());
            return;
        };
        if history.is_empty() {
            return; // the first fact adds the run, if it is not withheld
        }
        let mut projector = self.projector(run).from(from);
        let spans: Vec<Span> = history.iter().flat_map(|recorded| projector.observe(recorded)).collect();
        let finished_to = projector.finished_to();
        self.runs.put(run, RunSpans::of(projector));
        self.send_marked(run, spans);
        self.finished(run, finished_to);
    }

    fn withheld(&self, run: &RunId, to: u64) {
        self.runs.with(run, |spans| match spans {
            RunSpans::Projected(_) => {}
            RunSpans::Unsampled { next_seq } => *next_seq = (*next_seq).max(to),
        });
        self.finished(run, to);
    }

    fn released(&self, run: &RunId, _at: Timestamp) {
        let told = self.runs.with(run, RunSpans::pause);
        self.runs.forget(run);
        if let Some((spans, finished_to)) = told {
            self.send_marked(run, spans);
            self.finished(run, finished_to);
        }
        self.marking.iter().for_each(|marking| marking.marks.release(run));
    }

    fn judged(&self, run: &RunId, journal: &[JournalEntry], feedback: &Feedback) {
        let spans = self.projector(run).project_feedback(journal, slice::from_ref(feedback));
        self.send(spans.into_iter().map(|span| (span, None)));
    }
}

impl std::fmt::Debug for SpanSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SpanSink").field("content", &self.content).finish_non_exhaustive()
    }
}
