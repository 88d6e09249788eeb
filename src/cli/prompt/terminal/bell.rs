//! Bell of a prompt: tells a person who looks elsewhere that a decision is awaited.

use std::time::Duration;

use crate::cli::prompt::console::Accepts;

/// The environment variable with the seconds before the bell; `0` turns it off.
const VARIABLE: &str = "TOOLGATE_BELL_S";
const USUAL: Duration = Duration::from_secs(20);

/// How long a question waits before the bell rings; `None` if it does not ring.
pub(super) fn after(accepts: Accepts<'_>) -> Option<Duration> {
    let seconds = std::env::var(VARIABLE).ok().and_then(|seconds| seconds.parse().ok());
    let after = seconds.map_or(USUAL, Duration::from_secs);
    (accepts == Accepts::Key && !after.is_zero()).then_some(after)
}

/// The bell, and before it the notification of the desktop (OSC 9), which terminals without it ignore.
pub(super) fn signal(is_smart: bool) -> &'static str {
    if is_smart { "\x1b]9;toolgate waits for your decision\x1b\\\x07" } else { "\x07" }
}
