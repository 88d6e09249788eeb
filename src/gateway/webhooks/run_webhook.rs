//! The webhook of one run, as a member of the requests that start a run.

use serde::Deserialize;
use toolgate_ports::WebhookSecret;
use toolgate_service::RunWebhook;
use utoipa::ToSchema;

use super::view::EventView;

/// A webhook of one run: a URL that receives the messages of this run alone, in addition to the webhook endpoints of the
/// tenant. The credentials need the scope `webhooks`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewRunWebhook)]
pub(crate) struct NewRunWebhook {
    /// The `https` URL that messages are posted to.
    #[schema(example = "https://example.com/hooks/toolgate")]
    url: String,
    /// The signing secret, which you choose: `whsec_` and the Base64 of 24 to 64 random bytes. No response shows it.
    #[schema(value_type = String)]
    secret: WebhookSecret,
    /// The events that are sent. Default: all events, like an empty list.
    #[serde(default)]
    events: Vec<EventView>,
}

impl From<NewRunWebhook> for RunWebhook {
    fn from(NewRunWebhook { url, secret, events }: NewRunWebhook) -> Self {
        Self { url, secret, events: events.into_iter().map(EventView::kind).collect() }
    }
}
