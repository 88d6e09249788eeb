//! Handshake messages over a transport, before the SDK takes it over: requests with their own ids, and the answers to
//! them. This module draws no conclusions.

use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ClientResult, DiscoverRequest, DiscoverRequestParams,
    ErrorData, GetExtensions, InitializeRequest, InitializedNotification, MetaObject, RequestId, RequestMetaObject,
    ServerJsonRpcMessage, ServerRequest,
};
use rmcp::transport::{DynamicTransportError, Transport};
use serde_json::{Map, Value};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{Era, introduction};
use crate::result_json::raw;

/// The first request id of the handshake. The SDK counts from zero, and must not take a late answer to the handshake
/// for the answer to one of its requests.
const FIRST_ID: i64 = 2_147_000_000;
/// How long the rest of a stream is read. A descendant process may keep it open.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How many replies to pings may be on their way. A server that does not take them gets no further ones.
const MAX_PONGS: usize = 64;

/// A transport that carries only the handshake.
pub(super) struct HandshakeTransport<T> {
    transport: T,
    elicitation: bool,
    /// Metadata that is sent with every request, besides the protocol's own.
    meta: Map<String, Value>,
    questions: Vec<Question>,
    pongs: JoinSet<()>,
}

/// A handshake request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// `server/discover`.
    Discover,
    Initialize,
}

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) to: Question,
    pub(super) result: Result<Value, ErrorData>,
}

/// Why no further answer can arrive.
#[derive(Debug)]
pub(crate) enum HandshakeFailure {
    /// The stream ended.
    Ended,
    /// A message could not be delivered.
    Unsendable(DynamicTransportError),
}

impl<T: Transport<RoleClient> + 'static> HandshakeTransport<T> {
    /// Wraps a transport.
    pub(super) fn over(transport: T, elicitation: bool, meta: Map<String, Value>) -> Self {
        Self { transport, elicitation, meta, questions: Vec::new(), pongs: JoinSet::new() }
    }

    /// Sends a request. Over HTTP this returns when the answer begins.
    pub(super) async fn ask(&mut self, question: Question) -> Result<(), HandshakeFailure> {
        let position = i64::try_from(self.questions.len()).unwrap_or(i64::MAX - FIRST_ID);
        self.questions.push(question);
        let message = ClientJsonRpcMessage::request(self.request(question), RequestId::Number(FIRST_ID + position));
        self.send(message).await
    }

    /// Waits for an answer to any request. Cancel safe.
    pub(super) async fn answer(&mut self) -> Result<Answer, HandshakeFailure> {
        loop {
            #[expect(clippy::wildcard_enum_match_arm, reason = "an open enum of the SDK; nothing else is due yet")]
            match self.transport.receive().await.ok_or(HandshakeFailure::Ended)? {
                ServerJsonRpcMessage::Response(response) => {
                    if let Some(to) = self.question_of(&response.id)
                        && let Ok(result) = raw(response.result)
                    {
                        return Ok(Answer { to, result: Ok(result) });
                    }
                }
                ServerJsonRpcMessage::Error(error) => {
                    // A server that cannot parse a request may not know its id either.
                    let to = match &error.id {
                        Some(id) => self.question_of(id),
                        None => self.questions.last().copied(),
                    };
                    if let Some(to) = to {
                        return Ok(Answer { to, result: Err(error.error) });
                    }
                }
                ServerJsonRpcMessage::Request(request) if matches!(request.request, ServerRequest::PingRequest(_)) => {
                    self.pong(request.id);
                }
                _ => {}
            }
        }
    }

    /// Reads the rest of a broken stream: a process that exited may have printed the reason.
    pub(super) async fn drain(&mut self) {
        let _ = timeout(LAST_WORDS, async { while self.transport.receive().await.is_some() {} }).await;
    }

    /// Completes a handshake of the legacy era.
    pub(super) async fn confirm(&mut self) -> Result<(), HandshakeFailure> {
        let done = ClientNotification::InitializedNotification(InitializedNotification::default());
        self.send(ClientJsonRpcMessage::notification(done)).await
    }

    /// The transport, for the SDK.
    pub(super) fn into_transport(mut self) -> T {
        self.pongs.detach_all();
        self.transport
    }

    /// Replies to a ping. The send is not awaited here: its transport may need to be read for it.
    fn pong(&mut self, id: RequestId) {
        while self.pongs.try_join_next().is_some() {}
        if self.pongs.len() < MAX_PONGS {
            let sending = self.transport.send(ClientJsonRpcMessage::response(ClientResult::empty(()), id));
            self.pongs.spawn(async move { drop(sending.await) });
        }
    }

    async fn send(&mut self, message: ClientJsonRpcMessage) -> Result<(), HandshakeFailure> {
        let sent = self.transport.send(message).await;
        sent.map_err(|error| HandshakeFailure::Unsendable(DynamicTransportError::new::<T, RoleClient>(error)))
    }

    fn request(&self, question: Question) -> ClientRequest {
        match question {
            Question::Discover => {
                let who = introduction(Era::Modern, self.elicitation);
                let mut meta =
                    RequestMetaObject::with_client_context(who.protocol_version, who.client_info, who.capabilities);
                meta.0.extend(MetaObject::from(self.meta.clone()));
                let mut request = DiscoverRequest::new(DiscoverRequestParams {});
                request.extensions_mut().insert(meta);
                ClientRequest::DiscoverRequest(request)
            }
            Question::Initialize => {
                let mut request = InitializeRequest::new(introduction(Era::Legacy, self.elicitation));
                if !self.meta.is_empty() {
                    request.extensions_mut().insert(RequestMetaObject(MetaObject::from(self.meta.clone())));
                }
                ClientRequest::InitializeRequest(request)
            }
        }
    }

    fn question_of(&self, id: &RequestId) -> Option<Question> {
        let number = match id {
            RequestId::Number(number) => *number,
            RequestId::String(text) => text.parse().ok()?,
        };
        self.questions.get(usize::try_from(number.checked_sub(FIRST_ID)?).ok()?).copied()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::json;
    use tokio::io::{AsyncWriteExt as _, duplex};

    use super::*;
    use crate::transport::{Disconnection, LineTransport, Requests, StreamObservers};

    /// A server that sends pings and then the answer, and takes no reply.
    struct Pings {
        left: usize,
        /// The replies that wait to be taken.
        replies: Arc<()>,
    }

    impl Transport<RoleClient> for Pings {
        type Error = std::io::Error;

        fn send(
            &mut self,
            message: ClientJsonRpcMessage,
        ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
            let is_reply = matches!(message, ClientJsonRpcMessage::Response(_));
            let reply = is_reply.then(|| self.replies.clone());
            async move {
                if reply.is_some() {
                    std::future::pending::<()>().await;
                }
                Ok(())
            }
        }

        async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
            let message = match self.left {
                0 => json!({"jsonrpc": "2.0", "id": FIRST_ID, "result": {}}),
                left => json!({"jsonrpc": "2.0", "id": left, "method": "ping"}),
            };
            self.left = self.left.saturating_sub(1);
            serde_json::from_value(message).ok()
        }

        async fn close(&mut self) -> Result<(), Self::Error> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn few_replies_to_pings_wait_at_a_time() {
        let replies = Arc::new(());
        let mut transport =
            HandshakeTransport::over(Pings { left: 10_000, replies: replies.clone() }, false, Map::new());
        transport.ask(Question::Initialize).await.expect("it is sent");
        transport.answer().await.expect("an answer");
        assert_eq!(Arc::strong_count(&replies), 2 + MAX_PONGS);
    }

    #[tokio::test]
    async fn the_last_output_of_an_exited_process_is_read() {
        let (mut stdout, reading) = duplex(1024);
        let (writing, stdin) = duplex(1024);
        let heard: Arc<Mutex<Vec<u8>>> = Arc::default();
        let noted = heard.clone();
        let on_noise = Box::new(move |text: &[u8]| noted.lock().expect("no panic").extend_from_slice(text));
        let taps = StreamObservers { on_noise, ..StreamObservers::default() };
        let transport = LineTransport::new(reading, writing, Requests::default(), Disconnection::default(), taps);
        stdout.write_all(b"SHOP_TOKEN is not set\n").await.expect("there is room");
        drop((stdout, stdin));

        let mut transport = HandshakeTransport::over(transport, false, Map::new());
        let sent = transport.ask(Question::Discover).await;
        assert!(matches!(sent, Err(HandshakeFailure::Unsendable(_))), "{sent:?}");
        transport.drain().await;
        assert_eq!(String::from_utf8_lossy(&heard.lock().expect("no panic")), "SHOP_TOKEN is not set");
    }
}
