//! One execution at the terminal: its events until the run is idle, with prompts for elicitations of open calls.

use std::pin::pin;
use std::time::Duration;

use tokio::time::MissedTickBehavior;

use crate::cli::answers::who;
use crate::cli::error::CliError;
use crate::cli::follow::Follow;
use crate::cli::interrupt::{Interrupt, Interrupts, OnInterrupt};
use crate::cli::output::Output;
use crate::cli::prompt::{self, EscapeKey};
use crate::cli::terminal_user;
use crate::core::id::RunId;
use crate::core::lifecycle::LifecycleKind;
use crate::core::run::{Channel, Status};
use crate::runner::{Execution, Report};
use crate::service::{FollowSettings, StreamItem};

/// The poll interval for a run that another process executes.
const POLL: Duration = Duration::from_millis(500);
/// How often the lines of the activities in progress are updated.
const REFRESH: Duration = Duration::from_millis(100);
/// When a wait for servers is told where no activities are shown.
const LONG_WAIT: Duration = Duration::from_secs(5);

/// The reason of a run that was cancelled with the denial of a call.
pub(super) const STOPPED: &str = "stopped at the terminal";

/// Shows events until the run is idle. The first Ctrl-C cancels the run, and the next one stops following it. If the
/// first one pauses the run, the second cancels it. At a terminal, Esc does the same as the first Ctrl-C; while the run
/// waits for servers, Esc lets it go on without those that are not ready.
pub(in crate::cli) async fn until_idle(
    follow: &mut Follow<'_>,
    execution: Execution,
    out: &mut Output,
) -> Result<Report, CliError> {
    let (app, run) = (follow.app, execution.run.clone());
    let (updates, rest) = execution.split();
    let mut rest = pin!(rest);
    let settings = FollowSettings::polling_every(POLL);
    let mut events = app.operator().follow(&run, follow.seen, Some(updates), settings);
    let mut is_paused = false;
    let (mut waits_for_approval, mut has_asked) = (false, false);
    // The runner holds calls open for as long as the person at this terminal needs.
    let is_attended = follow.display.is_live() && prompt::is_person_at_terminal();
    let attendance = if is_attended { app.runner.attend(&run) } else { None };
    let mut escape = is_attended.then(EscapeKey::watch).flatten();
    let mut refresh = tokio::time::interval(REFRESH);
    refresh.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let (mut long_wait, mut is_long) = (pin!(tokio::time::sleep(LONG_WAIT)), false);
    let rested = loop {
        tokio::select! {
            // Every event that is ready is shown before the report.
            biased;
            interrupt = next_interrupt(&mut follow.interrupts, escape.as_mut()) => match interrupt {
                Pressed::Signal(Interrupt::Leave) => return Err(CliError::Terminated(run)),
                _ if follow.is_cancelled => return Err(CliError::Interrupted),
                Pressed::Escape if follow.waits_for_servers() => {
                    app.skip_starting_servers();
                    escape = EscapeKey::watch();
                }
                _ if follow.on_interrupt == OnInterrupt::Pause && !is_paused => {
                    is_paused = true;
                    pause(follow, &run, out).await?;
                }
                Pressed::Escape | Pressed::Signal(Interrupt::Stop) => {
                    cancel(follow, &run, "interrupted at the terminal", out).await?;
                }
            },
            item = events.next() => match item? {
                Some(StreamItem::Event(event)) => {
                    follow.show(&event, out);
                    let asks = matches!(event.event.fact, LifecycleKind::InputRequested { .. });
                    if attendance.is_some() && asks && !follow.is_cancelled {
                        terminal_user::ask(follow, &run, out).await?;
                        // The prompt took the terminal.
                        escape = EscapeKey::watch();
                    }
                    waits_for_approval |= matches!(event.event.fact, LifecycleKind::ApprovalRequested { .. });
                    // The person decides while the other calls of the turn are in progress.
                    if is_attended && waits_for_approval && !follow.is_cancelled && follow.is_calling() {
                        (waits_for_approval, has_asked) = (false, true);
                        if terminal_user::decide_early(follow, &run, out).await?.stops {
                            cancel(follow, &run, STOPPED, out).await?;
                        }
                        escape = EscapeKey::watch();
                    }
                }
                Some(StreamItem::Draining) | None => break None,
            },
            rested = &mut rest => break Some(rested),
            _ = refresh.tick(), if follow.shows_activities(out) => {
                follow.send_entered(&run, out).await;
                follow.show_activities(out);
            }
            () = &mut long_wait, if !is_long => {
                is_long = true;
                follow.note_long_wait(out);
            }
        }
    };
    out.passed();
    let rested = match rested {
        Some(rested) => rested,
        None => tokio::select! {
            rested = rest => rested,
            interrupt = follow.interrupts.next() => return Err(given_up(interrupt, run)),
        },
    };
    match &rested {
        Ok(report) => {
            while let Some(event) = events.next_up_to(report.version).await? {
                follow.show(&event, out);
            }
        }
        // What this process executed until the failure.
        Err(_) => drop(follow.catch_up(&run, u64::MAX, out).await),
    }
    let mut report = rested?;
    if (has_asked || follow.is_cancelled) && report.status == Status::Pending {
        // The person decided or cancelled after the last call had ended.
        report = app.runner.report(&run).await?;
        if report.status == Status::Running {
            // Nothing continued with the decisions.
            return Box::pin(until_idle(follow, app.runner.resume_or_follow(&run).await?, out)).await;
        }
        follow.catch_up(&run, u64::MAX, out).await?;
    }
    if report.status == Status::Pending {
        follow.pending(&report, out);
    }
    Ok(report)
}

/// What the person pressed, or a signal that does the same.
enum Pressed {
    Escape,
    Signal(Interrupt),
}

/// The next interrupt, or Esc.
async fn next_interrupt(interrupts: &mut Interrupts, escape: Option<&mut EscapeKey>) -> Pressed {
    let Some(escape) = escape else { return Pressed::Signal(interrupts.next().await) };
    tokio::select! {
        interrupt = interrupts.next() => Pressed::Signal(interrupt),
        () = escape.pressed() => Pressed::Escape,
    }
}

async fn cancel(follow: &mut Follow<'_>, run: &RunId, reason: &str, out: &mut Output) -> Result<(), CliError> {
    out.note("cancelling the run; Ctrl-C stops without waiting for it");
    follow.is_cancelled = true;
    let reason = Some(reason.to_owned());
    tokio::select! {
        // The run may have ended on its own in the meantime, which is equally good.
        _ = follow.app.runner.cancel(run, reason, None) => Ok(()),
        interrupt = follow.interrupts.next() => Err(given_up(interrupt, run.clone())),
    }
}

async fn pause(follow: &mut Follow<'_>, run: &RunId, out: &mut Output) -> Result<(), CliError> {
    out.note("pausing the run after its step in progress; press Ctrl-C again to cancel it");
    let reason = Some("interrupted at the terminal".to_owned());
    tokio::select! {
        // The run may have ended on its own in the meantime, which is equally good.
        _ = follow.app.runner.pause(run, reason, who(), Channel::Terminal, None) => Ok(()),
        interrupt = follow.interrupts.next() => Err(given_up(interrupt, run.clone())),
    }
}

/// The error after a second interrupt of either kind. The program stops at once and does not wait for the run.
fn given_up(interrupt: Interrupt, run: RunId) -> CliError {
    match interrupt {
        Interrupt::Stop => CliError::Interrupted,
        Interrupt::Leave => CliError::Terminated(run),
    }
}
