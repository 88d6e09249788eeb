//! Terminal signals: a process that a key suspends or kills restores the terminal first.

use rustix::process::{Signal, getpid, getsid, kill_process};
use tokio::signal::unix::{SignalKind, signal};

use super::device;

/// The exit code of a process that SIGQUIT terminated.
const QUIT: i32 = 128 + 3;

/// Installs the handlers for the lifetime of the process: a handled signal never regains its default effect.
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

/// Restores the terminal and stops the process, as the default action of SIGTSTP does.
fn stop() {
    device::suspend();
    // A session leader has no shell that would continue it.
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
