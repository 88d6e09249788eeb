//! Capacity of a runner, and its load.

/// The limits of a runner. The default is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// The maximum of active runs.
    pub driven: usize,
    /// The maximum of active runs per tenant.
    pub driven_per_tenant: usize,
    /// The maximum of queued runs; beyond it new ones are rejected.
    pub waiting: usize,
}

impl Default for Capacity {
    fn default() -> Self {
        Self { driven: usize::MAX, driven_per_tenant: usize::MAX, waiting: usize::MAX }
    }
}

/// The load of a runner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Active runs.
    pub driven: usize,
    /// Queued runs.
    pub waiting: usize,
}
