//! What somebody wants who interrupts the program: Ctrl-C, counted, or a signal that asks it to go.

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// What is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interrupt {
    /// Ctrl-C: stop the run.
    Stop,
    /// SIGTERM, or the terminal went away: leave the run to whoever takes it up.
    Leave,
}

/// Every interrupt from its creation on, none lost between two looks. Stops listening when dropped.
pub(super) struct Interrupts {
    pressed: mpsc::UnboundedReceiver<Interrupt>,
    listening: [JoinHandle<()>; 2],
}

impl Interrupts {
    /// Listens instead of letting the process die.
    pub(super) fn listen() -> Self {
        let (press, pressed) = mpsc::unbounded_channel();
        let leave = press.clone();
        let stopping = tokio::spawn(async move {
            while tokio::signal::ctrl_c().await.is_ok() {
                if press.send(Interrupt::Stop).is_err() {
                    return;
                }
            }
        });
        let leaving = tokio::spawn(async move {
            asked_to_go().await;
            // Nobody may be looking any more.
            let _ = leave.send(Interrupt::Leave);
        });
        Self { pressed, listening: [stopping, leaving] }
    }

    /// The next one.
    pub(super) async fn next(&mut self) -> Interrupt {
        match self.pressed.recv().await {
            Some(interrupt) => interrupt,
            // Signals cannot be listened to here; whoever waits for something else as well goes on waiting.
            None => std::future::pending().await,
        }
    }
}

#[cfg(unix)]
async fn asked_to_go() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut terminate), Ok(mut hang_up)) = (signal(SignalKind::terminate()), signal(SignalKind::hangup())) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = hang_up.recv() => {}
    }
}

#[cfg(not(unix))]
async fn asked_to_go() {
    std::future::pending().await
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        self.listening.iter().for_each(JoinHandle::abort);
    }
}
