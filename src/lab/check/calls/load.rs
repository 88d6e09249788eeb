//! Calls of one tool at the same time: 1, 8 and 32.

use std::time::{Duration, Instant};

use futures::future::join_all;
use serde::Serialize;
use serde_json::Value;

use super::caller::Caller;
use super::results;
use crate::check::context::Session;
use crate::check::rules::calls as rules;

const LEVELS: [usize; 3] = [1, 8, 32];
/// Calls of each level, so that its percentiles are more than one call.
const CALLS: usize = 32;
/// The time after which a level begins no further round.
const LONGEST: Duration = Duration::from_secs(4);

/// Times of a level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadRow {
    pub tool: String,
    /// Calls at the same time.
    pub concurrency: usize,
    pub calls: usize,
    pub errors: usize,
    pub p50_ms: f64,
    pub p99_ms: f64,
}

/// Calls a tool that succeeded before.
pub(super) async fn run(caller: &mut Caller<'_>, name: &str, arguments: &Value) -> Vec<LoadRow> {
    let mut rows = Vec::new();
    for concurrency in LEVELS {
        let Some(session) = caller.session().await else { return rows };
        let (mut times, mut errors, began) = (Vec::new(), 0, Instant::now());
        let mut first_error = None;
        while times.len() + errors < CALLS && began.elapsed() < LONGEST {
            let params: Vec<Value> = (0..concurrency).map(|_| caller.params(name, Some(arguments))).collect();
            let (connection, limit) = (&session.connection, caller.context.limits.call);
            let calls = params.into_iter().map(|params| connection.request_within("tools/call", params, limit));
            for answered in join_all(calls).await {
                match answered {
                    Ok(answer) if results::is_success(&answer) => times.push(answer.took),
                    Ok(answer) => {
                        errors += 1;
                        first_error.get_or_insert(results::error_text(&answer));
                    }
                    Err(why) => {
                        errors += 1;
                        first_error.get_or_insert(why.in_words());
                    }
                }
            }
        }
        // A tool that fails alone as well, for example because of a rate limit, has no problem with concurrency.
        if errors > 0 && concurrency > 1 && succeeds_alone(caller, &session, name, arguments).await {
            let text = format!(
                "{errors} of {} calls failed with {concurrency} at the same time: {}",
                times.len() + errors,
                first_error.unwrap_or_default()
            );
            caller.context.findings.add(session.finding(&rules::CONCURRENCY_ERRORS, text).tool(name));
        }
        let fails_alone = errors > 0 && concurrency == 1;
        rows.push(row(name, concurrency, times, errors));
        if fails_alone {
            return rows;
        }
        if errors > 0 {
            caller.renew();
        }
    }
    rows
}

/// Whether the same call succeeds when no other runs; in a new session if this one ended.
async fn succeeds_alone(caller: &mut Caller<'_>, session: &Session, name: &str, arguments: &Value) -> bool {
    if session.has_ended() {
        caller.renew();
    }
    let answered = caller.call(name, Some(arguments)).await;
    matches!(answered, Some(Ok(answer)) if results::is_success(&answer))
}

fn row(tool: &str, concurrency: usize, mut times: Vec<Duration>, errors: usize) -> LoadRow {
    times.sort_unstable();
    let at = |share: usize| {
        let index = (times.len() * share).div_ceil(100).saturating_sub(1);
        times.get(index).map_or(0.0, |time| (time.as_secs_f64() * 10_000.0).round() / 10.0)
    };
    LoadRow { tool: tool.to_owned(), concurrency, calls: times.len() + errors, errors, p50_ms: at(50), p99_ms: at(99) }
}
