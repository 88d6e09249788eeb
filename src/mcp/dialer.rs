//! Dialer of one server: opens MCP connections for the supervisor.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::auth::AuthorizationRecord;
use super::connection::Connection;
use super::fault::{Fault, refusal, seconds};
use super::limits::Limits;
use super::listing::{self, Listing};
use super::negotiation;
use super::settings::{ServerSettings, Transport};
use super::signals::Signals;
use super::stdio::{self, Output};
use super::supervisor::{Dial, Link, NotOpened};

/// Everything that is needed to reach a server.
pub(super) struct Dialer {
    settings: ServerSettings,
    tasks: TaskTracker,
    /// The output of the newest child process besides the protocol, kept after its end.
    output: Mutex<Option<Output>>,
    /// The remembered era of the protocol.
    eras: negotiation::NegotiationMemory,
    /// The authorization status that its HTTP requests found.
    authorization: AuthorizationRecord,
}

impl Dialer {
    /// A dialer for these settings. Work that outlives a request runs on `tasks`.
    pub(super) fn new(settings: ServerSettings, tasks: TaskTracker) -> Self {
        Self {
            settings,
            tasks,
            output: Mutex::default(),
            eras: negotiation::NegotiationMemory::default(),
            authorization: AuthorizationRecord::default(),
        }
    }

    /// The authorization status of the server.
    pub(super) fn authorization(&self) -> &AuthorizationRecord {
        &self.authorization
    }

    /// The output of the newest child process besides the protocol.
    pub(super) fn output(&self) -> Option<Output> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Dial for Dialer {
    type Link = Connection;

    async fn open(&self, meta: Map<String, Value>) -> Result<Connection, NotOpened> {
        let budget = self.settings.start_timeout;
        let terms = negotiation::NegotiationParams::new(&self.settings, &self.eras, meta);
        let opening = Connection::open(&self.settings, terms, &self.tasks, &self.output, &self.authorization);
        match timeout(budget, opening).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(error)) => Err(NotOpened { reason: error.to_string(), may_pass: error.may_pass() }),
            Err(_) => {
                let mut output = self.output().map(|output| output.quoted()).unwrap_or_default();
                if let Transport::Stdio(stdio) = &self.settings.transport {
                    output += &stdio::kept_back(stdio);
                }
                let remedy = match &self.settings.transport {
                    Transport::Stdio(_) => {
                        "does it speak MCP on its stdin and stdout? If it is still installing, install it beforehand, or \
                         raise its `start_timeout_s`"
                    }
                    Transport::Http(_) => "is its `url` right? Raise its `start_timeout_s` if it needs longer",
                    Transport::InProcess(_) | Transport::Unavailable(_) => {
                        "raise its `start_timeout_s` if it needs longer"
                    }
                };
                let waited = seconds(budget);
                let reason = match self.eras.failure() {
                    Some(failure) => {
                        format!("did not answer the handshake within {waited} s; before that it {failure}{output}")
                    }
                    None => format!("did not answer the handshake within {waited} s; {remedy}{output}"),
                };
                Err(NotOpened { reason, may_pass: true })
            }
        }
    }
}

impl Link for Connection {
    fn signals(&self) -> &Signals {
        &self.signals
    }

    async fn lost(&self) {
        self.lost().await;
    }

    fn announces_changes(&self) -> bool {
        self.announces_changes()
    }

    async fn list(&self, meta: &Map<String, Value>, budget: Duration) -> Result<Listing, String> {
        let listed = listing::list(self, meta, Limits::new(budget, budget), self.max_tools).await;
        listed.map_err(|fault| match fault {
            Fault::Silent(_) | Fault::Late(_) | Fault::OutOfTime(_) => format!(
                "did not list its tools within {} s; {}{}",
                seconds(budget),
                listing::SLOW_LIST_REMEDY,
                self.process_output()
            ),
            Fault::Refused { code, message, .. } => {
                format!("refused to list its tools: {}", refusal(&message, code))
            }
            Fault::Rejected(answer) | Fault::NoMcp(answer) => format!("answered `tools/list` with {answer}"),
            Fault::NotSent(_) | Fault::SessionOver(_) | Fault::Disconnected(_) => fault.to_string(),
            Fault::Demands(_) | Fault::CancelledForElicitation | Fault::Deferred { .. } => fault.to_string(),
            Fault::TooLong(longest) => {
                format!(
                    "listed more than {} MiB of tools at once; let it list fewer, or page by page",
                    longest / 1024 / 1024
                )
            }
            Fault::Garbled(what) => format!("answered `tools/list` with something that cannot be read: {what}"),
            Fault::Unreadable(what) => format!("answered `tools/list` with something that is no list of tools: {what}"),
        })
    }

    async fn exit_report(&self) -> String {
        self.exit_report().await
    }

    async fn close(&self) {
        self.close().await;
    }

    async fn retire(self: Arc<Self>, closing: CancellationToken) {
        self.retire(closing).await;
    }
}
