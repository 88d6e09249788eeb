//! HTTP conversation: sends the request, enforces the deadlines, and feeds the response to the parser.

use std::error::Error as _;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use reqwest::{Response, StatusCode};
use secrecy::SecretString;
use tokio::time::{Instant, timeout};
use toolgate_core::chat::Reply;
use toolgate_core::error::{ErrorCode, Failure};
use toolgate_core::tool::Toolset;
use toolgate_core::trace::SpanContext;
use toolgate_ports::{Conversation, DeltaSink, ModelFailure, ModelRequest};

use super::answer::{Answer, Head, Progress};
use super::author::Author;
use super::connection_remedy;
use super::deadlines::{AwaitedEvent, Deadlines};
use super::endpoint::Endpoint;
use super::protocol::{ProviderProtocol, RenderedParts};
use super::tool_block::{ToolBlock, ToolBlocks};
use super::transcript::Transcript;

/// How long to read after the last event of a stream; only a connection that was read to its end is reused.
const DRAIN: Duration = Duration::from_millis(10);

/// The conversation of one run with one model, with all rendered content.
#[derive(Debug)]
pub(super) struct HttpConversation {
    endpoint: Arc<Endpoint>,
    wire: Arc<dyn ProviderProtocol>,
    author: Arc<Author>,
    transcript: Transcript,
    blocks: Arc<ToolBlocks>,
    /// The tools of the last request.
    tools: Option<(Arc<Toolset>, Arc<ToolBlock>)>,
}

impl HttpConversation {
    pub(super) fn new(
        endpoint: Arc<Endpoint>,
        wire: Arc<dyn ProviderProtocol>,
        author: Arc<Author>,
        blocks: Arc<ToolBlocks>,
    ) -> Self {
        Self { endpoint, wire, author, transcript: Transcript::default(), blocks, tools: None }
    }

    pub(super) fn render(&mut self, request: &ModelRequest<'_>) -> Result<Vec<u8>, serde_json::Error> {
        self.transcript.update(self.wire.as_ref(), &self.author, request.messages)?;
        let block = match &self.tools {
            Some((toolset, block)) if Arc::ptr_eq(toolset, request.tools) => block.clone(),
            Some(_) | None => self.blocks.block(self.wire.as_ref(), request.tools)?,
        };
        let (_, block) = self.tools.insert((request.tools.clone(), block));
        let request = ModelRequest { messages: self.transcript.messages(), ..request.clone() };
        let (tools, names) = (block.json(), block.names());
        self.wire.body(&request, &RenderedParts { messages: self.transcript.json(), tools, names })
    }
}

#[async_trait]
impl Conversation for HttpConversation {
    async fn reply(&mut self, request: &ModelRequest<'_>, deltas: DeltaSink<'_>) -> Result<Reply, ModelFailure> {
        self.wire.check(request)?;
        let body = self.render(request).map_err(|error| {
            self.transcript = Transcript::default();
            Failure::new(ErrorCode::Internal, format!("the conversation cannot be written as JSON: {error}"))
        })?;
        let key = self.endpoint.keys().current().await?;
        // The body is kept only if another key may follow a rejected one.
        let again = self.endpoint.keys().may_change().then(|| body.clone());
        let refused = match (self.exchange(body, request.trace, key.as_ref(), deltas).await, again) {
            (Err(refused), Some(body)) if refused.failure.code == ErrorCode::ProviderAuth => (refused, body),
            (outcome, _) => return outcome,
        };
        let (refused, body) = refused;
        // The server did not process a request with a rejected key, so this is still the same attempt.
        match self.endpoint.keys().instead_of(key.as_ref()).await? {
            Some(fresh) => self.exchange(body, request.trace, Some(&fresh), deltas).await,
            None => Err(refused),
        }
    }
}

impl HttpConversation {
    /// Sends the body with this key, and reads the answer.
    async fn exchange(
        &self,
        body: Vec<u8>,
        trace: &SpanContext,
        key: Option<&SecretString>,
        deltas: DeltaSink<'_>,
    ) -> Result<Reply, ModelFailure> {
        let reply = self.send_and_read(body, trace, key, deltas).await;
        reply.map_err(|failed| {
            let failure = self.endpoint.secrets().scrub(failed.failure, key);
            ModelFailure { failure, ..failed }
        })
    }

    async fn send_and_read(
        &self,
        body: Vec<u8>,
        trace: &SpanContext,
        key: Option<&SecretString>,
        deltas: DeltaSink<'_>,
    ) -> Result<Reply, ModelFailure> {
        let deadlines = Deadlines::start(*self.endpoint.timeouts());
        let request = self.endpoint.post(body, trace, key)?;
        let response = deadlines.wait(self.first_awaited(), request.send()).await?;
        let response = response.map_err(|error| not_sent(&self.endpoint, &error))?;
        let is_missing = response.status() == StatusCode::NOT_FOUND;
        let mut answer = Answer::new(self.head(&response), &self.wire);
        let first_token_ms = match self.receive(response, &mut answer, &deadlines, deltas).await {
            Ok(first_token_ms) => first_token_ms,
            Err(failure) => return Err(ModelFailure { failure, usage: answer.usage() }),
        };
        let mut reply = answer.end(self.transcript.ids());
        if let (true, Err(failed)) = (is_missing, &mut reply)
            && let Some(remedy) = connection_remedy::for_missing_path(self.endpoint.url())
        {
            failed.failure.message.push_str(&format!(". {remedy}"));
        }
        let reply = reply?;
        let provider_state = reply.provider_state.map(|state| self.author.sign(state));
        Ok(Reply { first_token_ms, provider_state, ..reply })
    }

    /// Reads until the answer is complete or the response ends; returns the time of the first fragment.
    async fn receive(
        &self,
        mut response: Response,
        answer: &mut Answer,
        deadlines: &Deadlines,
        deltas: DeltaSink<'_>,
    ) -> Result<Option<u64>, Failure> {
        let mut first_token_ms = None;
        let mut settled = None;
        loop {
            if settled.is_none() && answer.is_settled() {
                settled = Some(Instant::now());
            }
            let awaited = match (settled, answer.has_begun()) {
                (Some(settled), _) => AwaitedEvent::Rest(settled),
                (None, true) => AwaitedEvent::NextPiece,
                (None, false) => self.first_awaited(),
            };
            let piece = match deadlines.wait(awaited, response.chunk()).await {
                Ok(Ok(piece)) => piece,
                // The model finished before the connection did; at most the usage is missing.
                Ok(Err(_)) | Err(_) if answer.is_settled() => None,
                Ok(Err(error)) => return Err(self.broken(error)),
                Err(late) => return Err(late),
            };
            let Some(piece) = piece else { return Ok(first_token_ms) };
            let progress = answer.push(&piece, &mut |delta| deltas(delta))?;
            if first_token_ms.is_none() && answer.is_streamed() && answer.has_begun() {
                first_token_ms = Some(deadlines.elapsed_ms());
            }
            if progress == Progress::Enough {
                drain(&mut response).await;
                return Ok(first_token_ms);
            }
        }
    }

    fn first_awaited(&self) -> AwaitedEvent {
        if self.wire.streams() { AwaitedEvent::FirstToken } else { AwaitedEvent::WholeReply }
    }

    fn head(&self, response: &Response) -> Head {
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        let streaming = self.wire.streams();
        Head::new(self.endpoint.origin(), response.status().as_u16(), header, streaming, Timestamp::now())
    }

    fn broken(&self, error: reqwest::Error) -> Failure {
        let (server, why) = (self.endpoint.origin(), root_cause(&error));
        Failure::new(ErrorCode::ProviderInvalidResponse, format!("the answer of {server} was cut off: {why}"))
    }
}

/// The failure of a request that did not reach the server.
pub(super) fn not_sent(endpoint: &Endpoint, error: &reqwest::Error) -> Failure {
    if error.is_timeout() {
        let (server, limit) = (endpoint.origin(), endpoint.timeouts().connect);
        return Failure::new(ErrorCode::ProviderTimeout, format!("no connection to {server} within {limit:?}"));
    }
    if let Some(refused) = toolgate_egress::rejection(error) {
        return Failure::new(ErrorCode::Configuration, refused.to_string());
    }
    let (server, why) = (endpoint.origin(), root_cause(error));
    let remedy = connection_remedy::for_connection(endpoint.url(), error);
    let remedy = remedy.map(|remedy| format!(". {remedy}")).unwrap_or_default();
    Failure::new(ErrorCode::ProviderUnavailable, format!("{server} cannot be reached: {why}{remedy}"))
}

/// Reads the end of a stream, if it is already there.
async fn drain(response: &mut Response) {
    let rest = async { while let Ok(Some(_)) = response.chunk().await {} };
    // The result does not matter: a connection with unread bytes is closed instead of reused.
    let _ = timeout(DRAIN, rest).await;
}

/// The innermost cause: the outer ones contain the address, which may hold credentials.
fn root_cause(error: &reqwest::Error) -> String {
    let mut cause = error.source();
    while let Some(inner) = cause.and_then(|cause| cause.source()) {
        cause = Some(inner);
    }
    cause.map_or_else(|| "the connection was closed".into(), ToString::to_string)
}
