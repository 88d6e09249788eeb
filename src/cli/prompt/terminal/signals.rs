//! Signals that concern the terminal: a process that is suspended or killed by a key gives the terminal back first.

use rustix::process::{Signal, getpid, getsid, kill_process};
use tokio::signal::unix::{SignalKind, signal};

use super::device;

/// The exit code of a process that SIGQUIT ended.
const QUIT: i32 = 128 + 3;

/// Listens for the rest of the process's life: a signal that was listened to once has no other effect any more.
pub(super) fn listen() {
    static LISTENING: std::sync::Once = std::sync::Once::new();
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    LISTENING.call_once(|| {
        let on = |kind, act: fn()| {
            let _entered = runtime.enter();
            if let Ok(mut signals) = signal(kind) {
                runtime.spawn(async move {
                    while signals.recv().await.is_some() {
                        act();
                    }
                });
            }
        };
        on(SignalKind::from_raw(Signal::CONT.as_raw()), device::resume);
        on(SignalKind::from_raw(Signal::TSTP.as_raw()), stop);
        on(SignalKind::quit(), quit);
    });
}

/// What SIGTSTP does where it is not listened to, with the terminal as it was.
fn stop() {
    device::suspend();
    // The leader of a session has no shell that would continue it.
    if getsid(None).is_ok_and(|session| session == getpid()) {
        device::resume();
    } else {
        let _ = kill_process(getpid(), Signal::STOP);
    }
}

fn quit() {
    device::end();
    std::process::exit(QUIT);
}
