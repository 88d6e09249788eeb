//! The shell around the pure parts: sends the body, waits within the deadlines, feeds what arrives to the answer.

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use reqwest::Response;
use tokio::time::timeout;

use super::answer::{Answer, Head, Progress};
use super::deadlines::{Awaited, Deadlines};
use super::endpoint::Endpoint;
use super::request::{Opening, RequestBody};
use crate::core::chat::Reply;
use crate::core::error::{ErrorCode, Failure};
use crate::core::trace::SpanContext;
use crate::ports::{Conversation, DeltaSink, ModelFailure, ModelRequest};

/// How long the end of a stream may take after its last event; a connection that was read to its end is used again.
const DRAIN: Duration = Duration::from_millis(10);

/// The turns of one run with one model, with everything that was rendered for them.
#[derive(Debug)]
pub(super) struct ChatConversation {
    endpoint: Arc<Endpoint>,
    opening: Arc<Opening>,
    body: RequestBody,
}

impl ChatConversation {
    pub(super) fn new(endpoint: Arc<Endpoint>, opening: Arc<Opening>) -> Self {
        Self { endpoint, opening, body: RequestBody::default() }
    }
}

#[async_trait]
impl Conversation for ChatConversation {
    async fn reply(&mut self, request: &ModelRequest<'_>, deltas: DeltaSink<'_>) -> Result<Reply, ModelFailure> {
        let body = self.body.render(&self.opening, request).map_err(|error| {
            self.body = RequestBody::default();
            Failure::new(ErrorCode::Internal, format!("the conversation cannot be written as JSON: {error}"))
        })?;
        let reply = self.exchange(body, request.trace, deltas).await;
        reply.map_err(|failure| self.endpoint.secrets().scrub(failure).into())
    }
}

impl ChatConversation {
    async fn exchange(&self, body: Vec<u8>, trace: &SpanContext, deltas: DeltaSink<'_>) -> Result<Reply, Failure> {
        let deadlines = Deadlines::start(*self.endpoint.timeouts());
        let awaited = if self.opening.streaming() { Awaited::FirstToken } else { Awaited::WholeReply };
        let mut response = deadlines
            .wait(awaited, self.endpoint.post(body, trace).send())
            .await?
            .map_err(|error| self.not_sent(error))?;

        let mut answer = Answer::new(self.head(&response));
        let mut first_token_ms = None;
        loop {
            let awaited = match (answer.is_settled(), answer.has_begun()) {
                (true, _) => Awaited::Rest,
                (false, true) => Awaited::NextPiece,
                (false, false) => awaited,
            };
            let piece = match deadlines.wait(awaited, response.chunk()).await {
                Ok(Ok(piece)) => piece,
                // The model finished before the connection did; what is missing is at most the bill.
                Ok(Err(_)) | Err(_) if answer.is_settled() => None,
                Ok(Err(error)) => return Err(self.broken(error)),
                Err(late) => return Err(late),
            };
            let Some(piece) = piece else { break };
            let progress = answer.push(&piece, &mut |delta| deltas(delta))?;
            if first_token_ms.is_none() && answer.is_streamed() && answer.has_begun() {
                first_token_ms = Some(deadlines.elapsed_ms());
            }
            if progress == Progress::Enough {
                drain(&mut response).await;
                break;
            }
        }
        let reply = answer.end(self.body.ids())?;
        Ok(Reply { first_token_ms, ..reply })
    }

    fn head(&self, response: &Response) -> Head {
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        let streaming = self.opening.streaming();
        Head::new(self.endpoint.host(), response.status().as_u16(), header, streaming, Timestamp::now())
    }

    fn not_sent(&self, error: reqwest::Error) -> Failure {
        if error.is_timeout() {
            let (host, limit) = (self.endpoint.host(), self.endpoint.timeouts().connect);
            return Failure::new(ErrorCode::ProviderTimeout, format!("no connection to {host} within {limit:?}"));
        }
        let (host, why) = (self.endpoint.host(), root_cause(&error));
        Failure::new(ErrorCode::ProviderUnavailable, format!("{host} cannot be reached: {why}"))
    }

    fn broken(&self, error: reqwest::Error) -> Failure {
        let (host, why) = (self.endpoint.host(), root_cause(&error));
        Failure::new(ErrorCode::ProviderInvalidResponse, format!("the answer of {host} was cut off: {why}"))
    }
}

/// Reads past the end of a stream, if that is there already.
async fn drain(response: &mut Response) {
    let rest = async { while let Ok(Some(_)) = response.chunk().await {} };
    // Nothing depends on it: a connection with something left is closed instead of kept.
    let _ = timeout(DRAIN, rest).await;
}

/// The innermost cause: the outer ones name the address, which may hold credentials.
fn root_cause(error: &reqwest::Error) -> String {
    let mut cause = error.source();
    while let Some(inner) = cause.and_then(|cause| cause.source()) {
        cause = Some(inner);
    }
    cause.map_or_else(|| "the connection was closed".into(), ToString::to_string)
}
