//! Which of the two eras of the protocol a server is spoken to in, and how that is found out.
//!
//! Up to revision 2025-11-25 a connection begins with `initialize` (*legacy*); from 2026-07-28 on every request stands
//! for itself and `server/discover` says what there is (*modern*). Half of the installed servers know one of the two
//! only. The SDK can find out as well, but waits ten seconds whatever the server's start budget is, and takes the late
//! answer of a server that is merely slow for the end of the connection. So the handshake is spoken here ([`talk`]), what
//! an answer means is decided here ([`verdict`]), and the SDK gets a connection that has agreed on a revision.

mod agree;
mod memory;
mod negotiate;
mod talk;
mod verdict;

use rmcp::RoleClient;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitationCapability, FormElicitationCapability, Implementation,
    ProtocolVersion, ServerPeerInfo, TASKS_EXTENSION_ID, UrlElicitationCapability,
};
use rmcp::service::RunningService;

use super::listener::Listener;

pub(super) use agree::{Failed, Terms, agree};
pub(super) use memory::Memory;
pub(super) use negotiate::Disagreement;
pub(super) use talk::Broken;

/// A connection that has shaken hands.
pub(super) type Running = RunningService<RoleClient, Listener>;

/// An era of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Era {
    /// The sessions of the revisions up to 2025-11-25.
    Legacy,
    /// The stateless revision 2026-07-28.
    Modern,
}

/// What both sides agreed on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Agreed {
    /// The era of the revision.
    pub(super) era: Era,
    /// The revision, and what the server says of itself.
    pub(super) peer: ServerPeerInfo,
}

impl Era {
    fn of(version: &ProtocolVersion) -> Self {
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

/// What toolgate says of itself. It never offers `roots`: a server that is told of them takes them for its sandbox. It
/// never offers `sampling`: a server's model calls would be nobody's decision. The revision is named because the SDK
/// would announce one to `initialize` that has no handshake.
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
