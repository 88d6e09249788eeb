//! Waiting until servers are to be asked again about calls that they go on with as tasks.

use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

use crate::cli::follow::Follow;
use crate::cli::output::Output;
use crate::cli::text::{harmless, list, one_line};
use crate::core::run::Debt;
use crate::core::tool::TaskHandle;

/// How long a server that does not say is given.
const USUAL: Duration = Duration::from_secs(2);
/// No server is asked more often, or waited for longer at a time, whatever it says.
const SHORTEST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(60);

/// Waits as long as the servers ask. `false` when there is no task to wait for, or the person does not want to.
pub(super) async fn for_tasks(follow: &mut Follow<'_>, debts: &[Debt], out: &mut Output) -> bool {
    let tasks: Vec<(&str, &TaskHandle)> = debts.iter().filter_map(task).collect();
    let Some(pause) = tasks.iter().map(|(_, task)| pause(task)).min() else { return false };
    let told = list(tasks.iter().map(|(name, task)| told(name, task)));
    if follow.begins_to_wait() && !follow.display.is_json() && !out.notes_are_seen() {
        out.note(format!("waiting for {told}"));
    }
    let until = Instant::now() + pause;
    let done = loop {
        let seconds = follow.waited().as_secs();
        out.passing(&format!("waiting for {told}: {seconds} s (Ctrl-C leaves the run pending)"));
        let second = sleep(Duration::from_secs(1));
        tokio::select! {
            () = sleep_until(until) => break true,
            () = second => {}
            _ = follow.interrupts.next() => break false,
        }
    };
    out.passed();
    done
}

fn task(debt: &Debt) -> Option<(&str, &TaskHandle)> {
    match debt {
        Debt::Task { name, task, .. } => Some((name.as_str(), task)),
        Debt::Approval { .. } | Debt::ExternalResult { .. } | Debt::Input { .. } => None,
    }
}

fn pause(task: &TaskHandle) -> Duration {
    task.poll_ms.map_or(USUAL, Duration::from_millis).clamp(SHORTEST, LONGEST)
}

fn told(name: &str, task: &TaskHandle) -> String {
    let message = task.message.as_deref().map(|message| format!(" ({})", one_line(message, 60))).unwrap_or_default();
    format!("task {} of {name}{message}", one_line(&harmless(&task.id), 40))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_asked_as_often_as_it_says_within_reason() {
        let task = |poll_ms| TaskHandle { id: "t".into(), message: None, poll_ms, ttl_ms: None };
        let pauses = [None, Some(0), Some(5_000), Some(3_600_000)].map(|poll| pause(&task(poll)).as_millis());
        assert_eq!(pauses, [2_000, 200, 5_000, 60_000]);
    }
}
