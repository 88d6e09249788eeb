//! The API view of webhook endpoints and deliveries.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolgate_core::id::{EndpointId, MessageId, RunId};
use toolgate_core::timestamp::{millis, optional_millis};
use toolgate_ports::{Attempt, DeliveryState, Disabled, WebhookDelivery, WebhookEndpoint, WebhookKind, WebhookSecret};
use utoipa::ToSchema;

use super::message::MessageView;
use crate::closed_sets::WebhookTypeView;

/// An event type that an endpoint may receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = WebhookEvent)]
pub(super) enum EventView {
    /// A run is pending and requires actions.
    #[serde(rename = "execution.pending")]
    Pending,
    /// A run ended with a valid answer.
    #[serde(rename = "execution.completed")]
    Completed,
    /// A run ended without a valid answer.
    #[serde(rename = "execution.failed")]
    Failed,
    /// A run was cancelled.
    #[serde(rename = "execution.cancelled")]
    Cancelled,
    /// A required action was not completed in time.
    #[serde(rename = "execution.expired")]
    Expired,
    /// A run ended at a hard limit.
    #[serde(rename = "execution.incomplete")]
    Incomplete,
    /// A call requires approval.
    #[serde(rename = "approval.requested")]
    ApprovalRequested,
}

/// A webhook endpoint.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookEndpoint)]
pub(super) struct EndpointView {
    /// The endpoint's id.
    #[schema(value_type = String, example = "we_0199c0ffee")]
    id: EndpointId,
    /// Always `webhook_endpoint`.
    object: &'static str,
    /// The URL that messages are posted to.
    url: String,
    /// The events that the endpoint receives; an empty list means all.
    events: Vec<EventView>,
    /// The description for people.
    description: Option<String>,
    /// The run whose messages alone the endpoint receives; null for an endpoint of all runs.
    #[schema(value_type = Option<String>)]
    run_id: Option<RunId>,
    /// Whether the endpoint is part of the operator's configuration, and can only be changed there.
    configured: bool,
    /// Whether messages are sent to the endpoint.
    enabled: bool,
    /// When and why the endpoint was disabled.
    disabled: Option<DisabledView>,
    /// Since when all deliveries have failed.
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(serialize_with = "optional_millis")]
    failing_since: Option<Timestamp>,
    /// Until when messages are also signed with previous secrets.
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(serialize_with = "optional_millis")]
    previous_secret_until: Option<Timestamp>,
    /// When the endpoint was created; it receives events from then on.
    #[schema(value_type = String, format = DateTime)]
    #[serde(serialize_with = "millis")]
    created_at: Timestamp,
    /// The signing secret, which is shown only when it is created.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
}

/// A disabled endpoint.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookDisabled)]
struct DisabledView {
    /// When it was disabled.
    #[schema(value_type = String, format = DateTime)]
    #[serde(serialize_with = "millis")]
    at: Timestamp,
    /// The reason, for people.
    reason: String,
}

/// A message, and the state of its delivery.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookDelivery)]
pub(super) struct DeliveryView {
    /// The `webhook-id` of every attempt.
    #[schema(value_type = String)]
    id: MessageId,
    /// Always `webhook_delivery`.
    object: &'static str,
    /// The endpoint that it is sent to.
    #[schema(value_type = String)]
    endpoint_id: EndpointId,
    /// The type of the message.
    #[schema(value_type = WebhookTypeView)]
    r#type: &'static str,
    /// The run that the event is about; null for a test.
    #[schema(value_type = Option<String>)]
    run_id: Option<RunId>,
    /// The state of the delivery.
    status: DeliveryStatusView,
    /// When the next attempt is due.
    #[schema(value_type = Option<String>, format = DateTime)]
    #[serde(serialize_with = "optional_millis")]
    next_attempt_at: Option<Timestamp>,
    /// When the delivery was created.
    #[schema(value_type = String, format = DateTime)]
    #[serde(serialize_with = "millis")]
    created_at: Timestamp,
    /// The last attempts, oldest first.
    attempts: Vec<AttemptView>,
    /// The body of the message.
    #[schema(value_type = MessageView)]
    body: Value,
}

/// The state of a delivery.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = WebhookDeliveryStatus)]
enum DeliveryStatusView {
    /// Another attempt is due.
    Waiting,
    /// The message was delivered.
    Delivered,
    /// The last attempt failed.
    Failed,
}

/// A delivery attempt.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WebhookAttempt)]
struct AttemptView {
    /// When it began.
    #[schema(value_type = String, format = DateTime)]
    #[serde(serialize_with = "millis")]
    at: Timestamp,
    /// How long it took, in milliseconds.
    duration_ms: u64,
    /// The status of the response, if there was one.
    status: Option<u16>,
    /// The reason why the message was not delivered, for people.
    error: Option<String>,
}

impl EndpointView {
    /// The view of an endpoint, without its secrets.
    pub(super) fn new(endpoint: WebhookEndpoint) -> Self {
        let events = endpoint.events.into_iter().filter_map(EventView::new).collect();
        let disabled = endpoint.disabled.map(|Disabled { at, reason }| DisabledView { at, reason });
        Self {
            id: endpoint.id,
            object: "webhook_endpoint",
            url: endpoint.url,
            events,
            description: endpoint.description,
            run_id: endpoint.run,
            configured: endpoint.configured,
            enabled: disabled.is_none(),
            disabled,
            failing_since: endpoint.failing_since,
            previous_secret_until: endpoint.secrets.previous.first().map(|(_, until)| *until),
            created_at: endpoint.created_at,
            secret: None,
        }
    }

    /// The same with its secret, which is shown only once.
    pub(super) fn showing(self, secret: &WebhookSecret) -> Self {
        Self { secret: Some(secret.expose().to_owned()), ..self }
    }
}

impl DeliveryView {
    pub(super) fn new(delivery: WebhookDelivery) -> Self {
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
    /// `None` for a type that an endpoint cannot choose.
    fn new(kind: WebhookKind) -> Option<Self> {
        match kind {
            WebhookKind::Pending => Some(Self::Pending),
            WebhookKind::Completed => Some(Self::Completed),
            WebhookKind::Failed => Some(Self::Failed),
            WebhookKind::Cancelled => Some(Self::Cancelled),
            WebhookKind::Expired => Some(Self::Expired),
            WebhookKind::Incomplete => Some(Self::Incomplete),
            WebhookKind::ApprovalRequested => Some(Self::ApprovalRequested),
            WebhookKind::Test => None,
        }
    }

    pub(super) fn kind(self) -> WebhookKind {
        match self {
            Self::Pending => WebhookKind::Pending,
            Self::Completed => WebhookKind::Completed,
            Self::Failed => WebhookKind::Failed,
            Self::Cancelled => WebhookKind::Cancelled,
            Self::Expired => WebhookKind::Expired,
            Self::Incomplete => WebhookKind::Incomplete,
            Self::ApprovalRequested => WebhookKind::ApprovalRequested,
        }
    }
}
