//! Shared state of the gateway: what every handler and every layer of its middleware may use.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio_util::task::TaskTracker;
use toolgate_core::id::{RunId, ServerId, SessionId};
use toolgate_core::run::Channel;
use toolgate_ports::{IdempotencyStore, StreamTickets, TicketedStream};
use toolgate_runner::{Activity, AgentRunner};
use toolgate_service::{Caller, FollowSettings, Service, TenantRunner};

use super::backends::{Backends, ServerState};
use super::request_metrics::RequestMetrics;
use super::settings::GatewaySettings;
use crate::access::Access;

/// An HTTP gateway over a service. Cheap to clone; clones share everything.
#[derive(Clone)]
pub struct Gateway {
    shared: Arc<Shared>,
}

/// The parts of a gateway, which its clones share.
pub(super) struct Shared {
    pub(super) service: Service,
    pub(super) access: Access,
    pub(super) settings: GatewaySettings,
    pub(super) backends: ArcSwap<Arc<dyn Backends>>,
    pub(super) request_metrics: RequestMetrics,
    pub(super) idempotency: Option<Arc<dyn IdempotencyStore>>,
    pub(super) stream_tickets: Option<Arc<dyn StreamTickets>>,
    /// Requests that are handled to their end, even if their connections close.
    pub(super) requests: TaskTracker,
}

impl Gateway {
    pub(super) fn new(shared: Shared) -> Self {
        Self { shared: Arc::new(shared) }
    }

    /// Stops the service: streams close, the background worker ends, and `/readyz` fails. The owner of the runner
    /// drains it.
    pub fn stop(&self) {
        self.shared.service.stop();
    }

    /// The service that the gateway is a surface of.
    pub fn service(&self) -> &Service {
        &self.shared.service
    }

    /// Waits for requests that are still handled although their connections are closed. Call it when no connection is
    /// served any more, and before the store closes.
    pub async fn close(&self) {
        self.shared.requests.close();
        self.shared.requests.wait().await;
    }

    /// The tasks of requests that are handled to their end.
    pub(super) fn requests(&self) -> &TaskTracker {
        &self.shared.requests
    }

    /// Replaces the runner with the same one under [another configuration](AgentRunner::reconfigured), together with its
    /// adapters.
    pub fn replace(&self, runner: AgentRunner, backends: Arc<dyn Backends>) {
        self.shared.service.replace(runner);
        self.shared.backends.store(Arc::new(backends));
    }

    /// How many event streams are open.
    pub fn open_streams(&self) -> u64 {
        self.shared.request_metrics.streams()
    }

    /// How many runs are being executed, and how many wait for admission.
    pub fn activity(&self) -> Activity {
        self.shared.service.runner().activity()
    }

    /// How many runs this process found that it cannot execute, because its configuration lacks their agent or server.
    pub fn blocked_runs(&self) -> usize {
        self.shared.service.runner().blocked_runs()
    }

    /// The MCP servers that are connected (`true`) or away (`false`). Those that start, or that no run has needed yet, are
    /// neither.
    pub fn servers_up(&self) -> Vec<(ServerId, bool)> {
        let servers = self.backends().servers().into_iter();
        let is_up = |state| match state {
            ServerState::Ready => Some(true),
            ServerState::BackingOff | ServerState::Failed => Some(false),
            ServerState::Idle | ServerState::Starting | ServerState::Listing | ServerState::Closed => None,
        };
        servers.filter_map(|server| Some((server.id, is_up(server.state)?))).collect()
    }

    /// The settings that apply to every request.
    pub(super) fn settings(&self) -> &GatewaySettings {
        &self.shared.settings
    }

    /// The address of a run.
    pub(super) fn address_of(&self, run: &RunId) -> String {
        format!("{}/v1/runs/{run}", self.settings().public_url)
    }

    /// The address of a session.
    pub(super) fn address_of_session(&self, session: &SessionId) -> String {
        format!("{}/v1/sessions/{}", self.settings().public_url, escaped(session.as_str()))
    }

    /// The address of a stream that a ticket opens.
    pub(super) fn address_of_stream(&self, stream: &TicketedStream) -> String {
        let base = &self.settings().public_url;
        match stream {
            TicketedStream::Run(run) => format!("{}/events", self.address_of(run)),
            TicketedStream::Session(session) => format!("{base}/v1/events?session_id={}", escaped(session.as_str())),
            TicketedStream::Events => format!("{base}/v1/events"),
            TicketedStream::Approvals => format!("{base}/v1/approvals/events"),
        }
    }

    pub(super) fn access(&self) -> &Access {
        &self.shared.access
    }

    pub(super) fn request_metrics(&self) -> &RequestMetrics {
        &self.shared.request_metrics
    }

    /// The store of idempotency records, if there is one.
    pub(super) fn idempotency(&self) -> Option<&Arc<dyn IdempotencyStore>> {
        self.shared.idempotency.as_ref()
    }

    /// The store of stream tickets, if there is one.
    pub(super) fn stream_tickets(&self) -> Option<&Arc<dyn StreamTickets>> {
        self.shared.stream_tickets.as_ref()
    }

    /// The source of information that only adapters have.
    pub(super) fn backends(&self) -> Arc<dyn Backends> {
        Arc::clone(&self.shared.backends.load())
    }

    /// How event streams follow their runs.
    pub(super) fn follow(&self) -> FollowSettings {
        FollowSettings { poll: self.settings().poll, stopping: self.service().stopping().clone() }
    }

    /// The runner, limited to the caller's tenant.
    pub(super) fn runner_of(&self, caller: &Caller) -> TenantRunner {
        self.service().for_caller(caller.clone(), Channel::Api)
    }
}

/// A text in an address or a header, whatever characters it has: percent-encoded except for unreserved characters.
pub(super) fn escaped(text: &str) -> String {
    let escaped = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(escaped).collect()
}
