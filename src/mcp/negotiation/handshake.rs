//! Handshake over one transport: the order of the probes, and when the waiting ends.

use std::time::Duration;

use rmcp::RoleClient;
use rmcp::transport::Transport;
use tokio::time::timeout;

use super::discovery::{Discovered, discovered, initialized, refused_as_modern};
use super::handshake_transport::{HandshakeFailure, HandshakeTransport, Question};
use super::{Era, NegotiationResult};

/// Why the negotiation over this transport failed.
#[derive(Debug)]
pub(crate) enum NegotiationError {
    /// The transport broke.
    Broken(HandshakeFailure),
    /// The server opened a session and refused the message that completes the handshake in it.
    Unconfirmed(HandshakeFailure),
    /// The server refused, in words that complete "refused the handshake: ...".
    Refused(String),
    /// The server got a legacy request and refused it as only a modern server does.
    NotLegacy(String),
}

impl From<HandshakeFailure> for NegotiationError {
    fn from(broken: HandshakeFailure) -> Self {
        Self::Broken(broken)
    }
}

/// Negotiates in this era only.
pub(super) async fn in_era<T: Transport<RoleClient> + 'static>(
    transport: &mut HandshakeTransport<T>,
    era: Era,
) -> Result<NegotiationResult, NegotiationError> {
    match era {
        Era::Legacy => {
            transport.ask(Question::Initialize).await?;
            let answer = transport.answer().await?;
            if let Some(why) = refused_as_modern(&answer.result) {
                return Err(NegotiationError::NotLegacy(why));
            }
            conclude(transport, initialized(answer.result)).await
        }
        Era::Modern => {
            transport.ask(Question::Discover).await?;
            let first = discovered(transport.answer().await?.result);
            let last = match first {
                Discovered::AskAgain => {
                    transport.ask(Question::Discover).await?;
                    discovered(transport.answer().await?.result)
                }
                Discovered::Modern(_) | Discovered::NotModern(_) | Discovered::Insists(_) => first,
            };
            match last {
                Discovered::Modern(agreed) => Ok(*agreed),
                Discovered::AskAgain => Err(NegotiationError::Refused(CONTRADICTS_ITSELF.into())),
                Discovered::NotModern(how) | Discovered::Insists(how) => Err(NegotiationError::Refused(how)),
            }
        }
    }
}

/// Detects the era: sends `server/discover`, and `initialize` when the server refuses, or does not answer within
/// `discover_timeout`. A slow server may then receive both; its first good answer counts.
pub(super) async fn in_any_era<T: Transport<RoleClient> + 'static>(
    transport: &mut HandshakeTransport<T>,
    discover_timeout: Option<Duration>,
) -> Result<NegotiationResult, NegotiationError> {
    transport.ask(Question::Discover).await?;
    let mut probe = Probe { discover: ProbeState::Awaited, initialize: ProbeState::NotAsked, asked_again: false };
    loop {
        let answer = match discover_timeout {
            Some(limit) => timeout(limit, transport.answer()).await.ok().transpose()?,
            None => Some(transport.answer().await?),
        };
        let Some(answer) = answer else {
            probe.impatient(transport).await?;
            continue;
        };
        match answer.to {
            Question::Discover => match discovered(answer.result) {
                Discovered::Modern(agreed) => return Ok(*agreed),
                Discovered::Insists(why) => return Err(NegotiationError::Refused(why)),
                Discovered::AskAgain if !probe.asked_again => {
                    probe.asked_again = true;
                    transport.ask(Question::Discover).await?;
                }
                Discovered::AskAgain => return Err(NegotiationError::Refused(CONTRADICTS_ITSELF.into())),
                Discovered::NotModern(how) => probe.not_modern(transport, how).await?,
            },
            Question::Initialize => match initialized(answer.result) {
                Ok(agreed) => return conclude(transport, Ok(agreed)).await,
                Err(why) => probe.not_legacy(why)?,
            },
        }
    }
}

const CONTRADICTS_ITSELF: &str = "it refuses the revision 2026-07-28 and says that it speaks it";

/// The results of the two probes so far.
struct Probe {
    discover: ProbeState,
    initialize: ProbeState,
    asked_again: bool,
}

enum ProbeState {
    NotAsked,
    Awaited,
    Refused(String),
}

impl Probe {
    async fn impatient<T: Transport<RoleClient> + 'static>(
        &mut self,
        transport: &mut HandshakeTransport<T>,
    ) -> Result<(), NegotiationError> {
        match &self.initialize {
            ProbeState::NotAsked => {
                self.initialize = ProbeState::Awaited;
                Ok(transport.ask(Question::Initialize).await?)
            }
            ProbeState::Awaited => Ok(()),
            ProbeState::Refused(why) => Err(NegotiationError::Refused(why.clone())),
        }
    }

    async fn not_modern<T: Transport<RoleClient> + 'static>(
        &mut self,
        transport: &mut HandshakeTransport<T>,
        how: String,
    ) -> Result<(), NegotiationError> {
        tracing::debug!(how, "revision 2026-07-28 not supported by an MCP server");
        self.discover = ProbeState::Refused(how);
        self.impatient(transport).await
    }

    /// A server that refuses `initialize` may still answer `server/discover`, if it has not yet.
    fn not_legacy(&mut self, why: String) -> Result<(), NegotiationError> {
        match &self.discover {
            ProbeState::Refused(_) => Err(NegotiationError::Refused(why)),
            ProbeState::NotAsked | ProbeState::Awaited => {
                self.initialize = ProbeState::Refused(why);
                Ok(())
            }
        }
    }
}

async fn conclude<T: Transport<RoleClient> + 'static>(
    transport: &mut HandshakeTransport<T>,
    outcome: Result<NegotiationResult, String>,
) -> Result<NegotiationResult, NegotiationError> {
    let agreed = outcome.map_err(NegotiationError::Refused)?;
    transport.confirm().await.map_err(NegotiationError::Unconfirmed)?;
    Ok(agreed)
}
