//! Webhook events: derives from a journal the events that were not yet announced. Pure and deterministic: a message
//! about the same event has the same id in every process.

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use toolgate_core::id::{MessageId, RunId};
use toolgate_core::run::{AnswerForm, Description, Event, InvalidEvent, JournalEntry, Run, Status};
use toolgate_ports::{DeliveryState, WebhookDelivery, WebhookEndpoint, WebhookKind};

use super::derived_id::following_from;
use crate::approval_id::ApprovalId;

/// The events to announce for a run.
#[derive(Debug, Default)]
pub(super) struct RunNotifications {
    /// The events, in order.
    pub(super) items: Vec<Item>,
    /// The length of the journal that the events cover.
    pub(super) up_to: u64,
}

/// An event to announce.
#[derive(Debug)]
pub(super) struct Item {
    kind: WebhookKind,
    /// The event's position in the journal.
    position: u64,
    /// When it happened.
    pub(super) at: Timestamp,
    data: Map<String, Value>,
}

impl RunNotifications {
    /// The events of a journal after `announced`. A run is announced when it ends, and wherever it becomes pending until
    /// it continues; a turn in progress yields no event.
    pub(super) fn from_journal(id: &RunId, journal: &[JournalEntry], announced: u64) -> Result<Self, InvalidEvent> {
        let Some(first) = journal.first() else { return Ok(Self::default()) };
        let Some(mut run) = Run::replay_recorded([first])? else { return Ok(Self::default()) };
        let news = Self { items: Vec::new(), up_to: announced };
        let mut scan = JournalScan { id, news, announced, asked: announced, waits: None };
        // Facts that a fork copied happened to the original run.
        let copied = run.started().trigger.copied();
        for recorded in journal.iter().skip(1) {
            let goes_on = matches!(
                recorded.event,
                Event::Resumed { .. } | Event::CompensationStarted { .. } | Event::Ended { .. }
            );
            if goes_on && scan.waits.is_some() && run.length() > copied {
                scan.rests(&run, copied);
            }
            run.apply_at(&recorded.event, recorded.at)?;
            scan.waits = (run.status() == Status::Pending).then(|| scan.waits.unwrap_or(run.length()));
        }
        match run.status() {
            Status::Running => {}
            Status::Pending => scan.rests(&run, 0),
            ended @ (Status::Completed | Status::Failed | Status::Cancelled | Status::Incomplete | Status::Expired) => {
                scan.ends(&run, ended)
            }
        }
        Ok(scan.news)
    }
}

/// The state while a journal is read.
struct JournalScan<'a> {
    id: &'a RunId,
    news: RunNotifications,
    /// Up to where pending states were announced.
    announced: u64,
    /// Up to where approvals were announced.
    asked: u64,
    /// The length of the journal at which the run became pending, if it is.
    waits: Option<u64>,
}

impl JournalScan<'_> {
    /// The run is pending here, for items requested from `since` on.
    fn rests(&mut self, run: &Run, since: u64) {
        let at = run.clock().unwrap_or(Timestamp::UNIX_EPOCH);
        if let Some(waits) = self.waits.filter(|waits| *waits > self.announced.max(since)) {
            self.announce(WebhookKind::Pending, waits, at, data(self.id, run));
            self.announced = waits;
        }
        for item in run.pending() {
            let Description { event: Some(event), form: AnswerForm::Decision(_), .. } = item.describe() else {
                continue;
            };
            if event >= self.asked.max(since) {
                let mut data = data(self.id, run);
                data.insert("approval_id".to_owned(), ApprovalId { run: self.id.clone(), event }.to_string().into());
                self.announce(WebhookKind::ApprovalRequested, event, at, data);
            }
        }
        self.asked = self.asked.max(run.length());
        self.news.up_to = self.news.up_to.max(run.length());
    }

    /// The run has ended.
    fn ends(&mut self, run: &Run, status: Status) {
        let length = run.length();
        if let Some(kind) = WebhookKind::of_rest(status).filter(|_| length > self.announced) {
            let mut data = data(self.id, run);
            if let Some(failure) = run.ending().and_then(|ending| ending.failure()) {
                data.insert("code".to_owned(), failure.code.as_str().into());
            }
            self.announce(kind, length, run.clock().unwrap_or(Timestamp::UNIX_EPOCH), data);
        }
        self.news.up_to = self.news.up_to.max(length);
    }

    fn announce(&mut self, kind: WebhookKind, position: u64, at: Timestamp, data: Map<String, Value>) {
        self.news.items.push(Item { kind, position, at, data });
    }
}

/// A reference to the run, without its content.
fn data(id: &RunId, run: &Run) -> Map<String, Value> {
    let started = run.started();
    let members = [
        ("run_id", json!(id)),
        ("status", json!(run.status().as_str())),
        ("session_id", json!(started.session)),
        ("agent", json!(started.spec.agent)),
        ("version", json!(run.length())),
    ];
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

impl Item {
    /// The delivery of the event to an endpoint, due at once; `None` if the endpoint did not exist yet or does not
    /// receive such events.
    pub(super) fn to(&self, endpoint: &WebhookEndpoint, run: &RunId, now: Timestamp) -> Option<WebhookDelivery> {
        // An endpoint of a run exists before the run, whatever the clocks of other processes say.
        let is_earlier = endpoint.run.is_none() && self.at < endpoint.created_at;
        if !endpoint.subscribes_to(self.kind) || is_earlier {
            return None;
        }
        let name = format!("{}\n{run}\n{}\n{}", endpoint.id, self.position, self.kind.as_str());
        Some(WebhookDelivery {
            id: MessageId::from(format!("msg_{}", following_from(&name))),
            endpoint: endpoint.id.clone(),
            kind: self.kind,
            run: Some(run.clone()),
            body: body(self.kind, self.at, &self.data),
            created_at: now,
            state: DeliveryState::Waiting { due_at: now },
            tries: 0,
            attempts: Vec::new(),
        })
    }
}

/// The body of a message.
pub(super) fn body(kind: WebhookKind, at: Timestamp, data: &Map<String, Value>) -> String {
    json!({"type": kind.as_str(), "timestamp": format!("{at:.3}"), "data": data}).to_string()
}
