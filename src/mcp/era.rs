//! Which of the two protocol eras a connection speaks, and the handshake of that era.
//!
//! Today this is the `initialize` handshake of the revisions up to 2025-11-25, which servers of both eras answer. The
//! probe for the stateless revision (`server/discover` within the whole start budget, then `initialize` in a fresh
//! process if it was never answered) goes into [`handshake`]; nobody else needs to know.

use rmcp::RoleClient;
use rmcp::model::{ClientCapabilities, ClientConfig, Implementation, ProtocolVersion};
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt, RunningService};
use rmcp::transport::IntoTransport;

use super::listener::Listener;

/// A connection that has shaken hands.
pub(super) type Running = RunningService<RoleClient, Listener>;

/// Agrees on a revision with the other side. Sets no time limit.
pub(super) async fn handshake<T, E, A>(listener: Listener, transport: T) -> Result<Running, ClientInitializeError>
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    listener.serve_with_lifecycle(transport, ClientLifecycleMode::Initialize).await
}

/// What toolgate says of itself. It offers no capability: a server that is told of `roots` asks for them and takes
/// them for its sandbox. The revision is named because the SDK would announce one that has no handshake.
pub(super) fn introduction() -> ClientConfig {
    ClientConfig::new(ClientCapabilities::default(), Implementation::new("toolgate", env!("CARGO_PKG_VERSION")))
        .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
}
