//! Requests and notifications from a server. Progress goes to its call, questions to the elicitation router, and a
//! change of the tools to the supervisor. Every other request of a server is refused, because toolgate does not offer
//! the capability.

use std::collections::HashMap;
use std::sync::Arc;

#[expect(deprecated, reason = "servers of the older revisions still ask for roots")]
use rmcp::model::ListRootsResult;
use rmcp::model::{
    ClientConfig, CustomRequest, CustomResult, ElicitRequestParams, ElicitResult, ElicitationCreateRequestMethod,
    ErrorCode, ErrorData, Extensions, ListRootsRequestMethod, ProgressNotificationParam, ProgressToken, RequestId,
};
use rmcp::service::{InboundStreamOrigin, NotificationContext, RequestContext};
use rmcp::{ClientHandler, RoleClient};
use serde_json::Value;
use tokio::sync::{Mutex, MutexGuard, mpsc};
use tokio_util::sync::CancellationToken;
use toolgate_core::tool::{ElicitationResponse, Progress};

use super::elicitation;
use super::elicitation_router::ElicitationRouter;
use super::signals::Signals;

/// The buffer of unread progress reports per call. Further reports are dropped: progress is optional.
const UNREAD: usize = 64;

/// The client side of a connection.
#[derive(Clone)]
pub(super) struct McpClientHandler {
    introduction: ClientConfig,
    routes: Arc<Mutex<Routes>>,
    router: ElicitationRouter,
    signals: Signals,
    ending: CancellationToken,
}

/// The receivers of progress, by token.
#[derive(Default)]
pub(super) struct Routes(HashMap<ProgressToken, mpsc::Sender<Progress>>);

impl McpClientHandler {
    /// A client with this introduction, for a connection with these signals, which ends with the token.
    pub(super) fn new(introduction: ClientConfig, signals: Signals, ending: CancellationToken) -> Self {
        Self { introduction, routes: Arc::default(), router: ElicitationRouter::default(), signals, ending }
    }

    /// Blocks progress and questions until the guard is dropped, so that they do not overtake the registration of
    /// their call.
    pub(super) async fn hold(&self) -> MutexGuard<'_, Routes> {
        self.routes.lock().await
    }

    /// The elicitation router.
    pub(super) fn router(&self) -> &ElicitationRouter {
        &self.router
    }

    async fn handle_elicitation(
        &self,
        params: &Value,
        context: &RequestContext<RoleClient>,
    ) -> Result<Value, ErrorData> {
        if self.introduction.capabilities.elicitation.is_none() {
            return Err(ErrorData::method_not_found::<ElicitationCreateRequestMethod>());
        }
        let wrong = |why: String| ErrorData::invalid_params(format!("this client cannot ask that: it {why}"), None);
        let question = elicitation::question(params).map_err(wrong)?;
        drop(self.hold().await);
        let request = request_of(&context.extensions);
        tokio::select! {
            biased;
            reaction = self.router.ask(request.as_ref(), question) => Ok(elicitation::response(&reaction)),
            // The server withdrew its request (`notifications/cancelled`). The SDK then sends no reply.
            () = context.ct.cancelled() => Ok(elicitation::response(&ElicitationResponse::cancel())),
            // The SDK ends a connection after its last question.
            () = self.ending.cancelled() => Ok(elicitation::response(&ElicitationResponse::cancel())),
        }
    }
}

/// The token as toolgate sends it. Some servers turn numbers into text.
fn canonical(token: ProgressToken) -> ProgressToken {
    match &token.0 {
        RequestId::String(text) => text.parse().map_or(token, |number| ProgressToken(RequestId::Number(number))),
        RequestId::Number(_) => token,
    }
}

/// The request on whose own stream a server asks. Unknown where all requests share one stream.
fn request_of(extensions: &Extensions) -> Option<RequestId> {
    match extensions.get::<InboundStreamOrigin>()? {
        InboundStreamOrigin::OutboundRequest(request) => Some(request.clone()),
        InboundStreamOrigin::Unassociated => None,
    }
}

impl Routes {
    /// Delivers progress with this token to the receiver, until the receiver is dropped.
    pub(super) fn register(&mut self, token: ProgressToken) -> mpsc::Receiver<Progress> {
        self.0.retain(|_, route| !route.is_closed());
        let (sender, receiver) = mpsc::channel(UNREAD);
        self.0.insert(token, sender);
        receiver
    }
}

impl ClientHandler for McpClientHandler {
    async fn on_progress(&self, notification: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        if let Some(route) = self.routes.lock().await.0.get(&canonical(notification.progress_token)) {
            let progress =
                Progress { progress: notification.progress, total: notification.total, message: notification.message };
            let _ = route.try_send(progress);
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.signals.tools_changed.notify_one();
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let internal = |error: serde_json::Error| ErrorData::internal_error(error.to_string(), None);
        let params = serde_json::to_value(params).map_err(internal)?;
        let response = self.handle_elicitation(&params, &context).await?;
        serde_json::from_value(response).map_err(internal)
    }

    /// Receives questions that the SDK cannot type.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleClient>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method != elicitation::METHOD {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None));
        }
        self.handle_elicitation(&request.params.unwrap_or_default(), &context).await.map(CustomResult)
    }

    /// An empty list would be an answer, and servers would read it as "you may use no directory".
    #[expect(deprecated, reason = "servers of the older revisions still ask")]
    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListRootsRequestMethod>())
    }

    fn get_info(&self) -> ClientConfig {
        self.introduction.clone()
    }
}
