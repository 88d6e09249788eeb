//! Endpoints and deliveries as clients see them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::core::id::{EndpointId, MessageId, RunId};
use crate::ports::{Attempt, DeliveryState, Disabled, WebhookDelivery, WebhookEndpoint, WebhookKind, WebhookSecret};

/// What an endpoint may hear of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = WebhookEvent)]
pub(super) enum EventView {
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
}

/// Where webhooks go.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookEndpoint)]
pub(super) struct EndpointView {
    /// Its id.
    #[schema(value_type = String, example = "we_0199c0ffee")]
    id: EndpointId,
    /// `webhook_endpoint`.
    object: &'static str,
    /// Where messages are posted.
    url: String,
    /// What it hears of; an empty list is everything.
    events: Vec<EventView>,
    /// What people say about it.
    description: Option<String>,
    /// Whether it stands in the operator's configuration, and can only be changed there.
    configured: bool,
    /// Whether anything is sent there.
    enabled: bool,
    /// Since when and why not.
    disabled: Option<DisabledView>,
    /// Since when no message arrived any more.
    #[schema(value_type = Option<String>, format = DateTime)]
    failing_since: Option<Timestamp>,
    /// Until when messages are also signed with secrets before this one.
    #[schema(value_type = Option<String>, format = DateTime)]
    previous_secret_until: Option<Timestamp>,
    /// Since when it hears.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// The key that messages are signed with. Shown once: when it was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
}

/// That nothing is sent to an endpoint.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookDisabled)]
struct DisabledView {
    /// Since when.
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// Why, for people.
    reason: String,
}

/// A message, and what became of it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookDelivery)]
pub(super) struct DeliveryView {
    /// The `webhook-id` of every attempt.
    #[schema(value_type = String)]
    id: MessageId,
    /// `webhook_delivery`.
    object: &'static str,
    /// Where it goes.
    #[schema(value_type = String)]
    endpoint_id: EndpointId,
    /// What it tells of.
    #[schema(example = "run.pending")]
    r#type: &'static str,
    /// The run it is about; none for a test.
    #[schema(value_type = Option<String>)]
    run_id: Option<RunId>,
    /// Where it stands.
    status: DeliveryStatusView,
    /// When it is tried next.
    #[schema(value_type = Option<String>, format = DateTime)]
    next_attempt_at: Option<Timestamp>,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// The last attempts, oldest first.
    attempts: Vec<AttemptView>,
    /// What is sent.
    body: Value,
}

/// Where a delivery stands.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = WebhookDeliveryStatus)]
enum DeliveryStatusView {
    /// It is to be tried.
    Waiting,
    /// It arrived.
    Delivered,
    /// It was tried for the last time.
    Failed,
}

/// An attempt to deliver.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookAttempt)]
struct AttemptView {
    /// When it began.
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// How long it took.
    duration_ms: u64,
    /// The status of the answer, if there was one.
    status: Option<u16>,
    /// Why it did not arrive, for people.
    error: Option<String>,
}

impl EndpointView {
    /// An endpoint, without its secrets.
    pub(super) fn of(endpoint: WebhookEndpoint) -> Self {
        let events = endpoint.events.into_iter().filter_map(EventView::of).collect();
        let disabled = endpoint.disabled.map(|Disabled { at, reason }| DisabledView { at, reason });
        Self {
            id: endpoint.id,
            object: "webhook_endpoint",
            url: endpoint.url,
            events,
            description: endpoint.description,
            configured: endpoint.configured,
            enabled: disabled.is_none(),
            disabled,
            failing_since: endpoint.failing_since,
            previous_secret_until: endpoint.secrets.previous.first().map(|(_, until)| *until),
            created_at: endpoint.created_at,
            secret: None,
        }
    }

    /// The same with its secret, for the only time.
    pub(super) fn showing(self, secret: &WebhookSecret) -> Self {
        Self { secret: Some(secret.expose().to_owned()), ..self }
    }

    pub(super) fn id(&self) -> &EndpointId {
        &self.id
    }
}

impl DeliveryView {
    pub(super) fn of(delivery: WebhookDelivery) -> Self {
        let status = match delivery.state {
            DeliveryState::Waiting { .. } => DeliveryStatusView::Waiting,
            DeliveryState::Delivered => DeliveryStatusView::Delivered,
            DeliveryState::Failed => DeliveryStatusView::Failed,
        };
        let attempt = |attempt: Attempt| {
            let Attempt { at, duration_ms, status, error } = attempt;
            AttemptView { at, duration_ms, status, error }
        };
        Self {
            next_attempt_at: delivery.due_at(),
            id: delivery.id,
            object: "webhook_delivery",
            endpoint_id: delivery.endpoint,
            r#type: delivery.kind.as_str(),
            run_id: delivery.run,
            status,
            created_at: delivery.created_at,
            attempts: delivery.attempts.into_iter().map(attempt).collect(),
            body: serde_json::from_str(&delivery.body).unwrap_or_default(),
        }
    }
}

impl EventView {
    /// `None` for what nobody can wish for.
    fn of(kind: WebhookKind) -> Option<Self> {
        match kind {
            WebhookKind::RunPending => Some(Self::RunPending),
            WebhookKind::RunCompleted => Some(Self::RunCompleted),
            WebhookKind::RunFailed => Some(Self::RunFailed),
            WebhookKind::RunCancelled => Some(Self::RunCancelled),
            WebhookKind::RunExpired => Some(Self::RunExpired),
            WebhookKind::RunTurnLimit => Some(Self::RunTurnLimit),
            WebhookKind::ApprovalRequested => Some(Self::ApprovalRequested),
            WebhookKind::Test => None,
        }
    }

    pub(super) fn kind(self) -> WebhookKind {
        match self {
            Self::RunPending => WebhookKind::RunPending,
            Self::RunCompleted => WebhookKind::RunCompleted,
            Self::RunFailed => WebhookKind::RunFailed,
            Self::RunCancelled => WebhookKind::RunCancelled,
            Self::RunExpired => WebhookKind::RunExpired,
            Self::RunTurnLimit => WebhookKind::RunTurnLimit,
            Self::ApprovalRequested => WebhookKind::ApprovalRequested,
        }
    }
}
