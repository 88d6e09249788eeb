//! Authorizing HTTP client: sends the current token, and after a refusal the next one. A refused request had no
//! effect, so it is sent again.

use std::collections::HashMap;
use std::sync::Arc;

use futures::stream::BoxStream;
use http::{HeaderName, HeaderValue, StatusCode};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::auth::AuthError;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use secrecy::{ExposeSecret, SecretString};
use sse_stream::Sse;

use super::access::{Access, TokenRefusal};
use super::fault::AccessError;

type Headers = HashMap<HeaderName, HeaderValue>;
type Failure = StreamableHttpError<reqwest::Error>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

/// How often a request is repeated with a token that has more scopes.
const WIDENINGS: usize = 2;

/// An HTTP client that sends a token, where access is configured.
#[derive(Clone, Debug)]
pub(crate) struct AuthorizedClient<C> {
    inner: C,
    access: Option<Arc<Access>>,
}

impl<C> AuthorizedClient<C> {
    /// Wraps a client with this access; `None` sends requests unchanged.
    pub(crate) fn new(inner: C, access: Option<Arc<Access>>) -> Self {
        Self { inner, access }
    }

    async fn send<T, F, R>(&self, given: Option<String>, request: F) -> Result<T, Failure>
    where
        F: Fn(Option<String>) -> R + Send + Sync,
        R: Future<Output = Result<T, Failure>> + Send,
        T: Send,
    {
        let Some(access) = self.access.as_ref().filter(|_| given.is_none()) else {
            return request(given).await;
        };
        let mut token = access.token().await.map_err(sdk_error)?;
        let (mut renewed, mut widened) = (false, 0);
        loop {
            let failure = match request(exposed(token.as_ref())).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            let Some(refused) = refusal(&failure) else { return Err(failure) };
            match &refused {
                TokenRefusal::Unauthorized { .. } if renewed => return Err(sdk_error(AccessError::Distrusted)),
                TokenRefusal::Unauthorized { .. } => renewed = true,
                TokenRefusal::Insufficient { .. } if widened == WIDENINGS => return Err(failure),
                TokenRefusal::Insufficient { .. } => widened += 1,
            }
            token = Some(access.after(token, refused).await.map_err(sdk_error)?);
        }
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

impl<C: StreamableHttpClient<Error = reqwest::Error> + Sync> StreamableHttpClient for AuthorizedClient<C> {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let post = |token| {
            let (uri, message, session, headers) = (uri.clone(), message.clone(), session_id.clone(), headers.clone());
            self.inner.post_message(uri, message, session, token, headers)
        };
        self.send(auth_header, post).await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        headers: Headers,
        max: usize,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let post = |token| {
            let (uri, message, session, headers) = (uri.clone(), message.clone(), session_id.clone(), headers.clone());
            self.inner.post_message_with_max_sse_event_size(uri, message, session, token, headers, max)
        };
        self.send(auth_header, post).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        headers: Headers,
    ) -> Result<(), Failure> {
        let delete = |token| self.inner.delete_session(uri.clone(), session_id.clone(), token, headers.clone());
        self.send(auth_header, delete).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        headers: Headers,
    ) -> Result<Events, Failure> {
        let get = |token| {
            let (uri, session, last, headers) =
                (uri.clone(), session_id.clone(), last_event_id.clone(), headers.clone());
            self.inner.get_stream(uri, session, last, token, headers)
        };
        self.send(auth_header, get).await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        headers: Headers,
        max: usize,
    ) -> Result<Events, Failure> {
        let get = |token| {
            let (uri, session, last, headers) =
                (uri.clone(), session_id.clone(), last_event_id.clone(), headers.clone());
            self.inner.get_stream_with_max_sse_event_size(uri, session, last, token, headers, max)
        };
        self.send(auth_header, get).await
    }
}
