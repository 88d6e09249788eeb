//! Detection of a server's protocol era.
//!
//! Up to revision 2025-11-25 a connection begins with `initialize` (*legacy*); from 2026-07-28 on every request is
//! self-contained and `server/discover` lists the capabilities (*modern*). Half of the installed servers support only
//! one of the two. The SDK can detect the era as well, but waits ten seconds whatever the server's start budget is,
//! and treats the late answer of a slow server as the end of the connection. So this module performs the handshake
//! ([`handshake_transport`]) and interprets the answers ([`discovery`]), and the SDK gets a connection with a
//! negotiated revision.

mod discovery;
mod handshake;
mod handshake_transport;
mod memory;
mod negotiate;

use rmcp::RoleClient;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitationCapability, FormElicitationCapability, Implementation,
    ProtocolVersion, ServerPeerInfo, TASKS_EXTENSION_ID, UrlElicitationCapability,
};
use rmcp::service::RunningService;

use super::client_handler::McpClientHandler;

pub(super) use handshake::NegotiationError;
pub(super) use handshake_transport::HandshakeFailure;
pub(super) use memory::NegotiationMemory;
pub(super) use negotiate::{Failed, NegotiationParams, negotiate, unconfirmed};

/// A connection with a completed handshake.
pub(super) type Running = RunningService<RoleClient, McpClientHandler>;

/// An era of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Era {
    /// The sessions of the revisions up to 2025-11-25.
    Legacy,
    /// The stateless revision 2026-07-28.
    Modern,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct NegotiationResult {
    /// The era of the revision.
    pub(super) era: Era,
    /// The revision, and the server's description of itself.
    pub(super) peer: ServerPeerInfo,
}

impl Era {
    fn from_version(version: &ProtocolVersion) -> Self {
        if version.has_initialize() { Self::Legacy } else { Self::Modern }
    }

    /// The revision that toolgate prefers.
    fn revision(self) -> ProtocolVersion {
        match self {
            Self::Legacy => ProtocolVersion::LATEST_WITH_INITIALIZE,
            Self::Modern => ProtocolVersion::V_2026_07_28,
        }
    }
}

/// The client information and capabilities of toolgate. It never offers `roots`: servers treat announced roots as
/// their sandbox. It never offers `sampling`: neither a person nor a policy decides about a server's model calls. The
/// revision is named because the SDK would announce one to `initialize` that has no handshake.
pub(super) fn introduction(era: Era, elicitation: bool) -> ClientConfig {
    let mut capabilities = ClientCapabilities::default();
    if elicitation {
        let both = ElicitationCapability::new()
            .with_form(FormElicitationCapability::default())
            .with_url(UrlElicitationCapability::default());
        capabilities.elicitation = Some(both);
    }
    if era == Era::Modern {
        capabilities.extensions = Some([(TASKS_EXTENSION_ID.to_owned(), serde_json::Map::new())].into());
    }
    ClientConfig::new(capabilities, Implementation::new("toolgate", env!("CARGO_PKG_VERSION")))
        .with_protocol_version(era.revision())
}
