//! Handshake over one transport: the order of the probes, and when the waiting ends.

use std::time::Duration;

use rmcp::RoleClient;
use rmcp::transport::Transport;
use tokio::time::timeout;

use super::talk::{Broken, Question, Talk};
use super::verdict::{Discovered, discovered, initialized, refused_as_modern};
use super::{Agreed, Era};

/// Why the negotiation over this transport failed.
#[derive(Debug)]
pub(in crate::mcp) enum Disagreement {
    /// The transport broke.
    Broken(Broken),
    /// The server refused, in words that complete "refused the handshake: ...".
    Refused(String),
    /// The server got a legacy request and refused it as only a modern server does.
    NotLegacy(String),
}

impl From<Broken> for Disagreement {
    fn from(broken: Broken) -> Self {
        Self::Broken(broken)
    }
}

/// Negotiates in this era only.
pub(super) async fn in_era<T: Transport<RoleClient> + 'static>(
    talk: &mut Talk<T>,
    era: Era,
) -> Result<Agreed, Disagreement> {
    match era {
        Era::Legacy => {
            talk.ask(Question::Initialize).await?;
            let answer = talk.answer().await?;
            if let Some(why) = refused_as_modern(&answer.said) {
                return Err(Disagreement::NotLegacy(why));
            }
            conclude(talk, initialized(answer.said)).await
        }
        Era::Modern => {
            talk.ask(Question::Discover).await?;
            let first = discovered(talk.answer().await?.said);
            let last = match first {
                Discovered::AskAgain => {
                    talk.ask(Question::Discover).await?;
                    discovered(talk.answer().await?.said)
                }
                Discovered::Modern(_) | Discovered::NotModern(_) | Discovered::Insists(_) => first,
            };
            match last {
                Discovered::Modern(agreed) => Ok(*agreed),
                Discovered::AskAgain => Err(Disagreement::Refused(CONTRADICTS_ITSELF.into())),
                Discovered::NotModern(how) | Discovered::Insists(how) => Err(Disagreement::Refused(how)),
            }
        }
    }
}

/// Detects the era: sends `server/discover`, and `initialize` when the server refuses, or does not answer within
/// `patience`. A slow server may then receive both; its first good answer counts.
pub(super) async fn in_any_era<T: Transport<RoleClient> + 'static>(
    talk: &mut Talk<T>,
    patience: Option<Duration>,
) -> Result<Agreed, Disagreement> {
    talk.ask(Question::Discover).await?;
    let mut probe = Probe { discover: Answered::Awaited, initialize: Answered::NotAsked, asked_again: false };
    loop {
        let answer = match patience {
            Some(patience) => timeout(patience, talk.answer()).await.ok().transpose()?,
            None => Some(talk.answer().await?),
        };
        let Some(answer) = answer else {
            probe.impatient(talk).await?;
            continue;
        };
        match answer.to {
            Question::Discover => match discovered(answer.said) {
                Discovered::Modern(agreed) => return Ok(*agreed),
                Discovered::Insists(why) => return Err(Disagreement::Refused(why)),
                Discovered::AskAgain if !probe.asked_again => {
                    probe.asked_again = true;
                    talk.ask(Question::Discover).await?;
                }
                Discovered::AskAgain => return Err(Disagreement::Refused(CONTRADICTS_ITSELF.into())),
                Discovered::NotModern(how) => probe.not_modern(talk, how).await?,
            },
            Question::Initialize => match initialized(answer.said) {
                Ok(agreed) => return conclude(talk, Ok(agreed)).await,
                Err(why) => probe.not_legacy(why)?,
            },
        }
    }
}

const CONTRADICTS_ITSELF: &str = "it refuses the revision 2026-07-28 and says that it speaks it";

/// The results of the two probes so far.
struct Probe {
    discover: Answered,
    initialize: Answered,
    asked_again: bool,
}

enum Answered {
    NotAsked,
    Awaited,
    Refused(String),
}

impl Probe {
    async fn impatient<T: Transport<RoleClient> + 'static>(&mut self, talk: &mut Talk<T>) -> Result<(), Disagreement> {
        match &self.initialize {
            Answered::NotAsked => {
                self.initialize = Answered::Awaited;
                Ok(talk.ask(Question::Initialize).await?)
            }
            Answered::Awaited => Ok(()),
            Answered::Refused(why) => Err(Disagreement::Refused(why.clone())),
        }
    }

    async fn not_modern<T: Transport<RoleClient> + 'static>(
        &mut self,
        talk: &mut Talk<T>,
        how: String,
    ) -> Result<(), Disagreement> {
        tracing::debug!(how, "revision 2026-07-28 not supported by an MCP server");
        self.discover = Answered::Refused(how);
        self.impatient(talk).await
    }

    /// A server that refuses `initialize` may still answer `server/discover`, if it has not yet.
    fn not_legacy(&mut self, why: String) -> Result<(), Disagreement> {
        match &self.discover {
            Answered::Refused(_) => Err(Disagreement::Refused(why)),
            Answered::NotAsked | Answered::Awaited => {
                self.initialize = Answered::Refused(why);
                Ok(())
            }
        }
    }
}

async fn conclude<T: Transport<RoleClient> + 'static>(
    talk: &mut Talk<T>,
    said: Result<Agreed, String>,
) -> Result<Agreed, Disagreement> {
    let agreed = said.map_err(Disagreement::Refused)?;
    talk.confirm().await?;
    Ok(agreed)
}
