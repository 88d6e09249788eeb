//! Fair admission of uploads. The body of an upload is in memory until its file is stored, so only a few are received at
//! once, and tenants take turns.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use toolgate_core::id::Tenant;
use toolgate_runner::{Admission, Capacity, Permit};

use super::refusal::{PERMIT_PAUSE, limited};
use crate::problem::Problem;

/// How many uploads this process receives at once, and how many of one tenant.
const CAPACITY: Capacity = Capacity { driven: 4, driven_per_tenant: 2, waiting: usize::MAX };
/// How long an upload waits in the queue, before any of its body is read.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// The queue of uploads.
pub(super) struct Uploads(Arc<Admission>);

impl Uploads {
    pub(super) fn new() -> Self {
        Self(Arc::new(Admission::new(CAPACITY)))
    }

    /// Waits for a permit to receive an upload.
    pub(super) async fn permit(&self, tenant: Tenant) -> Result<Permit, Problem> {
        let mut turn = self.0.enter(tenant);
        match timeout(LONGEST_WAIT, turn.granted()).await {
            Ok(()) => Ok(turn),
            Err(_) => Err(limited("too many concurrent uploads", PERMIT_PAUSE)),
        }
    }
}
