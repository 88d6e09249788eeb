//! Pause of a worker between two passes.

use std::time::Duration;

/// The pause between `shortest` and `longest`.
pub(super) fn pause(wanted: Option<Duration>, shortest: Duration, longest: Duration) -> Duration {
    wanted.map_or(longest, |wanted| wanted.clamp(shortest, longest))
}
