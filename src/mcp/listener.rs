//! What a server may say unasked. Progress finds its way to the call it belongs to; everything else that a server asks
//! of a client is refused, because toolgate offers none of it.

use std::collections::HashMap;
use std::sync::Arc;

#[expect(deprecated, reason = "servers of the older revisions still ask for roots")]
use rmcp::model::ListRootsResult;
use rmcp::model::{ClientConfig, ErrorData, ListRootsRequestMethod, ProgressNotificationParam, ProgressToken};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, RoleClient};
use tokio::sync::{Mutex, MutexGuard, mpsc};

use super::era;
use super::signals::Signals;
use crate::ports::Progress;

/// How much unread progress is kept per call. More is dropped: it is a courtesy, not a fact.
const UNREAD: usize = 64;

/// The client's side of a connection.
#[derive(Clone)]
pub(super) struct Listener {
    routes: Arc<Mutex<Routes>>,
    signals: Signals,
}

/// Who waits for progress under which token.
#[derive(Default)]
pub(super) struct Routes(HashMap<ProgressToken, mpsc::Sender<Progress>>);

impl Listener {
    /// Of a connection with these signals.
    pub(super) fn new(signals: Signals) -> Self {
        Self { routes: Arc::default(), signals }
    }

    /// Holds progress back until the guard is dropped, so that none overtakes the registration of its call.
    pub(super) async fn hold(&self) -> MutexGuard<'_, Routes> {
        self.routes.lock().await
    }
}

impl Routes {
    /// Whatever is reported under the token arrives at the receiver, until that is dropped.
    pub(super) fn register(&mut self, token: ProgressToken) -> mpsc::Receiver<Progress> {
        self.0.retain(|_, route| !route.is_closed());
        let (sender, receiver) = mpsc::channel(UNREAD);
        self.0.insert(token, sender);
        receiver
    }
}

impl ClientHandler for Listener {
    async fn on_progress(&self, said: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        if let Some(route) = self.routes.lock().await.0.get(&said.progress_token) {
            let progress = Progress { progress: said.progress, total: said.total, message: said.message };
            let _ = route.try_send(progress);
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.signals.tools_changed.notify_one();
    }

    /// An empty list would be an answer, and would be taken for "you may use no directory".
    #[expect(deprecated, reason = "servers of the older revisions still ask")]
    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListRootsRequestMethod>())
    }

    fn get_info(&self) -> ClientConfig {
        era::introduction()
    }
}
