//! Webhooks: endpoints, unannounced runs, and deliveries.
//!
//! Nothing is lost between a run and its webhooks: the index row of a run stores the position of its journal up to
//! which it was announced, and that position advances in the very commit that creates the deliveries. A delivery is
//! then a row with a due time. A sender that takes it moves the due time forward, so that it becomes due again if the
//! sender dies.

use std::collections::BTreeSet;
use std::fmt;

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};
use toolgate_core::id::{EndpointId, MessageId, RunId, Tenant};
use toolgate_core::run::Status;

use super::{RunRow, StoreError};

/// The kind of a webhook message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum WebhookKind {
    #[serde(rename = "execution.pending", alias = "run.pending")]
    Pending,
    /// A run ended with a valid answer.
    #[serde(rename = "execution.completed", alias = "run.completed")]
    Completed,
    /// A run ended with an error.
    #[serde(rename = "execution.failed", alias = "run.failed")]
    Failed,
    #[serde(rename = "execution.cancelled", alias = "run.cancelled")]
    Cancelled,
    /// A run waited too long.
    #[serde(rename = "execution.expired", alias = "run.expired")]
    Expired,
    /// A run ended at a hard limit.
    #[serde(rename = "execution.incomplete", alias = "run.incomplete", alias = "run.turn_limit")]
    Incomplete,
    /// A call requires approval.
    #[serde(rename = "approval.requested")]
    ApprovalRequested,
    /// A test message, without a run.
    #[serde(rename = "webhook.test")]
    Test,
}

/// The signing secret of an endpoint, as Standard Webhooks writes it: `whsec_` and Base64. Never shown by `Debug`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WebhookSecret(String);

/// The secrets of one endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndpointSecrets {
    /// The one that signs every message.
    pub current: WebhookSecret,
    /// Earlier ones, newest first, with the time until which each signs messages as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "one_or_many")]
    pub previous: Vec<(WebhookSecret, Timestamp)>,
}

/// A webhook endpoint of a tenant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebhookEndpoint {
    pub id: EndpointId,
    /// The tenant whose runs are announced to it.
    pub tenant: Tenant,
    /// The address that messages are posted to.
    pub url: String,
    /// The kinds of messages it receives; empty for all.
    #[serde(default)]
    pub events: BTreeSet<WebhookKind>,
    /// A description for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The run whose messages alone it receives. `None`: those of all runs of the tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    pub secrets: EndpointSecrets,
    pub created_at: Timestamp,
    /// Whether it is part of the operator's configuration, and can only be changed there.
    #[serde(default)]
    pub configured: bool,
    /// The number of changes.
    #[serde(skip)]
    pub revision: u64,
    /// Since when every message has failed.
    #[serde(skip)]
    pub failing_since: Option<Timestamp>,
    #[serde(skip)]
    pub disabled: Option<Disabled>,
}

/// Why and when an endpoint was disabled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disabled {
    /// When it happened.
    pub at: Timestamp,
    /// The reason, for people.
    pub reason: String,
}

/// A filter of endpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointFilter {
    /// Only this one.
    pub id: Option<EndpointId>,
    /// Only of this tenant.
    pub tenant: Option<Tenant>,
    /// Which runs they are for.
    pub runs: EndpointRuns,
    /// Only those after this one in the list.
    pub after: Option<EndpointId>,
    /// The maximum number; `None` for all.
    pub limit: Option<usize>,
}

/// The runs that the endpoints of a filter are for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum EndpointRuns {
    /// Any: endpoints of tenants and of single runs.
    #[default]
    Any,
    /// All runs of a tenant.
    OfTenant,
    /// This run alone.
    Only(RunId),
}

/// The result of saving an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndpointSaved {
    Saved,
    /// It was changed or removed since it was read.
    Stale,
    /// Another endpoint of the tenant already has the URL. Endpoints of single runs may share one.
    UrlTaken(Box<WebhookEndpoint>),
    /// The tenant already has the [maximum number](WebhookEndpoint::MOST) of endpoints. Those of single runs do not count.
    LimitReached,
}

/// An unannounced run: it is pending or over, and endpoints have not received all of its events.
#[derive(Clone, Debug, PartialEq)]
pub struct UnannouncedRun {
    /// Its index row.
    pub row: RunRow,
    /// The length of its journal that was announced before.
    pub announced: u64,
}

/// An announcement of a run.
#[derive(Clone, Debug)]
pub struct Announcement {
    pub run: RunId,
    /// The announced length of its journal.
    pub up_to: u64,
    pub deliveries: Vec<WebhookDelivery>,
}

/// A message to one endpoint, and its state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebhookDelivery {
    /// The id of the message; the same for every attempt.
    pub id: MessageId,
    pub endpoint: EndpointId,
    pub kind: WebhookKind,
    /// The run it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// Its body, byte for byte.
    pub body: String,
    pub created_at: Timestamp,
    pub state: DeliveryState,
    /// The number of attempts since it was created, or since it was last requested again.
    #[serde(default)]
    pub tries: u32,
    /// The last attempts, oldest first.
    #[serde(default)]
    pub attempts: Vec<Attempt>,
}

/// The state of a delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    /// An attempt is due.
    Waiting {
        /// When it is due, or, while a sender is working on it, when it becomes available again.
        due_at: Timestamp,
    },
    Delivered,
    /// The last attempt failed.
    Failed,
}

/// One attempt to deliver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// When it began.
    pub at: Timestamp,
    /// How long it took.
    pub duration_ms: u64,
    /// The status of the answer, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The error, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// An endpoint with a due delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueEndpoint {
    pub id: EndpointId,
    pub tenant: Tenant,
    /// The address that messages are posted to.
    pub url: String,
}

/// The result of an attempt.
#[derive(Clone, Debug)]
pub struct DeliveryResult {
    /// The delivery after the attempt.
    pub delivery: WebhookDelivery,
    /// Until when the sender had taken it. If the store has another time, another sender took it since, and nothing
    /// changes.
    pub taken_until: Timestamp,
    /// The consequence for the endpoint.
    pub health: EndpointHealth,
}

/// The health of an endpoint after an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndpointHealth {
    /// It accepts messages.
    Well,
    /// It did not accept a message, at that time.
    Failing(Timestamp),
    Disabled(Disabled),
    /// It is disabled because it has failed for too long. If a message was accepted meanwhile, its failures count from
    /// the beginning instead.
    GivenUp {
        /// Since when it fails, as known when the attempt began.
        since: Timestamp,
        disabled: Disabled,
    },
}

/// A filter of deliveries, newest first.
#[derive(Clone, Debug)]
pub struct DeliveryFilter {
    pub endpoint: EndpointId,
    /// Only this one.
    pub id: Option<MessageId>,
    /// Only those created before this one.
    pub after: Option<MessageId>,
    /// The maximum number.
    pub limit: usize,
}

/// The endpoints of all tenants. Their secrets are stored in the clear, because signing needs them.
#[async_trait]
pub trait WebhookEndpoints: Send + Sync {
    /// Adds an endpoint (revision 0), or changes it if it has this revision, and increments the revision. The start of
    /// its failures is not written but stays as attempts left it, until it is enabled again. Conflicts are checked in
    /// the commit that writes, so that of two processes one is refused.
    async fn save(&self, endpoint: &WebhookEndpoint) -> Result<EndpointSaved, StoreError>;

    /// Endpoints, oldest first. Empty after an endpoint that does not exist.
    async fn endpoints(&self, filter: &EndpointFilter) -> Result<Vec<WebhookEndpoint>, StoreError>;

    /// Removes an endpoint with its deliveries; returns whether it existed.
    async fn remove(&self, endpoint: &EndpointId) -> Result<bool, StoreError>;

    /// Replaces all configured endpoints. An existing one keeps its age. An endpoint whose id is no longer configured
    /// is removed with its deliveries.
    async fn configure(&self, endpoints: &[WebhookEndpoint]) -> Result<(), StoreError>;
}

/// The runs that endpoints have not been notified of.
#[async_trait]
pub trait WebhookOutbox: Send + Sync {
    /// Pending and ended runs that are not announced up to their current position, if there is an endpoint of their tenant
    /// or of the run: an event without an endpoint counts as announced, and so does content that was deleted before it was
    /// announced.
    async fn unannounced(&self, limit: usize) -> Result<Vec<UnannouncedRun>, StoreError>;

    /// Creates the deliveries and advances the announced position of the run, in one commit. An existing delivery stays
    /// as it is, and the position never moves back.
    async fn announce(&self, announcement: Announcement) -> Result<(), StoreError>;

    /// Deletes deliveries that were created before that time, in any state; returns their number. Then deletes the endpoints
    /// of single runs that were created before it and have no more to receive: they have no deliveries, and their runs
    /// ended and are announced, or do not exist.
    async fn forget(&self, before: Timestamp) -> Result<u64, StoreError>;
}

/// The deliveries.
#[async_trait]
pub trait WebhookDeliveries: Send + Sync {
    /// Adds a delivery, or replaces the one with its id. `false`: its endpoint no longer exists.
    async fn enqueue(&self, delivery: &WebhookDelivery) -> Result<bool, StoreError>;

    /// Enabled endpoints with a due delivery, the longest due first.
    async fn due(&self, now: Timestamp) -> Result<Vec<DueEndpoint>, StoreError>;

    /// Takes the due deliveries of one endpoint, longest due first: they become due again at `until`, unless settled
    /// before.
    async fn take(
        &self,
        endpoint: &EndpointId,
        now: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<WebhookDelivery>, StoreError>;

    /// Records the result of an attempt.
    async fn settle(&self, settled: &DeliveryResult) -> Result<(), StoreError>;

    /// Deliveries, newest first.
    async fn deliveries(&self, filter: &DeliveryFilter) -> Result<Vec<WebhookDelivery>, StoreError>;
}

/// All webhook operations, in the store of the journals.
pub trait Webhooks: WebhookEndpoints + WebhookOutbox + WebhookDeliveries {}

impl<S: WebhookEndpoints + WebhookOutbox + WebhookDeliveries> Webhooks for S {}

impl WebhookKind {
    /// The kinds that endpoints can subscribe to.
    pub const OF_RUNS: [Self; 7] = [
        Self::Pending,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
        Self::Expired,
        Self::Incomplete,
        Self::ApprovalRequested,
    ];

    /// Its name in messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "execution.pending",
            Self::Completed => "execution.completed",
            Self::Failed => "execution.failed",
            Self::Cancelled => "execution.cancelled",
            Self::Expired => "execution.expired",
            Self::Incomplete => "execution.incomplete",
            Self::ApprovalRequested => "approval.requested",
            Self::Test => "webhook.test",
        }
    }

    /// The message for a run with this status; `None` while it is running.
    pub fn of_rest(status: Status) -> Option<Self> {
        match status {
            Status::Running => None,
            Status::Pending => Some(Self::Pending),
            Status::Completed => Some(Self::Completed),
            Status::Failed => Some(Self::Failed),
            Status::Cancelled => Some(Self::Cancelled),
            Status::Incomplete => Some(Self::Incomplete),
            Status::Expired => Some(Self::Expired),
        }
    }
}

impl WebhookSecret {
    /// Wraps the text unchanged.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The secret in the clear.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret(…)")
    }
}

impl EndpointSecrets {
    /// The maximum number of earlier secrets.
    const KEPT: usize = 4;

    /// Replaces the secret. Earlier ones sign as well: the current one until `until`, older ones as long as before. The
    /// oldest of too many is dropped.
    #[must_use]
    pub fn rotated(self, secret: WebhookSecret, now: Timestamp, until: Timestamp) -> Self {
        let holding = self.previous.into_iter().filter(|(_, until)| now < *until);
        let previous = [(self.current, until)].into_iter().chain(holding).take(Self::KEPT);
        Self { current: secret, previous: previous.collect() }
    }

    /// The secrets that sign at that time, the current one first.
    pub fn holding(&self, now: Timestamp) -> impl Iterator<Item = &WebhookSecret> {
        let previous = self.previous.iter().filter(move |(_, until)| now < *until).map(|(secret, _)| secret);
        [&self.current].into_iter().chain(previous)
    }
}

/// Older versions stored one earlier secret instead of a list.
fn one_or_many<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(WebhookSecret, Timestamp)>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum PreviousSecrets {
        One((WebhookSecret, Timestamp)),
        Many(Vec<(WebhookSecret, Timestamp)>),
    }
    Ok(match PreviousSecrets::deserialize(from)? {
        PreviousSecrets::One(one) => vec![one],
        PreviousSecrets::Many(many) => many,
    })
}

impl WebhookEndpoint {
    /// Whether it receives messages of that kind now.
    pub fn subscribes_to(&self, kind: WebhookKind) -> bool {
        self.disabled.is_none() && (self.events.is_empty() || self.events.contains(&kind))
    }
}

impl WebhookEndpoint {
    /// The maximum number of a tenant's endpoints for all of its runs: each one multiplies the messages.
    pub const MOST: usize = 100;
}

impl EndpointFilter {
    /// Whether an endpoint matches, regardless of the page.
    pub fn admits(&self, endpoint: &WebhookEndpoint) -> bool {
        self.id.as_ref().is_none_or(|id| *id == endpoint.id)
            && self.tenant.as_ref().is_none_or(|tenant| *tenant == endpoint.tenant)
            && match &self.runs {
                EndpointRuns::Any => true,
                EndpointRuns::OfTenant => endpoint.run.is_none(),
                EndpointRuns::Only(run) => endpoint.run.as_ref() == Some(run),
            }
    }
}

impl WebhookDelivery {
    /// When it is due; `None` if no attempt is planned.
    pub fn due_at(&self) -> Option<Timestamp> {
        match self.state {
            DeliveryState::Waiting { due_at } => Some(due_at),
            DeliveryState::Delivered | DeliveryState::Failed => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    #[test]
    fn kinds_that_earlier_versions_stored_are_read() {
        let stored =
            json!(["run.pending", "run.completed", "run.failed", "run.cancelled", "run.expired", "run.turn_limit"]);
        let read: Vec<WebhookKind> = serde_json::from_value(stored).unwrap();
        assert_eq!(read, WebhookKind::OF_RUNS[..6]);
    }

    fn named(number: i64) -> WebhookSecret {
        WebhookSecret::new(format!("whsec_{number}"))
    }

    #[test]
    fn a_replaced_secret_signs_as_long_as_planned() {
        let mut secrets = EndpointSecrets { current: named(0), previous: Vec::new() };
        for number in 1..=3 {
            secrets = secrets.rotated(named(number), at(number), at(number + 10));
        }
        let holding = |now| secrets.holding(at(now)).map(WebhookSecret::expose).collect::<Vec<_>>();
        assert_eq!(holding(3), ["whsec_3", "whsec_2", "whsec_1", "whsec_0"]);
        assert_eq!(holding(11), ["whsec_3", "whsec_2", "whsec_1"]);
        let later = secrets.clone().rotated(named(4), at(12), at(22));
        assert_eq!(later.previous, [(named(3), at(22)), (named(2), at(13))]);
        let many = (4..9).fold(secrets, |secrets, number| secrets.rotated(named(number), at(4), at(14)));
        assert_eq!(many.previous.len(), EndpointSecrets::KEPT);
    }

    #[test]
    fn the_single_earlier_secret_of_an_older_version_is_read() {
        let read = |previous| serde_json::from_value(json!({"current": "whsec_1", "previous": previous})).ok();
        let one = EndpointSecrets { current: named(1), previous: vec![(named(0), at(9))] };
        assert_eq!(read(json!(["whsec_0", "1970-01-01T00:00:09Z"])), Some(one.clone()));
        assert_eq!(read(json!([["whsec_0", "1970-01-01T00:00:09Z"]])), Some(one));
    }
}
