//! Protocol version negotiation over as many transports as it takes: a process that died of the probe is started
//! again, an endpoint that does not answer gets the other probe on a second transport, and the result is remembered.

use std::time::Duration;

use futures::future::{Either, select};
use rmcp::RoleClient;
use rmcp::transport::{DynamicTransportError, Transport};
use serde_json::{Map, Value};
use tokio::time::timeout;

use super::handshake::{NegotiationError, in_any_era, in_era};
use super::handshake_transport::{HandshakeFailure, HandshakeTransport};
use super::{Era, NegotiationMemory, NegotiationResult};
use crate::http;
use crate::settings::{ProtocolVersionChoice, ServerSettings, Transport as Kind};

/// How long a child process may be silent before it gets the other probe as well: some servers ignore unknown methods.
const CHILD_PATIENCE: Duration = Duration::from_secs(3);
/// The same for an endpoint. Few endpoints never answer a POST; many are busy.
const ENDPOINT_PATIENCE: Duration = Duration::from_secs(10);

/// The terms of a negotiation.
pub(crate) struct NegotiationParams<'a> {
    choice: ProtocolVersionChoice,
    elicitation: bool,
    patience: Duration,
    transport: &'a Kind,
    memory: &'a NegotiationMemory,
    meta: Map<String, Value>,
}

/// A transport with a negotiated revision, and its context.
pub(crate) struct NegotiatedTransport<T, K> {
    pub(crate) agreed: NegotiationResult,
    pub(crate) transport: T,
    pub(crate) keeper: K,
}

/// Why the negotiation failed.
pub(crate) enum Failed<E, K> {
    /// No transport could be opened.
    NoTransport(E),
    /// The negotiation failed on a transport.
    Disagreed(NegotiationError, K),
}

type Outcome<T, K, E> = Result<NegotiatedTransport<T, K>, Failed<E, K>>;

impl<'a> NegotiationParams<'a> {
    /// The terms of a server. `meta` is sent with every probe.
    pub(crate) fn new(settings: &'a ServerSettings, memory: &'a NegotiationMemory, meta: Map<String, Value>) -> Self {
        let patience = match &settings.transport {
            Kind::Stdio(_) | Kind::InProcess(_) | Kind::Unavailable(_) => CHILD_PATIENCE,
            Kind::Http(_) => ENDPOINT_PATIENCE,
        };
        Self {
            choice: settings.protocol_version,
            elicitation: settings.elicitation,
            patience: patience.min(settings.start_timeout / 4),
            transport: &settings.transport,
            memory,
            meta,
        }
    }
}

/// Negotiates over transports that `open` creates. Sets no time limit.
pub(crate) async fn negotiate<T, K, E>(
    terms: &NegotiationParams<'_>,
    open: impl Fn() -> Result<(T, K), E>,
) -> Outcome<T, K, E>
where
    T: Transport<RoleClient> + 'static,
{
    terms.memory.begin();
    let attempt = NegotiationAttempt { terms, open };
    let outcome = match (terms.choice, terms.memory.recall()) {
        (ProtocolVersionChoice::Legacy, _) => attempt.afresh_in(Era::Legacy).await,
        (ProtocolVersionChoice::Modern, _) => attempt.afresh_in(Era::Modern).await,
        (ProtocolVersionChoice::Auto, Some(known)) => match attempt.afresh_in(known).await {
            Err(Failed::Disagreed(NegotiationError::Refused(_) | NegotiationError::NotLegacy(_), _)) => {
                terms.memory.forget();
                attempt.probe().await
            }
            other => other.inspect_err(|_| terms.memory.forget()),
        },
        (ProtocolVersionChoice::Auto, None) => attempt.probe().await,
    };
    match outcome {
        // Behind one address there may be several instances, each with sessions of its own.
        Err(Failed::Disagreed(NegotiationError::Unconfirmed(_), _)) => attempt.afresh_in(Era::Legacy).await,
        other => other,
    }
    .inspect(|established| terms.memory.keep(established.agreed.era))
}

struct NegotiationAttempt<'a, F> {
    terms: &'a NegotiationParams<'a>,
    open: F,
}

impl<F> NegotiationAttempt<'_, F> {
    /// Detects the era.
    async fn probe<T, K, E>(&self) -> Outcome<T, K, E>
    where
        F: Fn() -> Result<(T, K), E>,
        T: Transport<RoleClient> + 'static,
    {
        let tried = match self.terms.transport {
            Kind::Stdio(_) | Kind::InProcess(_) | Kind::Unavailable(_) => self.one_after_the_other().await,
            Kind::Http(_) => self.side_by_side().await,
        };
        match tried {
            Err(Failed::Disagreed(NegotiationError::Broken(broken), _)) if may_be_legacy(&broken) => {
                match self.afresh_in(Era::Legacy).await {
                    // The probe did not break the transport, so it can be repeated.
                    Err(Failed::Disagreed(NegotiationError::NotLegacy(_), _)) => self.afresh_in(Era::Modern).await,
                    other => other,
                }
            }
            other => other,
        }
    }

    /// Sends both probes to the same process.
    async fn one_after_the_other<T, K, E>(&self) -> Outcome<T, K, E>
    where
        F: Fn() -> Result<(T, K), E>,
        T: Transport<RoleClient> + 'static,
    {
        let (mut transport, keeper) = self.open_transport()?;
        let agreed = in_any_era(&mut transport, Some(self.terms.patience)).await;
        self.settled(transport, keeper, agreed).await
    }

    /// Over HTTP an unanswered probe blocks its transport, so the second probe uses its own transport.
    async fn side_by_side<T, K, E>(&self) -> Outcome<T, K, E>
    where
        F: Fn() -> Result<(T, K), E>,
        T: Transport<RoleClient> + 'static,
    {
        let (mut transport, keeper) = self.open_transport()?;
        let probe = async move {
            let agreed = in_any_era(&mut transport, None).await;
            self.settled(transport, keeper, agreed).await
        };
        let mut probe = Box::pin(probe);
        if let Ok(done) = timeout(self.terms.patience, &mut probe).await {
            return done;
        }
        let other = Box::pin(self.afresh_in(Era::Legacy));
        match select(probe, other).await {
            Either::Left((Err(_), other)) => other.await,
            Either::Right((Err(_), probe)) => probe.await,
            Either::Left((established, _)) | Either::Right((established, _)) => established,
        }
    }

    async fn afresh_in<T, K, E>(&self, era: Era) -> Outcome<T, K, E>
    where
        F: Fn() -> Result<(T, K), E>,
        T: Transport<RoleClient> + 'static,
    {
        let (mut transport, keeper) = self.open_transport()?;
        let agreed = in_era(&mut transport, era).await;
        self.settled(transport, keeper, agreed).await
    }

    fn open_transport<T, K, E>(&self) -> Result<(HandshakeTransport<T>, K), Failed<E, K>>
    where
        F: Fn() -> Result<(T, K), E>,
        T: Transport<RoleClient> + 'static,
    {
        let (transport, keeper) = (self.open)().map_err(Failed::NoTransport)?;
        Ok((HandshakeTransport::over(transport, self.terms.elicitation, self.terms.meta.clone()), keeper))
    }

    async fn settled<T, K, E>(
        &self,
        mut transport: HandshakeTransport<T>,
        keeper: K,
        agreed: Result<NegotiationResult, NegotiationError>,
    ) -> Outcome<T, K, E>
    where
        T: Transport<RoleClient> + 'static,
    {
        match agreed {
            Ok(agreed) => Ok(NegotiatedTransport { agreed, transport: transport.into_transport(), keeper }),
            Err(disagreement) => {
                let is_broken = matches!(disagreement, NegotiationError::Broken(_) | NegotiationError::Unconfirmed(_));
                if let (true, Kind::Stdio(_)) = (is_broken, self.terms.transport) {
                    transport.drain().await;
                }
                self.terms.memory.failed(describe(&disagreement));
                Err(Failed::Disagreed(disagreement, keeper))
            }
        }
    }
}

fn describe(disagreement: &NegotiationError) -> String {
    match disagreement {
        NegotiationError::Refused(words) | NegotiationError::NotLegacy(words) => {
            format!("refused the handshake: {words}")
        }
        NegotiationError::Unconfirmed(HandshakeFailure::Unsendable(error)) => unconfirmed(error),
        NegotiationError::Broken(HandshakeFailure::Ended) | NegotiationError::Unconfirmed(HandshakeFailure::Ended) => {
            "ended in the middle of the handshake".into()
        }
        NegotiationError::Broken(HandshakeFailure::Unsendable(error)) => {
            format!("could not be reached: {}", http::explain(error))
        }
    }
}

/// The refusal of `notifications/initialized`, as the end of a sentence "the MCP server `x` ...".
pub(crate) fn unconfirmed(error: &DynamicTransportError) -> String {
    format!(
        "opened a session and did not accept `notifications/initialized` in it: {}; if several instances stand behind its \
         `url`, all requests of a session have to reach the same one",
        http::without_remedy(error)
    )
}

/// Whether the probe may have broken the transport.
fn may_be_legacy(broken: &HandshakeFailure) -> bool {
    match broken {
        HandshakeFailure::Ended => true,
        HandshakeFailure::Unsendable(error) => http::was_answered(error),
    }
}
