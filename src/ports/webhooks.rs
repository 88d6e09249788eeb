//! Where webhooks go, what is still to be told, and what became of it.
//!
//! Nothing is lost between a run and its webhooks: the index row of a run says up to which position of its journal it was
//! told of, and that mark moves on in the very commit that makes the deliveries. A delivery is then a row that is due at
//! some time; whoever takes it pushes that time forward, so that it is due again if they never come back.

use std::collections::BTreeSet;
use std::fmt;

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};

use super::{RunRow, StoreError};
use crate::core::id::{EndpointId, MessageId, RunId, Tenant};
use crate::core::run::Status;

/// What a webhook tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum WebhookKind {
    /// A run waits and is owed something.
    #[serde(rename = "run.pending")]
    RunPending,
    /// A run ended with a valid answer.
    #[serde(rename = "run.completed")]
    RunCompleted,
    /// A run ended without one.
    #[serde(rename = "run.failed")]
    RunFailed,
    /// Somebody stopped a run.
    #[serde(rename = "run.cancelled")]
    RunCancelled,
    /// A run waited too long.
    #[serde(rename = "run.expired")]
    RunExpired,
    /// A run ended at a hard limit.
    #[serde(rename = "run.turn_limit")]
    RunTurnLimit,
    /// A person is to decide about a call.
    #[serde(rename = "approval.requested")]
    ApprovalRequested,
    /// Nothing happened: somebody wants to see a webhook arrive.
    #[serde(rename = "webhook.test")]
    Test,
}

/// The key that messages to one endpoint are signed with, as Standard Webhooks writes it: `whsec_` and Base64. Never shown by
/// `Debug`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WebhookSecret(String);

/// The keys of one endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndpointSecrets {
    /// The one that every message is signed with.
    pub current: WebhookSecret,
    /// Those before it, newest first, and until when messages are signed with each as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "one_or_many")]
    pub previous: Vec<(WebhookSecret, Timestamp)>,
}

/// Where webhooks of a tenant go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebhookEndpoint {
    /// Its id.
    pub id: EndpointId,
    /// Whose runs it hears of.
    pub tenant: Tenant,
    /// Where messages are posted.
    pub url: String,
    /// What it wants to hear of; nothing means everything.
    #[serde(default)]
    pub events: BTreeSet<WebhookKind>,
    /// What people say about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The keys.
    pub secrets: EndpointSecrets,
    /// Since when it hears.
    pub created_at: Timestamp,
    /// Whether it stands in the operator's configuration, and can only be changed there.
    #[serde(default)]
    pub configured: bool,
    /// How often it was changed.
    #[serde(skip)]
    pub revision: u64,
    /// Since when no message arrived any more.
    #[serde(skip)]
    pub failing_since: Option<Timestamp>,
    /// That nothing is sent there.
    #[serde(skip)]
    pub disabled: Option<Disabled>,
}

/// That an endpoint was switched off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disabled {
    /// When.
    pub at: Timestamp,
    /// Why, for people.
    pub reason: String,
}

/// Which endpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointFilter {
    /// Only this one.
    pub id: Option<EndpointId>,
    /// Only of this tenant.
    pub tenant: Option<Tenant>,
    /// Only those that come after this one in the list.
    pub after: Option<EndpointId>,
    /// At most so many; `None` for all.
    pub limit: Option<usize>,
}

/// What came of saving an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndpointSaved {
    /// It was written.
    Saved,
    /// It was changed or removed since it was read.
    Stale,
    /// This endpoint of the tenant has the URL already.
    UrlTaken(Box<WebhookEndpoint>),
    /// The tenant has [as many](WebhookEndpoint::MOST) as it may have.
    LimitReached,
}

/// A run that rests, and of which endpoints have not heard everything.
#[derive(Clone, Debug, PartialEq)]
pub struct Untold {
    /// Its index row.
    pub row: RunRow,
    /// How much of its journal was told before.
    pub told: u64,
}

/// That a run was told of.
#[derive(Clone, Debug)]
pub struct Told {
    /// The run.
    pub run: RunId,
    /// Up to which length of its journal.
    pub up_to: u64,
    /// The messages about it.
    pub deliveries: Vec<WebhookDelivery>,
}

/// A message to one endpoint, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebhookDelivery {
    /// The id of the message; the same for every attempt.
    pub id: MessageId,
    /// Where it goes.
    pub endpoint: EndpointId,
    /// What it tells of.
    pub kind: WebhookKind,
    /// The run it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// Its body, byte for byte.
    pub body: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// Where it stands.
    pub state: DeliveryState,
    /// How often it was tried since it was made, or since somebody asked for it once more.
    #[serde(default)]
    pub tries: u32,
    /// The last attempts, oldest first.
    #[serde(default)]
    pub attempts: Vec<Attempt>,
}

/// Where a delivery stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    /// It is to be tried.
    Waiting {
        /// When, or, if somebody is at it, when it is anybody's again.
        due_at: Timestamp,
    },
    /// It arrived.
    Delivered,
    /// It was tried for the last time.
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
    /// Why it did not arrive, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// An endpoint for which something is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueEndpoint {
    /// The endpoint.
    pub id: EndpointId,
    /// Whose it is.
    pub tenant: Tenant,
}

/// What came of an attempt.
#[derive(Clone, Debug)]
pub struct Settled {
    /// The delivery as it is now.
    pub delivery: WebhookDelivery,
    /// Until when it had been taken. If that is not what the store says, somebody else took it since, and nothing changes.
    pub taken_until: Timestamp,
    /// What it says about the endpoint.
    pub standing: Standing,
}

/// What an attempt says about its endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It takes messages.
    Well,
    /// It did not take one, at that time.
    Failing(Timestamp),
    /// Nothing is to be sent there any more.
    Disabled(Disabled),
    /// Nothing is to be sent there any more, for it has failed for too long. If something arrived meanwhile, it begins to
    /// fail anew.
    GivenUp {
        /// Since when it fails, as far as was known when the attempt began.
        since: Timestamp,
        /// When and why.
        disabled: Disabled,
    },
}

/// Which deliveries, newest first.
#[derive(Clone, Debug)]
pub struct DeliveryFilter {
    /// To this endpoint.
    pub endpoint: EndpointId,
    /// Only this one.
    pub id: Option<MessageId>,
    /// Only those made before this one.
    pub after: Option<MessageId>,
    /// At most so many.
    pub limit: usize,
}

/// The endpoints of all tenants. Their secrets are kept as they are: what cannot be read cannot sign.
#[async_trait]
pub trait WebhookEndpoints: Send + Sync {
    /// Adds an endpoint (revision 0), or changes it if it has this revision, and counts the revision on. Since when it
    /// fails is not written but stays as attempts left it, until it is switched on again. What stands in the way is checked in
    /// the commit that writes, so that of two processes one is refused.
    async fn save(&self, endpoint: &WebhookEndpoint) -> Result<EndpointSaved, StoreError>;

    /// Endpoints, oldest first. None after an endpoint that there is not.
    async fn endpoints(&self, filter: &EndpointFilter) -> Result<Vec<WebhookEndpoint>, StoreError>;

    /// Removes an endpoint with its deliveries; whether it was there.
    async fn remove(&self, endpoint: &EndpointId) -> Result<bool, StoreError>;

    /// Puts these in the place of all configured endpoints. One that was there before stays as old as it is, one whose id is
    /// no longer named goes with its deliveries.
    async fn configure(&self, endpoints: &[WebhookEndpoint]) -> Result<(), StoreError>;
}

/// What endpoints have not heard of yet.
#[async_trait]
pub trait WebhookOutbox: Send + Sync {
    /// Runs that rest and were not told of up to where they are. Of tenants without endpoints there are none: what happens
    /// while nobody listens counts as told, and so does what is deleted before it was told.
    async fn untold(&self, limit: usize) -> Result<Vec<Untold>, StoreError>;

    /// Makes the deliveries and moves the mark of the run, in one commit. A delivery that is there already stays as it is, and
    /// the mark never moves back.
    async fn tell(&self, told: Told) -> Result<(), StoreError>;

    /// Forgets deliveries that were made before that time, whatever became of them; how many.
    async fn forget(&self, before: Timestamp) -> Result<u64, StoreError>;
}

/// Messages on their way.
#[async_trait]
pub trait WebhookDeliveries: Send + Sync {
    /// Makes a delivery, or puts it in the place of one with its id. `false`: its endpoint is not there any more.
    async fn enqueue(&self, delivery: &WebhookDelivery) -> Result<bool, StoreError>;

    /// Enabled endpoints for which something is due, the one that is longest due first.
    async fn due(&self, now: Timestamp) -> Result<Vec<DueEndpoint>, StoreError>;

    /// Takes what is due for one endpoint, longest due first: it is due again at `until`, unless it was settled before.
    async fn take(
        &self,
        endpoint: &EndpointId,
        now: Timestamp,
        until: Timestamp,
        limit: usize,
    ) -> Result<Vec<WebhookDelivery>, StoreError>;

    /// Writes down what came of an attempt.
    async fn settle(&self, settled: &Settled) -> Result<(), StoreError>;

    /// Deliveries, newest first.
    async fn deliveries(&self, filter: &DeliveryFilter) -> Result<Vec<WebhookDelivery>, StoreError>;
}

/// All of it, in the store of the journals.
pub trait Webhooks: WebhookEndpoints + WebhookOutbox + WebhookDeliveries {}

impl<S: WebhookEndpoints + WebhookOutbox + WebhookDeliveries> Webhooks for S {}

impl WebhookKind {
    /// What endpoints can wish to hear of.
    pub const OF_RUNS: [Self; 7] = [
        Self::RunPending,
        Self::RunCompleted,
        Self::RunFailed,
        Self::RunCancelled,
        Self::RunExpired,
        Self::RunTurnLimit,
        Self::ApprovalRequested,
    ];

    /// As messages write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RunPending => "run.pending",
            Self::RunCompleted => "run.completed",
            Self::RunFailed => "run.failed",
            Self::RunCancelled => "run.cancelled",
            Self::RunExpired => "run.expired",
            Self::RunTurnLimit => "run.turn_limit",
            Self::ApprovalRequested => "approval.requested",
            Self::Test => "webhook.test",
        }
    }

    /// What tells that a run rests like this; `None` while it is under way.
    pub fn of_rest(status: Status) -> Option<Self> {
        match status {
            Status::Running => None,
            Status::Pending => Some(Self::RunPending),
            Status::Completed => Some(Self::RunCompleted),
            Status::Failed => Some(Self::RunFailed),
            Status::Cancelled => Some(Self::RunCancelled),
            Status::TurnLimit => Some(Self::RunTurnLimit),
            Status::Expired => Some(Self::RunExpired),
        }
    }
}

impl WebhookSecret {
    /// Takes the text as it is.
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
    /// How many of the secrets before are kept.
    const KEPT: usize = 4;

    /// Another secret from now on; those before it sign as well: the current one until `until`, older ones as long as they
    /// were to, the oldest of too many no longer.
    #[must_use]
    pub fn rotated(self, secret: WebhookSecret, now: Timestamp, until: Timestamp) -> Self {
        let holding = self.previous.into_iter().filter(|(_, until)| now < *until);
        let previous = [(self.current, until)].into_iter().chain(holding).take(Self::KEPT);
        Self { current: secret, previous: previous.collect() }
    }

    /// What signs at that time, the current one first.
    pub fn holding(&self, now: Timestamp) -> impl Iterator<Item = &WebhookSecret> {
        let previous = self.previous.iter().filter(move |(_, until)| now < *until).map(|(secret, _)| secret);
        [&self.current].into_iter().chain(previous)
    }
}

/// Once there was one secret before the current one, and no list of them.
fn one_or_many<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(WebhookSecret, Timestamp)>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Previous {
        One((WebhookSecret, Timestamp)),
        Many(Vec<(WebhookSecret, Timestamp)>),
    }
    Ok(match Previous::deserialize(from)? {
        Previous::One(one) => vec![one],
        Previous::Many(many) => many,
    })
}

impl WebhookEndpoint {
    /// Whether it is to hear of something of that kind now.
    pub fn hears(&self, kind: WebhookKind) -> bool {
        self.disabled.is_none() && (self.events.is_empty() || self.events.contains(&kind))
    }
}

impl WebhookEndpoint {
    /// How many a tenant may have: each makes a message of everything it hears of.
    pub const MOST: usize = 100;
}

impl EndpointFilter {
    /// Whether an endpoint is meant, wherever its page is.
    pub fn admits(&self, endpoint: &WebhookEndpoint) -> bool {
        self.id.as_ref().is_none_or(|id| *id == endpoint.id)
            && self.tenant.as_ref().is_none_or(|tenant| *tenant == endpoint.tenant)
    }
}

impl WebhookDelivery {
    /// When it is to be tried; `None` if it is not.
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

    fn named(number: i64) -> WebhookSecret {
        WebhookSecret::new(format!("whsec_{number}"))
    }

    #[test]
    fn a_secret_that_is_changed_again_and_again_signs_as_long_as_it_was_to() {
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
    fn the_one_secret_before_that_an_older_version_kept_is_read() {
        let read = |previous| serde_json::from_value(json!({"current": "whsec_1", "previous": previous})).ok();
        let one = EndpointSecrets { current: named(1), previous: vec![(named(0), at(9))] };
        assert_eq!(read(json!(["whsec_0", "1970-01-01T00:00:09Z"])), Some(one.clone()));
        assert_eq!(read(json!([["whsec_0", "1970-01-01T00:00:09Z"]])), Some(one));
    }
}
