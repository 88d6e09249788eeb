//! HTTP client of the transport: pooled connections, and new ones for requests that must arrive at most once, unless the
//! server keeps its connections open.
//!
//! A server may close a kept connection at any time. A request that meets the closing is lost, and the client cannot
//! know whether the server read it: hyper repeats only requests of which it has written nothing (decision 0023). So:
//! - A request without an effect, or one that may be repeated, uses a pooled connection. If the connection ends before the
//!   head of the answer, the request is sent once more, on a new connection.
//! - The DELETE that ends a session uses a pooled connection and is not repeated after a lost one: nothing depends on
//!   its answer.
//! - Every other request, such as `tools/call`, is sent once. Over HTTP/1.1 it uses a new connection until requests
//!   without an effect have shown that the server keeps its connections open, and again from the first one that is lost.
//!   HTTP/2 connections are shared: a server that closes one names the last request that it took, and only later ones
//!   are repeated.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::stream::BoxStream;
use http::{HeaderName, HeaderValue, Version};
use hyper_util::client::legacy::connect::HttpInfo;
use reqwest::{ClientBuilder, Error, Request, RequestBuilder, Response, StatusCode, redirect};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest};
use rmcp::transport::streamable_http_client::{SseError, StreamableHttpError};
use sse_stream::Sse;

use super::egress::AllowedAddresses;

/// The time limit for connecting. A call that fails here was certainly not sent.
const DIAL: Duration = Duration::from_secs(10);
const MAX_REDIRECTS: usize = 10;
/// How long an idle connection is kept. gunicorn closes its own after two seconds, Node and uvicorn after five.
const IDLE: Duration = Duration::from_secs(1);

/// The headers of a request.
pub(super) type Headers = HashMap<HeaderName, HeaderValue>;

/// The events of a response.
pub(super) type Events = BoxStream<'static, Result<Sse, SseError>>;

/// A failed request.
pub(super) type Failure = StreamableHttpError<Error>;

/// A client for one server. Clones share its connections.
#[derive(Clone, Debug)]
pub(super) struct Client {
    reach: AllowedAddresses,
    pooled: reqwest::Client,
    /// Created when it is first needed: it takes 130 KiB.
    unpooled: Arc<OnceLock<reqwest::Client>>,
    connections: Arc<Connections>,
}

/// What the answers on pooled connections have shown about the server's connections.
#[derive(Debug, Default)]
struct Connections {
    /// Whether the last answer came over HTTP/2.
    speak_http2: AtomicBool,
    /// The local port of the last answer; 0 before the first.
    last_port: AtomicU16,
    /// Whether a second answer came on the same connection.
    are_kept: AtomicBool,
    /// Whether one ended before an answer.
    were_lost: AtomicBool,
}

impl Connections {
    fn note(&self, response: &Response) {
        self.speak_http2.store(response.version() == Version::HTTP_2, Ordering::Relaxed);
        let port = response.extensions().get::<HttpInfo>().map_or(0, |info| info.local_addr().port());
        if port != 0 && self.last_port.swap(port, Ordering::Relaxed) == port {
            self.are_kept.store(true, Ordering::Relaxed);
        }
    }

    fn note_loss(&self) {
        self.were_lost.store(true, Ordering::Relaxed);
    }

    /// Whether a request that must arrive at most once may share one.
    fn are_reliable(&self) -> bool {
        let are_kept = self.are_kept.load(Ordering::Relaxed) && !self.were_lost.load(Ordering::Relaxed);
        are_kept || self.speak_http2.load(Ordering::Relaxed)
    }
}

/// How often a request may reach its server. A tool call carries its own as an extension, which is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// It may have an effect.
    AtMostOnce,
    /// It has no effect, or the same effect however often it arrives.
    AtLeastOnce,
}

impl Client {
    /// A client for a server within this reach. Connects later.
    pub(super) fn within(reach: AllowedAddresses) -> Result<Self, Error> {
        let pooled = builder(&reach).pool_idle_timeout(IDLE).build()?;
        Ok(Self { reach, pooled, unpooled: Arc::default(), connections: Arc::default() })
    }

    /// The client with the pool, to build requests.
    pub(super) fn pooled(&self) -> &reqwest::Client {
        &self.pooled
    }

    /// Sends a request and returns when the head of the answer has arrived.
    pub(super) async fn send(&self, request: RequestBuilder, delivery: Delivery) -> Result<Response, Error> {
        let request = request.build()?;
        match delivery {
            Delivery::AtMostOnce if self.connections.are_reliable() => {
                let answered = self.pooled.execute(request).await;
                answered.inspect_err(|error| {
                    if was_lost_before_answer(error) {
                        self.connections.note_loss();
                    }
                })
            }
            Delivery::AtMostOnce => self.unpooled()?.execute(request).await,
            Delivery::AtLeastOnce => self.send_again_if_lost(request).await,
        }
    }

    async fn send_again_if_lost(&self, request: Request) -> Result<Response, Error> {
        // Any other tool call is sent once (decision 0023).
        let again = request.try_clone();
        let answered = match (self.pooled.execute(request).await, again) {
            (Err(error), Some(again)) if was_lost_before_answer(&error) => {
                self.connections.note_loss();
                self.unpooled()?.execute(again).await
            }
            (answered, _) => answered,
        };
        answered.inspect(|response| self.connections.note(response))
    }

    fn unpooled(&self) -> Result<&reqwest::Client, Error> {
        match self.unpooled.get() {
            Some(unpooled) => Ok(unpooled),
            None => {
                let unpooled = builder(&self.reach).pool_max_idle_per_host(0).build()?;
                Ok(self.unpooled.get_or_init(|| unpooled))
            }
        }
    }
}

fn builder(reach: &AllowedAddresses) -> ClientBuilder {
    let builder = reqwest::Client::builder().tcp_nodelay(true).connect_timeout(DIAL).redirect(within_the_origin());
    match reach.resolver() {
        Some(guard) => builder.dns_resolver(guard),
        None => builder,
    }
}

/// Whether a connection ended before the head of the answer.
fn was_lost_before_answer(error: &Error) -> bool {
    error.is_request() && !error.is_connect() && !error.is_timeout()
}

impl Delivery {
    /// The delivery of a message. Notifications and replies name what they are about, so a second one changes nothing.
    #[expect(clippy::wildcard_enum_match_arm, reason = "an open enum of the SDK; what it adds may have an effect")]
    pub(super) fn for_message(message: &ClientJsonRpcMessage) -> Self {
        let ClientJsonRpcMessage::Request(request) = message else { return Self::AtLeastOnce };
        match &request.request {
            ClientRequest::InitializeRequest(_)
            | ClientRequest::DiscoverRequest(_)
            | ClientRequest::PingRequest(_)
            | ClientRequest::ListToolsRequest(_)
            | ClientRequest::GetTaskRequest(_)
            | ClientRequest::SubscriptionsListenRequest(_) => Self::AtLeastOnce,
            ClientRequest::CallToolRequest(call) => call.extensions.get().copied().unwrap_or(Self::AtMostOnce),
            _ => Self::AtMostOnce,
        }
    }
}

/// Only redirects that keep the body and stay at the origin are followed: any other would lose the message, or send
/// the configured headers to another server. The admitted origin stays the origin, and its name is checked on each
/// resolution, so a redirect cannot lead where the first request could not.
fn within_the_origin() -> redirect::Policy {
    redirect::Policy::custom(|attempt| {
        let keeps_body = matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
        let first = attempt.previous().first();
        let same_origin = first.is_some_and(|first| first.origin() == attempt.url().origin());
        match keeps_body && same_origin && attempt.previous().len() <= MAX_REDIRECTS {
            true => attempt.follow(),
            false => attempt.stop(),
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn only_messages_without_an_effect_are_repeated() {
        let delivery = |message: Value| Delivery::for_message(&serde_json::from_value(message).expect("a message"));
        let request = |method: &str, params: Value| {
            delivery(json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
        };
        let task = json!({"taskId": "t"});
        for (method, params) in [("ping", json!({})), ("tools/list", json!({})), ("tasks/get", task.clone())] {
            assert_eq!(request(method, params), Delivery::AtLeastOnce, "{method}");
        }
        for (method, params) in [("tools/call", json!({"name": "pay"})), ("tasks/cancel", task), ("x/pay", json!({}))] {
            assert_eq!(request(method, params), Delivery::AtMostOnce, "{method}");
        }
        let notification = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let reply = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
        assert_eq!([notification, reply].map(delivery), [Delivery::AtLeastOnce; 2]);
    }
}
