//! Caller of tools: a session that is opened again after a crash.

use serde_json::{Value, json};

use crate::check::context::{Context, Session, Unopened};
use crate::check::revision::Revision;
use crate::check::rules::wire;
use crate::check::wire::answer::{Answer, NoAnswer};

/// The most times that the server is started for calls.
const MAX_STARTS: usize = 30;

/// A session for calls, which is opened again when the server exited or no longer answers.
pub(super) struct Caller<'a> {
    pub(super) context: &'a Context,
    pub(super) revision: Revision,
    /// The tools, whose parameters may be repeated in headers.
    tools: &'a [Value],
    session: Option<Session>,
    starts: usize,
    tokens: usize,
    /// Why no further call is possible.
    ended: Option<String>,
}

impl<'a> Caller<'a> {
    /// A caller without a session.
    pub(super) fn new(context: &'a Context, revision: Revision, tools: &'a [Value]) -> Self {
        Self { context, revision, tools, session: None, starts: 0, tokens: 0, ended: None }
    }

    /// Forgets the session, so that the next call opens a new one. Over stdio this ends the process.
    pub(super) fn renew(&mut self) {
        self.session = None;
    }

    /// Why tools are no longer called.
    pub(super) fn reason(&self) -> String {
        // It may have the last line of the server's stderr.
        self.context.findings.redacted(self.ended.as_deref().unwrap_or_default())
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

    /// The session; a new one if the last one ended. `None` when no further call is possible.
    pub(super) async fn session(&mut self) -> Option<Session> {
        if let Some(session) = self.session.take() {
            match session.connection.inbox.closed() {
                None => {
                    self.session = Some(session.clone());
                    return Some(session);
                }
                Some(reason) => {
                    let text = format!("the server ended after its answer to a call: {reason}");
                    self.context.findings.add(session.finding(&wire::SERVER_CRASHED, text));
                }
            }
        }
        if self.ended.is_some() {
            return None;
        }
        if self.starts == MAX_STARTS {
            self.ended = Some(format!("the server was already started {MAX_STARTS} times because of earlier calls"));
            return None;
        }
        self.starts += 1;
        match open(self.context, self.revision).await {
            Ok(session) => {
                if let Some(endpoint) = session.connection.endpoint() {
                    endpoint.repeat_parameters(self.tools);
                }
                self.session = Some(session);
            }
            Err(why) => {
                self.ended = Some(format!("no new session could be opened after earlier calls: {}", why.in_words()))
            }
        }
        self.session.clone()
    }

    /// Calls a tool. After a crash, and after a call without an answer, the next call opens a new session: the server may
    /// still be busy with this call, and answer none of the others.
    pub(super) async fn call(&mut self, tool: &str, arguments: Option<&Value>) -> Option<Result<Answer, NoAnswer>> {
        let session = self.session().await?;
        let params = self.params(tool, arguments);
        let answered = session.connection.request_within("tools/call", params, self.context.limits.call).await;
        if matches!(answered, Err(NoAnswer::Closed(_) | NoAnswer::TimedOut(_))) {
            self.session = None;
        }
        Some(answered)
    }
}

async fn open(context: &Context, revision: Revision) -> Result<Session, Unopened> {
    if !revision.is_modern() {
        return context.initialize("calls", revision.as_str()).await;
    }
    context.discover(context.connect("calls")?).await
}
