//! The API description of webhooks: the message that an endpoint receives, and the responses that count as delivered.

use utoipa::ToSchema;
use utoipa::openapi::path::{HttpMethod, OperationBuilder, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{ContentBuilder, HeaderBuilder, Ref, Required, ResponseBuilder, SecurityRequirement};

use crate::closed_sets::ErrorCodeView;
use crate::runs::view::StatusView;

/// A message to a webhook endpoint. Ignore messages of unknown types: later versions may add some.
#[derive(ToSchema)]
#[schema(as = WebhookMessage)]
#[serde(tag = "type")]
#[allow(dead_code)] // the dispatcher writes it; this describes what it writes
pub(crate) enum MessageView {
    /// The run is pending and has required actions, or is paused.
    #[serde(rename = "execution.pending")]
    Pending {
        /// When the run became pending.
        #[schema(format = DateTime)]
        timestamp: String,
        data: RunData,
    },
    /// A call requires approval; one message for each call.
    #[serde(rename = "approval.requested")]
    ApprovalRequested {
        /// When the run became pending.
        #[schema(format = DateTime)]
        timestamp: String,
        data: ApprovalData,
    },
    /// The run ended with a valid answer.
    #[serde(rename = "execution.completed")]
    Completed {
        /// When the run ended.
        #[schema(format = DateTime)]
        timestamp: String,
        data: RunData,
    },
    /// The run ended with an error.
    #[serde(rename = "execution.failed")]
    Failed {
        /// When the run ended.
        #[schema(format = DateTime)]
        timestamp: String,
        data: FailedData,
    },
    /// A caller cancelled the run.
    #[serde(rename = "execution.cancelled")]
    Cancelled {
        /// When the run ended.
        #[schema(format = DateTime)]
        timestamp: String,
        data: FailedData,
    },
    /// The run ended at a hard limit.
    #[serde(rename = "execution.incomplete")]
    Incomplete {
        /// When the run ended.
        #[schema(format = DateTime)]
        timestamp: String,
        data: FailedData,
    },
    /// The run was pending for too long.
    #[serde(rename = "execution.expired")]
    Expired {
        /// When the run ended.
        #[schema(format = DateTime)]
        timestamp: String,
        data: FailedData,
    },
    /// You requested a test.
    #[serde(rename = "webhook.test")]
    Test {
        /// When you requested it.
        #[schema(format = DateTime)]
        timestamp: String,
        data: TestData,
    },
}

/// A reference to a run, without its content.
#[derive(ToSchema)]
#[schema(as = WebhookRun)]
#[allow(dead_code)] // the dispatcher writes it; this describes what it writes
pub(crate) struct RunData {
    /// The run's id.
    run_id: String,
    /// The run's status.
    status: StatusView,
    /// The session of the run.
    session_id: String,
    /// The run's agent.
    agent: String,
    /// The length of the run's journal at that moment. Messages can overtake each other: rely on it.
    version: u64,
}

/// A reference to a run and its approval.
#[derive(ToSchema)]
#[schema(as = WebhookApproval)]
#[allow(dead_code)] // the dispatcher writes it; this describes what it writes
pub(crate) struct ApprovalData {
    #[serde(flatten)]
    run: RunData,
    /// The approval's id in the inbox.
    approval_id: String,
}

/// A reference to a run that ended without a valid answer.
#[derive(ToSchema)]
#[schema(as = WebhookFailedRun)]
#[allow(dead_code)] // the dispatcher writes it; this describes what it writes
pub(crate) struct FailedData {
    #[serde(flatten)]
    run: RunData,
    /// The code of the error that ended the run.
    code: ErrorCodeView,
}

/// A reference to a webhook endpoint.
#[derive(ToSchema)]
#[schema(as = WebhookEndpointRef)]
#[allow(dead_code)] // the service writes it; this describes what it writes
pub(crate) struct TestData {
    /// The endpoint's id.
    endpoint_id: String,
}

/// The headers of a message.
const HEADERS: [(&str, &str, &str); 3] = [
    (
        "webhook-id",
        "The id of the message, which is the same in every attempt: ignore a message that you have.",
        "msg_1f0c5f8a4c7be20f",
    ),
    (
        "webhook-timestamp",
        "When the attempt was made, in seconds since 1970. Refuse messages that are older than five minutes.",
        "1795374000",
    ),
    (
        "webhook-signature",
        "Signatures (Standard Webhooks), with spaces between them during a rotation: `v1,` and the Base64 of the HMAC-SHA256 of \
         `webhook-id`, `webhook-timestamp` and the raw body with dots between them. The key is the part of the secret after \
         `whsec_`, decoded from Base64. One match is enough.",
        "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
    ),
];

/// The request that an endpoint receives.
pub(crate) fn described() -> PathItem {
    let text = || ObjectBuilder::new().schema_type(Type::String);
    let header = |(name, description, example): (&str, &str, &str)| {
        let header = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Header).required(Required::True);
        header.description(Some(description)).example(Some(example.into())).schema(Some(text())).build()
    };
    let message = ContentBuilder::new().schema(Some(Ref::from_schema_name(MessageView::name()))).build();
    let body = RequestBodyBuilder::new().content("application/json", message).required(Some(Required::True)).build();
    let retry_after = HeaderBuilder::new().schema(Some(text())).description(Some(
        "Seconds or a date: makes the pause before the next attempt longer, up to a day, but never shorter.",
    ));
    let refused = ResponseBuilder::new()
        .description("Not received, as redirects and timeouts: the message is sent again, up to eight times in all")
        .header("Retry-After", retry_after.build());
    let received = "Received. The body is ignored; respond within 15 seconds, before you process the message";
    let operation = OperationBuilder::new()
        // A tag of its own: generators make a file for each tag, of the operations and of the webhooks.
        .tag("webhook-messages")
        .operation_id(Some("receiveWebhook"))
        .summary(Some("Receive a message"))
        .description(Some(
            "Messages are sent at least once and in no order. Read the run for its required actions or its result.",
        ))
        .parameters(Some(HEADERS.map(header)))
        .request_body(Some(body))
        .response("2XX", ResponseBuilder::new().description(received))
        .response(
            "410",
            ResponseBuilder::new().description("The endpoint receives no more messages: toolgate disables it"),
        )
        .response("default", refused)
        .security(SecurityRequirement::default());
    PathItem::new(HttpMethod::Post, operation)
}
