//! Ctrl-C, counted.

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Every Ctrl-C from its creation on, none lost between two looks. Stops listening when dropped.
pub(super) struct Interrupts {
    pressed: mpsc::UnboundedReceiver<()>,
    listening: JoinHandle<()>,
}

impl Interrupts {
    /// Listens instead of letting the process die.
    pub(super) fn listen() -> Self {
        let (press, pressed) = mpsc::unbounded_channel();
        let listening = tokio::spawn(async move {
            while tokio::signal::ctrl_c().await.is_ok() {
                if press.send(()).is_err() {
                    return;
                }
            }
        });
        Self { pressed, listening }
    }

    /// The next one.
    pub(super) async fn next(&mut self) {
        if self.pressed.recv().await.is_none() {
            // Signals cannot be listened to here; whoever waits for something else as well goes on waiting.
            std::future::pending().await
        }
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        self.listening.abort();
    }
}
