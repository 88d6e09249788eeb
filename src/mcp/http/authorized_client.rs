//! Authorizing HTTP client: sends the current token, and after a refusal the next one. A refused request had no
//! effect, so it is sent again.

use std::sync::{Arc, Mutex, PoisonError};

use http::StatusCode;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest};
use rmcp::transport::auth::AuthError;
use rmcp::transport::streamable_http_client::{StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse};
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::mpsc;

use super::client::{Events, Failure, Headers};
use super::non_mcp_response::UNAUTHORIZED;
use super::post::{Target, is_confirmation};
use super::resume;
use super::traced_client::TracedClient;
use crate::auth::{Access, AccessError, AuthorizationRecord, RequestKind, TokenRefusal};
use crate::transport::MAX_TEXT;

/// How often a request is repeated with a token that has more scopes.
const WIDENINGS: usize = 2;

/// The HTTP client of the SDK's transport. It sends a token, where access is configured.
#[derive(Clone, Debug)]
pub(super) struct AuthorizedClient {
    client: TracedClient,
    access: Option<Arc<Access>>,
    confirmation: Confirmation,
}

/// The refusal of the message that completes a handshake. Clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Confirmation(Arc<Mutex<Option<Failure>>>);

impl Confirmation {
    /// Takes the refusal, if there was one.
    pub(super) fn take_refusal(&self) -> Option<Failure> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn refused(&self, failure: Failure) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
    }
}

impl AuthorizedClient {
    /// Wraps a client with this access; `None` sends requests unchanged.
    pub(super) fn new(client: TracedClient, access: Option<Arc<Access>>) -> Self {
        Self { client, access, confirmation: Confirmation::default() }
    }

    /// The refusal of the message that completes a handshake, which the SDK does not pass on.
    pub(super) fn confirmation(&self) -> Confirmation {
        self.confirmation.clone()
    }

    /// The rests of streams that the SDK is done with.
    pub(super) fn rests(&self) -> Option<mpsc::Receiver<Events>> {
        self.client.seen().elsewhere.rests()
    }

    /// The authorization status of the server.
    fn status(&self) -> &AuthorizationRecord {
        &self.client.seen().authorization
    }

    /// The failure of a request without access, which is the server's status from now on.
    fn denied(&self, error: AccessError) -> Failure {
        self.status().denied(&error);
        sdk_error(error)
    }

    async fn send<T, F, R>(&self, kind: RequestKind, target: Target, request: F) -> Result<T, Failure>
    where
        F: Fn(Target) -> R + Send + Sync,
        R: Future<Output = Result<T, Failure>> + Send,
        T: Send,
    {
        let Some(access) = self.access.as_ref().filter(|_| target.token.is_none()) else {
            return request(target).await;
        };
        let mut token = access.token().await.map_err(|error| self.denied(error))?;
        let (mut renewed, mut widened) = (false, 0);
        loop {
            let failure = match request(Target { token: exposed(token.as_ref()), ..target.clone() }).await {
                Ok(answer) => {
                    if token.is_some() {
                        self.status().accepted(kind);
                    }
                    return Ok(answer);
                }
                Err(failure) => failure,
            };
            let Some(refused) = refusal(&failure) else { return Err(failure) };
            match &refused {
                TokenRefusal::Unauthorized { .. } if renewed => return Err(self.denied(AccessError::Distrusted)),
                TokenRefusal::Unauthorized { .. } => renewed = true,
                TokenRefusal::Insufficient { .. } if widened == WIDENINGS => {
                    self.status().denied(&AccessError::Insufficient(String::new()));
                    return Err(failure);
                }
                TokenRefusal::Insufficient { .. } => widened += 1,
            }
            token = Some(access.after(token, refused).await.map_err(|error| self.denied(error))?);
        }
    }
}

fn kind_of(message: &ClientJsonRpcMessage) -> RequestKind {
    let ClientJsonRpcMessage::Request(request) = message else { return RequestKind::Other };
    match matches!(request.request, ClientRequest::CallToolRequest(_)) {
        true => RequestKind::Call,
        false => RequestKind::Other,
    }
}

/// The refusals of a server that are about access. Some servers answer 401 without a challenge.
#[expect(clippy::wildcard_enum_match_arm, reason = "an open enum of the SDK; nothing else is about access")]
fn refusal(failure: &Failure) -> Option<TokenRefusal> {
    match failure {
        StreamableHttpError::AuthRequired(required) => {
            Some(TokenRefusal::Unauthorized { challenge: required.www_authenticate_header.clone() })
        }
        StreamableHttpError::InsufficientScope(insufficient) => {
            Some(TokenRefusal::Insufficient { challenge: insufficient.www_authenticate_header.clone() })
        }
        StreamableHttpError::Client(error) if error.status() == Some(StatusCode::UNAUTHORIZED) => {
            Some(TokenRefusal::Unauthorized { challenge: String::new() })
        }
        StreamableHttpError::UnexpectedServerResponse(text) if text.starts_with("HTTP 401") => {
            Some(TokenRefusal::Unauthorized { challenge: String::new() })
        }
        _ => None,
    }
}

/// Our own message in an error of the SDK: one error kind for transient failures, one for permanent ones.
fn sdk_error(error: AccessError) -> Failure {
    let words = error.to_string();
    StreamableHttpError::Auth(match error {
        AccessError::Failed(_) => AuthError::OAuthError(words),
        AccessError::LoginNeeded { .. }
        | AccessError::Credentials(_)
        | AccessError::Insufficient(_)
        | AccessError::Distrusted => AuthError::AuthorizationFailed(words),
    })
}

fn exposed(token: Option<&SecretString>) -> Option<String> {
    token.map(|token| token.expose_secret().to_owned())
}

impl StreamableHttpClient for AuthorizedClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        self.post_message_with_max_sse_event_size(uri, message, session, token, headers, MAX_TEXT).await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
        max: usize,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let kind = kind_of(&message);
        if let (RequestKind::Call, Some(session)) = (kind, &session) {
            self.client.seen().session_stream.ready(session).await;
        }
        let target = Target { uri, session, token, headers, max };
        let answered = self.send(kind, target, |target| self.client.post(target, &message)).await;
        if self.access.is_none() {
            match answered.as_ref().map_err(refusal) {
                Ok(_) => self.status().accepted_without_token(kind),
                Err(Some(TokenRefusal::Unauthorized { .. })) => self.status().unauthorized(kind, UNAUTHORIZED),
                Err(Some(TokenRefusal::Insufficient { .. }) | None) => {}
            }
        }
        if !is_confirmation(&message) {
            return answered;
        }
        match answered {
            Ok(StreamableHttpPostResponse::Sse(events, _)) => self.client.seen().elsewhere.leave(events),
            Ok(_) => {}
            Err(failure) => self.confirmation.refused(failure),
        }
        Ok(StreamableHttpPostResponse::Accepted)
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), Failure> {
        let target = Target { uri, session: Some(session), token, headers, max: MAX_TEXT };
        self.send(RequestKind::Other, target, |target| self.client.delete(target)).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<Events, Failure> {
        self.get_stream_with_max_sse_event_size(uri, session, last_event, token, headers, MAX_TEXT).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
        max: usize,
    ) -> Result<Events, Failure> {
        let seen = self.client.seen();
        let opens_session = session.clone().filter(|_| last_event.is_none());
        let target = Target { uri, session, token, headers, max };
        let get = self.send(RequestKind::Other, target, |target| self.client.get(target, last_event.clone()));
        let opened = resume::open(seen, last_event.as_deref(), get).await;
        if let Some(session) = opens_session {
            seen.session_stream.answered(&session);
        }
        opened
    }
}
