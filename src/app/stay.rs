//! Lifetime of the process, which decides what a composition opens: limits of active runs and metrics are for servers.

/// How long the process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stay {
    ForOneCommand,
    AsServer,
}
