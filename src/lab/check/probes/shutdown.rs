//! Shutdown of a process: at the end of its input, and by SIGTERM.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::check::context::{Context, Session};
use crate::check::rules::wire;
use crate::check::wire::answer::seconds;

/// Idle memory above this is worth a note.
const MUCH_MEMORY: u64 = 400 << 20;

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Shutdown {
    /// Milliseconds until the exit after the end of its input; `None` if it kept running.
    pub after_end_of_input_ms: Option<u64>,
    /// Milliseconds until the exit after SIGTERM, where that was necessary.
    pub after_sigterm_ms: Option<u64>,
}

/// Ends the process of this session; `None` over HTTP.
pub(in crate::check) async fn end(context: &Context, session: &Session) -> Option<Shutdown> {
    let process = session.connection.process()?;
    if process.exit_within(Duration::ZERO).await.is_some() {
        return None;
    }
    let limit = context.limits.exit;
    let began = Instant::now();
    process.close_stdin();
    if process.exit_within(limit).await.is_some() {
        return Some(Shutdown { after_end_of_input_ms: Some(millis(began.elapsed())), after_sigterm_ms: None });
    }
    let began = Instant::now();
    process.terminate();
    let ended = process.exit_within(limit).await.is_some();
    let (rule, text) = if ended {
        (
            &wire::IGNORES_END_OF_INPUT,
            format!("the process still ran {} after its stdin ended, and exited on SIGTERM", seconds(limit)),
        )
    } else {
        (
            &wire::IGNORES_SIGTERM,
            format!(
                "the process still ran {} after its stdin ended and {} after SIGTERM",
                seconds(limit * 2),
                seconds(limit)
            ),
        )
    };
    context.findings.add(session.finding(rule, text));
    process.kill();
    Some(Shutdown { after_end_of_input_ms: None, after_sigterm_ms: ended.then(|| millis(began.elapsed())) })
}

/// Resident memory of the process in bytes, where it is known.
pub(in crate::check) fn memory(context: &Context, session: &Session) -> Option<u64> {
    let bytes = session.connection.process()?.memory()?;
    if bytes > MUCH_MEMORY {
        context.findings.add(session.finding(&wire::MEMORY_HIGH, format!("the idle server takes {} MiB", bytes >> 20)));
    }
    Some(bytes)
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
