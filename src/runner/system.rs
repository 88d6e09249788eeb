//! System clock and UUIDs.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use toolgate_core::id::{RunId, SessionId};
use toolgate_core::trace::TraceId;
use toolgate_ports::{Clock, Ids};
use uuid::Uuid;

/// The clock of the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

/// UUIDv7: unique, and later ids sort after earlier ones.
#[derive(Clone, Copy, Debug, Default)]
pub struct UuidIds;

impl Ids for UuidIds {
    fn run_id(&self) -> RunId {
        RunId::from(format!("run_{}", Uuid::now_v7().simple()))
    }

    fn session_id(&self) -> SessionId {
        SessionId::from(format!("session_{}", Uuid::now_v7().simple()))
    }

    fn trace_id(&self) -> TraceId {
        // A hash, because samplers treat the bits of a trace id as random, and those of a UUID are not all random.
        let mut id = [0; 16];
        let digest = Sha256::digest(Uuid::now_v7().as_bytes());
        id.iter_mut().zip(digest.iter()).for_each(|(to, from)| *to = *from);
        TraceId(id)
    }
}
