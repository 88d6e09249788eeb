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
    listening: Vec<JoinHandle<()>>,
}

impl Interrupts {
    /// Listens instead of letting the process die.
    pub(super) fn listen() -> Self {
        let (press, pressed) = mpsc::unbounded_channel();
        Self { pressed, listening: listeners(&press) }
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

/// Who tells of each signal. Signals are listened to before this returns, and not when the tasks get their first turn:
/// whoever reads that Ctrl-C does something may press it at once.
#[cfg(unix)]
fn listeners(press: &mpsc::UnboundedSender<Interrupt>) -> Vec<JoinHandle<()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let listener = |(kind, interrupt)| {
        let (mut signals, press) = (signal(kind).ok()?, press.clone());
        let tell = async move { while signals.recv().await.is_some() && press.send(interrupt).is_ok() {} };
        Some(tokio::spawn(tell))
    };
    let kinds = [
        (SignalKind::interrupt(), Interrupt::Stop),
        (SignalKind::terminate(), Interrupt::Leave),
        (SignalKind::hangup(), Interrupt::Leave),
    ];
    kinds.into_iter().filter_map(listener).collect()
}

#[cfg(not(unix))]
fn listeners(press: &mpsc::UnboundedSender<Interrupt>) -> Vec<JoinHandle<()>> {
    let press = press.clone();
    let tell = async move { while tokio::signal::ctrl_c().await.is_ok() && press.send(Interrupt::Stop).is_ok() {} };
    vec![tokio::spawn(tell)]
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        self.listening.iter().for_each(JoinHandle::abort);
    }
}
