//! Webhook client: posts a message once, and reads its response as far as needed.

use std::time::Duration;

use jiff::Timestamp;
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Client, redirect};
use toolgate_ports::{WebhookDelivery, WebhookEndpoint};

use super::egress::WebhookEgress;
use super::signature;

const DIAL: Duration = Duration::from_secs(10);
/// How much of a response is read, so that its connection can be used again.
const READ: usize = 4 * 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AttemptOutcome {
    /// The message was received.
    Taken {
        /// Any of the 2xx.
        status: u16,
    },
    /// 410: the receiver wants no more messages.
    Gone,
    /// The receiver answered with another status.
    Refused {
        status: u16,
        /// The `Retry-After` header.
        retry_after: Option<String>,
    },
    /// There was no response.
    Nothing {
        /// The reason, for people.
        error: String,
    },
}

/// Posts messages.
pub(super) struct WebhookClient {
    egress: WebhookEgress,
    /// The timeout of an attempt, from the name lookup to the end of the response.
    timeout: Duration,
    guarded: Client,
    /// For endpoints that the operator configured.
    free: Client,
}

impl WebhookClient {
    pub(super) fn new(egress: WebhookEgress, timeout: Duration) -> Result<Self, String> {
        let client = || {
            let client = Client::builder().no_proxy().no_gzip().redirect(redirect::Policy::none());
            client.connect_timeout(DIAL).user_agent(concat!("toolgate/", env!("CARGO_PKG_VERSION")))
        };
        let failed = |error: reqwest::Error| format!("failed to create the HTTP client for webhooks: {error}");
        let guarded = client().dns_resolver(egress.resolver()).build().map_err(failed)?;
        let free = client().build().map_err(failed)?;
        Ok(Self { egress, timeout, guarded, free })
    }

    /// Posts the message, signed as of now.
    pub(super) async fn send(
        &self,
        endpoint: &WebhookEndpoint,
        delivery: &WebhookDelivery,
        now: Timestamp,
    ) -> AttemptOutcome {
        let client = match (endpoint.configured, self.egress.check(&endpoint.url)) {
            (true, _) => &self.free,
            (false, Ok(_)) => &self.guarded,
            (false, Err(refused)) => return AttemptOutcome::Nothing { error: refused.to_string() },
        };
        let request = client
            .post(&endpoint.url)
            .timeout(self.timeout)
            .header(CONTENT_TYPE, "application/json")
            .header("webhook-id", delivery.id.as_str())
            .header("webhook-timestamp", now.as_second())
            .header("webhook-signature", signature::header(&endpoint.secrets, &delivery.id, now, &delivery.body))
            .body(delivery.body.clone());
        match request.send().await {
            Ok(response) => AttemptOutcome::by(response).await,
            Err(error) => AttemptOutcome::Nothing { error: self.without_address(error) },
        }
    }

    /// The error, without the address: it may hold a token, and readers of the error know it.
    fn without_address(&self, error: reqwest::Error) -> String {
        if let Some(refused) = toolgate_egress::rejection(&error) {
            return refused.to_string();
        }
        if error.is_connect() {
            return "the connection failed".to_owned();
        }
        if error.is_timeout() {
            return format!("there was no response within {} s", self.timeout.as_secs_f32());
        }
        "the connection closed before there was a response".to_owned()
    }
}

impl AttemptOutcome {
    async fn by(mut response: reqwest::Response) -> Self {
        let status = response.status().as_u16();
        let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let retry_after = retry_after.map(|value| value.chars().take(64).collect());
        // The status decides; a body that breaks off or never ends changes nothing.
        let mut read = 0;
        while read < READ
            && let Ok(Some(chunk)) = response.chunk().await
        {
            read += chunk.len();
        }
        match status {
            200..=299 => Self::Taken { status },
            410 => Self::Gone,
            _ => Self::Refused { status, retry_after },
        }
    }

    /// The status of the response.
    pub(super) fn status(&self) -> Option<u16> {
        match self {
            Self::Taken { status } | Self::Refused { status, .. } => Some(*status),
            Self::Gone => Some(410),
            Self::Nothing { .. } => None,
        }
    }

    /// The reason why the message was not delivered.
    pub(super) fn error(&self) -> Option<String> {
        match self {
            Self::Taken { .. } => None,
            Self::Gone => Some("it answered 410 and receives no more messages".to_owned()),
            Self::Refused { status: status @ 300..=399, .. } => {
                Some(format!("it answered {status}, and redirects are not followed: use the final address"))
            }
            Self::Refused { status, .. } => Some(format!("it answered {status}; any 2xx counts as received")),
            Self::Nothing { error } => Some(error.clone()),
        }
    }

    /// The delay that the response requests: seconds, or a date.
    pub(super) fn retry_after(&self, now: Timestamp) -> Option<Duration> {
        let Self::Refused { retry_after: Some(text), .. } = self else { return None };
        if let Ok(seconds) = text.trim().parse() {
            return Some(Duration::from_secs(seconds));
        }
        let date = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text.trim()).ok()?;
        Duration::try_from(date.duration_since(now)).ok()
    }
}
