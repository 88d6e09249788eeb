//! Measurement of the waits for servers: the listings of one step, each with the time that the execution waited for it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use futures::FutureExt as _;
use jiff::Timestamp;
use toolgate_core::id::ServerId;
use toolgate_core::run::{Event, ServerWait};

use super::{DriveError, Driver, Journal, Ports};

/// The shortest wait that is recorded, in milliseconds.
const NOTICEABLE_MS: u64 = 10;

/// The waits for servers since the last event of them, one for each server.
#[derive(Debug, Default)]
pub(super) struct ServerWaits(Mutex<BTreeMap<ServerId, ServerWait>>);

impl ServerWaits {
    /// Makes a request to a server, and records it if the execution waited for the answer. `failure` is the reason why the
    /// request failed, if it did.
    pub(super) async fn measure<T>(
        &self,
        ports: &Ports,
        server: &ServerId,
        request: impl Future<Output = T>,
        failure: impl FnOnce(&T) -> Option<String>,
    ) -> T {
        let since = ports.clock.now();
        let mut request = std::pin::pin!(request);
        // An answer that is known at once is no wait, however long a loaded machine took for it.
        if let Some(answer) = request.as_mut().now_or_never() {
            return answer;
        }
        let answer = request.await;
        let until = ports.clock.now();
        let connected_at = ports.servers.connected_at(server).filter(|at| since < *at && *at <= until);
        // An opened connection is always recorded, so that the speed of a server does not decide about its span.
        if connected_at.is_some() || milliseconds(since, until) >= NOTICEABLE_MS {
            let mut waits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let earlier = waits.remove(server);
            let since = earlier.as_ref().map_or(since, |earlier| earlier.since);
            let connect_ms = connected_at.map(|at| milliseconds(since, at));
            let wait = ServerWait {
                server: server.clone(),
                since,
                ms: milliseconds(since, until),
                connect_ms: connect_ms.or_else(|| earlier?.connect_ms),
                error: failure(&answer),
            };
            waits.insert(server.clone(), wait);
        }
        answer
    }
}

impl Driver<'_> {
    /// Stages the waits for servers, if the execution waited for any. They are committed with the next intent.
    pub(super) fn stage_waits(&self, journal: &mut Journal) -> Result<(), DriveError> {
        let waits = std::mem::take(&mut *self.waits.0.lock().unwrap_or_else(PoisonError::into_inner));
        if waits.is_empty() {
            return Ok(());
        }
        journal.stage(Event::Waited { waits: waits.into_values().collect() })
    }
}

fn milliseconds(since: Timestamp, until: Timestamp) -> u64 {
    u64::try_from(until.duration_since(since).as_millis()).unwrap_or_default()
}
