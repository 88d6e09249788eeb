//! Caller of tools: a session that is opened again after a crash.

use serde_json::{Value, json};

use crate::check::context::{Context, Session};
use crate::check::revision::Revision;
use crate::check::wire::answer::{Answer, NoAnswer};

/// The most times that a server which exits is started again.
const MAX_RESTARTS: usize = 30;

/// A session for calls, which is opened again after a crash.
pub(super) struct Caller<'a> {
    pub(super) context: &'a Context,
    pub(super) revision: Revision,
    session: Option<Session>,
    restarts: usize,
    tokens: usize,
}

impl<'a> Caller<'a> {
    /// A caller without a session.
    pub(super) fn new(context: &'a Context, revision: Revision) -> Self {
        Self { context, revision, session: None, restarts: 0, tokens: 0 }
    }

    /// Forgets the session, so that the next call opens a new one.
    pub(super) fn renew(&mut self) {
        self.session = None;
    }

    /// Parameters of tools/call, with a progress token of their own.
    pub(super) fn params(&mut self, tool: &str, arguments: Option<&Value>) -> Value {
        self.tokens += 1;
        let mut params = json!({"name": tool, "_meta": {"progressToken": format!("progress-{}", self.tokens)}});
        if let (Some(members), Some(arguments)) = (params.as_object_mut(), arguments) {
            members.insert("arguments".into(), arguments.clone());
        }
        params
    }

    /// The session; a new one if the process of the last one ended.
    pub(super) async fn session(&mut self) -> Option<Session> {
        if let Some(session) = &self.session {
            return Some(session.clone());
        }
        if self.restarts > MAX_RESTARTS {
            return None;
        }
        self.restarts += 1;
        self.session = open(self.context, self.revision).await;
        self.session.clone()
    }

    /// Calls a tool. After a crash the next call opens a new session.
    pub(super) async fn call(&mut self, tool: &str, arguments: Option<&Value>) -> Option<Result<Answer, NoAnswer>> {
        let session = self.session().await?;
        let params = self.params(tool, arguments);
        let answered = session.connection.request_within("tools/call", params, self.context.limits.call).await;
        if answered.as_ref().is_err_and(NoAnswer::is_closed) {
            self.session = None;
        }
        Some(answered)
    }
}

async fn open(context: &Context, revision: Revision) -> Option<Session> {
    if !revision.is_modern() {
        return context.initialize("calls", revision.as_str()).await.ok();
    }
    let connection = context.connect("calls").ok()?;
    context.discover(connection).await.ok()
}
