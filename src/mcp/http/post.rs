//! One POST and its response. An HTTP response belongs to one request, so its status decides at once: an answer that
//! cannot be read, names another request or is missing fails the posted request.

use std::sync::Arc;

use http::StatusCode;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, RETRY_AFTER, WWW_AUTHENTICATE};
use reqwest::{RequestBuilder, Response};
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, InsufficientScopeError, StreamableHttpError, StreamableHttpPostResponse,
};

use super::client::{Client, Delivery, Events, Failure, Headers};
use super::confidential::Confidential;
use super::non_mcp_response::NonMcpResponse;
use super::reader::{Reader, answers, events_of};
use super::seen::Seen;
use super::session;
use crate::transport::{self, Disposition, Incoming, Stream};

/// The size limits of a JSON body, and of the body of an error.
const MAX_JSON: usize = 16 * 1024 * 1024;
const MAX_ERROR: usize = 64 * 1024;
const SESSION: &str = "mcp-session-id";
/// Headers that the configuration must not set.
const OWN_HEADERS: [&str; 3] = ["accept", SESSION, "last-event-id"];
const BOTH_KINDS: &str = "text/event-stream, application/json";

/// The target of a request.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) uri: Arc<str>,
    pub(super) session: Option<Arc<str>>,
    pub(super) token: Option<String>,
    pub(super) headers: Headers,
    /// The longest event that is read.
    pub(super) max: usize,
}

/// The content type of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Json,
    Events,
    Other,
}

/// Posts a message.
pub(super) async fn post(
    client: &Client,
    target: Target,
    message: &ClientJsonRpcMessage,
    seen: &Seen,
    lists_tools: Option<bool>,
) -> Result<StreamableHttpPostResponse, Failure> {
    seen.requests.sending(message);
    seen.replies.sending(message);
    let id = if let JsonRpcMessage::Request(request) = message { Some(request.id.clone()) } else { None };
    let confidential = Arc::new(Confidential::new(&target.uri, &target.headers, target.token.as_ref()));
    let stream = id.clone().map_or(Stream::Shared, Stream::Of);
    let reader = Reader { seen: seen.clone(), request: id.clone(), stream, lists_tools, confidential };
    let posted = PostedMessage { message, id, has_session: target.session.is_some(), max: target.max, reader };
    let answered = posted.sent(client, target).await;
    seen.replies.delivered(message);
    if let (Some(id), Ok(StreamableHttpPostResponse::Json(..)) | Err(_)) = (&posted.id, &answered) {
        seen.requests.over(id);
    }
    answered
}

/// Opens a stream: that of a session, or the rest of one that ended.
pub(super) async fn get(
    client: &Client,
    target: Target,
    last_event: Option<String>,
    seen: &Seen,
) -> Result<Events, Failure> {
    let confidential = Arc::new(Confidential::new(&target.uri, &target.headers, target.token.as_ref()));
    let mut request = with_headers(client.pooled().get(&*target.uri), &target)?;
    let resumed = last_event.as_ref().and_then(|last_event| seen.resumable.request(last_event));
    if let Some(last_event) = last_event {
        request = request.header("last-event-id", last_event);
    }
    let response = client.send(request, Delivery::AtLeastOnce).await?;
    access(&response)?;
    match response.status() {
        StatusCode::NOT_FOUND if target.session.is_some() => return Err(StreamableHttpError::SessionExpired),
        StatusCode::METHOD_NOT_ALLOWED => return Err(StreamableHttpError::ServerDoesNotSupportSse),
        status if status.is_success() => {}
        status => {
            let retry_after = retry_after(response.headers()).map(str::to_owned);
            let body = body(response, MAX_ERROR).await.unwrap_or_default();
            let words = confidential.redacted(&String::from_utf8_lossy(&body));
            return Err(no_mcp(NonMcpResponse::status(status.as_u16(), &words, retry_after.as_deref())));
        }
    }
    match kind_of(response.headers()) {
        Kind::Events => {
            let (seen, stream) = (seen.clone(), Stream::Shared);
            let reader = Reader { seen, request: resumed, stream, lists_tools: None, confidential };
            Ok(reader.events(response, target.max))
        }
        // The rest of a stream may be nothing but the answer.
        Kind::Json => {
            let (seen, stream) = (seen.clone(), Stream::Shared);
            let reader = Reader { seen, request: resumed, stream, lists_tools: None, confidential };
            let body = body(response, MAX_JSON).await?;
            let messages = reader.read(&body).into_iter().filter_map(|admitted| match admitted {
                Disposition::Message(message) => Some(*message),
                Disposition::Ignored | Disposition::Noise => None,
            });
            match messages.collect::<Vec<_>>() {
                none if none.is_empty() => Err(no_mcp(reader.no_message(&body))),
                messages => Ok(events_of(messages)),
            }
        }
        Kind::Other => Err(StreamableHttpError::UnexpectedContentType(content_type(response.headers()))),
    }
}

struct PostedMessage<'a> {
    message: &'a ClientJsonRpcMessage,
    /// The id of a request; a notification or a reply has none.
    id: Option<RequestId>,
    has_session: bool,
    max: usize,
    reader: Reader,
}

impl PostedMessage<'_> {
    /// Sends the message. The answer to a request may arrive on the response of another one.
    async fn sent(&self, client: &Client, target: Target) -> Result<StreamableHttpPostResponse, Failure> {
        let Some(id) = self.id.clone() else { return self.send(client, target).await };
        let mut elsewhere = self.reader.seen.elsewhere.expect(id);
        let response = tokio::select! {
            biased;
            Ok(answer) = &mut elsewhere => return Ok(StreamableHttpPostResponse::Json(answer, None)),
            response = self.send(client, target) => response,
        };
        match elsewhere.try_recv() {
            Ok(answer) => Ok(StreamableHttpPostResponse::Json(answer, None)),
            Err(_) => response,
        }
    }

    async fn send(&self, client: &Client, target: Target) -> Result<StreamableHttpPostResponse, Failure> {
        let request = with_headers(client.pooled().post(&*target.uri), &target)?.json(self.message);
        let response = client.send(request, Delivery::for_message(self.message)).await?;
        access(&response)?;
        let status = response.status();
        if status == StatusCode::NOT_FOUND && self.has_session && !self.is_confirmation() {
            return Err(StreamableHttpError::SessionExpired);
        }
        match (status.is_success(), &self.id) {
            (false, _) => self.refused(response).await,
            (true, None) => Ok(self.acknowledged(response).await),
            (true, Some(id)) => self.answered(response, id).await,
        }
    }

    /// Handles a success in answer to a request.
    async fn answered(&self, response: Response, id: &RequestId) -> Result<StreamableHttpPostResponse, Failure> {
        let status = response.status();
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Err(no_mcp(NonMcpResponse::status(status.as_u16(), "", None)));
        }
        let session = session_of(&response);
        match kind_of(response.headers()) {
            Kind::Events => Ok(self.reader.clone().answer_or_events(response, self.max, session).await),
            Kind::Json => {
                let body = body(response, MAX_JSON).await?;
                let messages = self.messages(&body, id)?;
                Ok(one_or_many(messages, session))
            }
            Kind::Other => Err(StreamableHttpError::UnexpectedContentType(content_type(response.headers()))),
        }
    }

    /// Reads the messages of a body, one of which answers the request.
    fn messages(&self, body: &[u8], id: &RequestId) -> Result<Vec<ServerJsonRpcMessage>, Failure> {
        let mut messages = Vec::new();
        let mut is_message = false;
        for incoming in transport::read(body, |id| self.reader.seen.requests.is_in_flight(id)) {
            is_message |= !matches!(incoming, Incoming::Noise | Incoming::Misplaced { .. });
            if let Disposition::Message(message) = self.reader.admitted(correlated(incoming, id)) {
                messages.extend(self.reader.own(*message));
            }
        }
        if let Some(false) = self.reader.lists_tools {
            self.reader.seen.task_only.look_at(body);
        }
        if !is_message {
            return Err(no_mcp(self.reader.no_message(body)));
        }
        if !messages.iter().any(|message| answers(message, id)) {
            let why = format!("it does not answer the request: {}", transport::quoted(body));
            messages.extend(self.reader.failure(why));
        }
        Ok(messages)
    }

    /// Handles a success in answer to a message without an answer. Many servers send a body all the same.
    async fn acknowledged(&self, response: Response) -> StreamableHttpPostResponse {
        let session = session_of(&response);
        match kind_of(response.headers()) {
            Kind::Events => StreamableHttpPostResponse::Sse(self.reader.clone().events(response, self.max), session),
            Kind::Json => {
                let body = body(response, MAX_JSON).await.unwrap_or_default();
                // An error here is about the message, and no caller waits for it.
                let messages = self.reader.read(&body).into_iter().filter_map(|admitted| match admitted {
                    Disposition::Message(message) if !matches!(*message, JsonRpcMessage::Error(_)) => Some(*message),
                    Disposition::Message(_) | Disposition::Ignored | Disposition::Noise => None,
                });
                match messages.collect::<Vec<_>>() {
                    none if none.is_empty() => StreamableHttpPostResponse::Accepted,
                    messages => one_or_many(messages, session),
                }
            }
            Kind::Other => StreamableHttpPostResponse::Accepted,
        }
    }

    /// Handles any other status.
    async fn refused(&self, response: Response) -> Result<StreamableHttpPostResponse, Failure> {
        let (status, session) = (response.status(), session_of(&response));
        let retry_after = retry_after(response.headers()).map(str::to_owned);
        let refused =
            |body_text: &str| no_mcp(NonMcpResponse::status(status.as_u16(), body_text, retry_after.as_deref()));
        let is_json = kind_of(response.headers()) == Kind::Json;
        if self.is_confirmation() {
            return self.unconfirmed(response).await;
        }
        if status == StatusCode::TOO_MANY_REQUESTS || (status.is_server_error() && !is_json) {
            return Err(refused(""));
        }
        let body = body(response, MAX_ERROR).await.unwrap_or_default();
        let error = error_in(&body).map(|error| self.reader.confidential.error(error));
        if status == StatusCode::BAD_REQUEST && self.has_session && session::is_lost(&body, self.id.as_ref()) {
            return Err(StreamableHttpError::SessionExpired);
        }
        let body_text = self.reader.confidential.redacted(&String::from_utf8_lossy(&body));
        if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            let text = format!("HTTP {status}: {body_text}");
            return Err(StreamableHttpError::UnexpectedServerResponse(text.into()));
        }
        let Some(id) = &self.id else {
            // The refused message is not a request, and an error is an MCP answer.
            return if error.is_some() { Ok(StreamableHttpPostResponse::Accepted) } else { Err(refused(&body_text)) };
        };
        let error = error.or_else(|| self.is_discovery(status).then(|| refused_discovery(status, &body_text)));
        match error {
            Some(error) => {
                self.reader.seen.requests.over(id);
                let error = JsonRpcMessage::error(error, Some(id.clone()));
                Ok(StreamableHttpPostResponse::Json(error, session))
            }
            None => Err(refused(&body_text)),
        }
    }

    /// Handles the refusal of the message that completes a handshake. A server that merely does not know the message
    /// answers with a JSON-RPC error and works.
    async fn unconfirmed(&self, response: Response) -> Result<StreamableHttpPostResponse, Failure> {
        let status = response.status();
        let retry_after = retry_after(response.headers()).map(str::to_owned);
        let body = body(response, MAX_ERROR).await.unwrap_or_default();
        let error = error_in(&body).map(|error| self.reader.confidential.error(error));
        let is_lost = self.has_session && (status == StatusCode::NOT_FOUND || session::is_lost(&body, None));
        let words = match error {
            Some(_) if !is_lost => return Ok(StreamableHttpPostResponse::Accepted),
            Some(error) => error.message.into_owned(),
            None => self.reader.confidential.redacted(&String::from_utf8_lossy(&body)),
        };
        Err(no_mcp(NonMcpResponse::status(status.as_u16(), &words, retry_after.as_deref())))
    }

    /// Whether the message completes a handshake of the legacy era.
    fn is_confirmation(&self) -> bool {
        is_confirmation(self.message)
    }

    /// Whether a server without `server/discover` may have sent this status.
    fn is_discovery(&self, status: StatusCode) -> bool {
        let asked = if let JsonRpcMessage::Request(request) = self.message { Some(&request.request) } else { None };
        matches!(asked, Some(ClientRequest::DiscoverRequest(_))) && !self.has_session && status.is_client_error()
    }
}

/// Whether the message completes a handshake of the legacy era.
pub(super) fn is_confirmation(message: &ClientJsonRpcMessage) -> bool {
    matches!(message, JsonRpcMessage::Notification(notification)
        if matches!(notification.notification, ClientNotification::InitializedNotification(_)))
}

/// Corrects the id: in a response to one request, an error belongs to that request, whatever its id.
fn correlated(incoming: Incoming, id: &RequestId) -> Incoming {
    match incoming {
        Incoming::Message(message, flaws) => match *message {
            JsonRpcMessage::Error(mut error) => {
                error.id = Some(id.clone());
                Incoming::Message(Box::new(JsonRpcMessage::Error(error)), flaws)
            }
            other @ (JsonRpcMessage::Request(_) | JsonRpcMessage::Response(_) | JsonRpcMessage::Notification(_)) => {
                Incoming::Message(Box::new(other), flaws)
            }
        },
        Incoming::Unreadable { why, .. } => Incoming::Unreadable { id: Some(id.clone()), why },
        Incoming::Misplaced { .. } | Incoming::Noise => Incoming::Noise,
    }
}

/// The JSON-RPC error in a body, whatever its id.
fn error_in(body: &[u8]) -> Option<ErrorData> {
    transport::read(body, |_| true).into_iter().find_map(|incoming| match incoming {
        Incoming::Message(message, _) => match *message {
            JsonRpcMessage::Error(error) => Some(error.error),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Response(_) | JsonRpcMessage::Notification(_) => None,
        },
        Incoming::Unreadable { .. } | Incoming::Misplaced { .. } | Incoming::Noise => None,
    })
}

fn refused_discovery(status: StatusCode, body_text: &str) -> ErrorData {
    ErrorData::invalid_request(format!("server/discover rejected with HTTP {status}: {body_text}"), None)
}

fn one_or_many(mut messages: Vec<ServerJsonRpcMessage>, session: Option<String>) -> StreamableHttpPostResponse {
    match (messages.pop(), messages.is_empty()) {
        (Some(only), true) => StreamableHttpPostResponse::Json(only, session),
        (last, _) => {
            messages.extend(last);
            StreamableHttpPostResponse::Sse(events_of(messages), session)
        }
    }
}

fn no_mcp(answer: NonMcpResponse) -> Failure {
    StreamableHttpError::Io(std::io::Error::other(answer))
}

fn with_headers(mut request: RequestBuilder, target: &Target) -> Result<RequestBuilder, Failure> {
    request = request.header(ACCEPT, BOTH_KINDS);
    if let Some(token) = &target.token {
        request = request.bearer_auth(token);
    }
    for (name, value) in &target.headers {
        if OWN_HEADERS.contains(&name.as_str()) {
            return Err(StreamableHttpError::ReservedHeaderConflict(name.to_string()));
        }
        request = request.header(name, value);
    }
    Ok(match &target.session {
        Some(session) => request.header(SESSION, &**session),
        None => request,
    })
}

/// The access that a server requires before it answers, with its challenge.
fn access(response: &Response) -> Result<(), Failure> {
    let Some(challenge) = response.headers().get(WWW_AUTHENTICATE) else { return Ok(()) };
    let challenge = String::from_utf8_lossy(challenge.as_bytes()).into_owned();
    match response.status() {
        StatusCode::UNAUTHORIZED => Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge))),
        StatusCode::FORBIDDEN => {
            // The scopes are read from the challenge where they are requested.
            Err(StreamableHttpError::InsufficientScope(InsufficientScopeError::new(challenge, None)))
        }
        _ => Ok(()),
    }
}

/// A body up to a size limit, converted to UTF-8 if its content type names another charset.
async fn body(mut response: Response, max: usize) -> Result<Vec<u8>, Failure> {
    let too_large = || StreamableHttpError::ResponseBodyTooLarge { max_size: max };
    if response.content_length().is_some_and(|length| length > max as u64) {
        return Err(too_large());
    }
    let kind = response.headers().get(CONTENT_TYPE).cloned();
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await? {
        if body.len() + piece.len() > max {
            return Err(too_large());
        }
        body.extend_from_slice(&piece);
    }
    let charset = kind.filter(|kind| kind.to_str().is_ok_and(|kind| kind.to_ascii_lowercase().contains("charset=")));
    let Some(charset) = charset.filter(|_| std::str::from_utf8(&body).is_err()) else { return Ok(body) };
    let mut named = http::Response::new(body.clone());
    named.headers_mut().insert(CONTENT_TYPE, charset);
    Ok(Response::from(named).text().await.map_or(body, String::into_bytes))
}

fn session_of(response: &Response) -> Option<String> {
    response.headers().get(SESSION).and_then(|session| session.to_str().ok()).map(str::to_owned)
}

fn retry_after(headers: &HeaderMap) -> Option<&str> {
    headers.get(RETRY_AFTER).and_then(|after| after.to_str().ok()).filter(|after| after.len() <= 128)
}

fn content_type(headers: &HeaderMap) -> Option<String> {
    headers.get(CONTENT_TYPE).map(|kind| String::from_utf8_lossy(kind.as_bytes()).into_owned())
}

/// The kind of a body, by its content type without parameters and without case.
fn kind_of(headers: &HeaderMap) -> Kind {
    let kind = content_type(headers).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match essence.as_str() {
        "application/json" => Kind::Json,
        "text/event-stream" => Kind::Events,
        _ => Kind::Other,
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_content_type_is_read_without_case_and_parameters() {
        for (written, kind) in [
            ("application/json", Kind::Json),
            ("Application/JSON ; charset=\"UTF-8\"", Kind::Json),
            ("TEXT/EVENT-STREAM;charset=utf-8", Kind::Events),
            ("application/jsonl", Kind::Other),
            ("text/event-streams", Kind::Other),
            ("text/plain", Kind::Other),
        ] {
            let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(written))]);
            assert_eq!(kind_of(&headers), kind, "{written}");
        }
        assert_eq!(kind_of(&HeaderMap::new()), Kind::Other);
    }
}
