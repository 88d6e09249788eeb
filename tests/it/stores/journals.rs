//! Helpers for small journals.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, json};
use toolgate::core::chat::{Message, Usage};
use toolgate::core::id::{NodeId, RunId, Tenant};
use toolgate::core::run::{Event, JournalEntry, PendingCounts, RunResult, Segment, Started, Status, TriggerKind};
use toolgate::ports::{
    Append, Claim, RunRow, SessionClaim, SessionHead, SessionLimits, SessionRow, SessionRuntime, SessionSettings,
};

pub(crate) const LONG: Duration = Duration::from_secs(60);

/// The run with this number; higher numbers sort later.
pub(crate) fn run(number: usize) -> RunId {
    RunId::new(format!("run_{number:06}"))
}

/// The event at a position: the first one starts the run, later ones differ from each other.
pub(crate) fn fact(seq: u64) -> JournalEntry {
    JournalEntry {
        seq,
        at: Timestamp::from_nanosecond(1_800_000_000_123_456_789 + i128::from(seq)).unwrap(),
        event: event(seq),
    }
}

fn event(seq: u64) -> Event {
    if seq == 0 {
        return Event::Started(Arc::new(started()));
    }
    let message = json!({"role": "user", "content": [{"type": "text", "text": format!("fact {seq}: \u{0}é🦀")}]});
    Event::MessageAdded { message: serde_json::from_value(message).unwrap() }
}

fn started() -> Started {
    serde_json::from_value(json!({
        "spec": {"agent": "clerk", "model": "large"},
        "input": {"role": "user", "content": [{"type": "text", "text": "Hello"}]},
        "session": "session_1",
        "trace": {"id": "0123456789abcdef0123456789abcdef", "sampled": true},
    }))
    .unwrap()
}

/// The events from one position up to another, exclusive.
pub(crate) fn facts(from: u64, to: u64) -> Vec<JournalEntry> {
    (from..to).map(fact).collect()
}

/// An append of `count` events without an owner, after which the run is running.
pub(crate) fn append(run: RunId, at: u64, count: u64) -> Append {
    let row = RunRow {
        id: run.clone(),
        agent: "clerk".into(),
        session: "session_1".into(),
        predecessor: None,
        trigger: Some(TriggerKind::Manual),
        schedule: None,
        tenant: Tenant::default(),
        principal: None,
        metadata: Map::new(),
        status: Status::Running,
        version: at + count,
        title: "Hello".to_owned(),
        created_at: fact(0).at,
        updated_at: fact(at + count).at,
        pending_counts: PendingCounts::default(),
        usage: usage(at + count),
        result: Some(result(at + count)),
        is_interrupted: false,
        purged_at: None,
    };
    Append {
        run,
        at,
        events: facts(at, at + count),
        row,
        owner: None,
        lease: LONG,
        session: None,
        spans_sent: None,
        is_import: false,
    }
}

/// The result of a run after so many events.
pub(crate) fn result(events: u64) -> RunResult {
    RunResult {
        summary: Some(format!("Text {events}")),
        error_code: None,
        phase: None,
        exit_code: None,
        duration_ms: Some(events),
        models: vec!["large".into()],
        iterations: u32::try_from(events).unwrap(),
    }
}

/// The first append of a run that claims a session at this version.
pub(crate) fn claiming(run: RunId, session: &str, expected: u64) -> Append {
    let mut append = append(run.clone(), 0, 1);
    append.row.session = session.into();
    let row = SessionRow {
        id: session.into(),
        tenant: Tenant::default(),
        agent: "clerk".into(),
        principal: Some("ann".into()),
        head: Some(SessionHead {
            run,
            status: append.row.status,
            version: append.row.version,
            usage: append.row.usage,
            iterations: append.row.result.as_ref().map_or(0, |result| result.iterations.into()),
            updated_at: append.row.updated_at,
        }),
        version: expected + 1,
        runs: expected + 1,
        usage: usage(expected),
        iterations: expected,
        runtime: Some(SessionRuntime {
            working_directory: Some(format!("/srv/{expected}")),
            model: "fast".into(),
            servers: ["files".into()].into(),
            policy: None,
        }),
        title: format!("Order {expected}"),
        settings: SessionSettings {
            metadata: json!({"ticket": {"id": expected}}).as_object().unwrap().clone(),
            limits: SessionLimits { max_tokens: Some(expected), ..SessionLimits::default() },
            expire_after_s: Some(60),
            mode: Some("plan".to_owned()),
        },
        created_by: Some("web".to_owned()),
        authors: ["ann".to_owned(), format!("author {expected}")].into(),
        created_at: fact(0).at,
        updated_at: fact(expected).at,
        deleted_at: None,
    };
    append.session = Some(SessionClaim { expected, row, segment: None }.into());
    append
}

/// Usage with this number of input tokens.
pub(crate) fn usage(input_tokens: u64) -> Usage {
    Usage { input_tokens: Some(input_tokens), cost_usd: Some(0.25.try_into().unwrap()), ..Usage::default() }
}

/// A segment with one message.
pub(crate) fn segment(text: &str) -> Segment {
    Segment { messages: vec![Arc::new(Message::user(text))], ..Segment::default() }
}

/// The parts of an append that a test varies.
pub(crate) trait Appending {
    fn by(self, owner: &str) -> Self;
    fn leased(self, lease: Duration) -> Self;
    fn leaving(self, status: Status) -> Self;
    fn after(self, predecessor: RunId) -> Self;
    fn with_segment(self, segment: Segment) -> Self;
    fn of_tenant(self, tenant: &str) -> Self;
}

impl Appending for Append {
    fn by(mut self, owner: &str) -> Self {
        self.owner = Some(node(owner));
        self
    }

    fn leased(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    fn leaving(mut self, status: Status) -> Self {
        self.row.status = status;
        if let Some(head) = self.session.as_mut().and_then(|claim| claim.row.head.as_mut()) {
            head.status = status;
        }
        self
    }

    fn after(mut self, predecessor: RunId) -> Self {
        self.row.predecessor = Some(predecessor);
        self
    }

    fn with_segment(mut self, segment: Segment) -> Self {
        self.session.as_mut().unwrap().segment = Some(segment);
        self
    }

    fn of_tenant(mut self, tenant: &str) -> Self {
        self.row.tenant = tenant.into();
        if let Some(claim) = &mut self.session {
            claim.row.tenant = tenant.into();
        }
        self
    }
}

pub(crate) fn node(name: &str) -> NodeId {
    NodeId::new(name)
}

/// A claim of up to ten runs.
pub(crate) fn any(owner: &str) -> Claim {
    Claim { owner: node(owner), run: None, lease: LONG, limit: 10 }
}

/// A claim of one run by id.
pub(crate) fn named(owner: &str, run: RunId) -> Claim {
    Claim { run: Some(run), ..any(owner) }
}
