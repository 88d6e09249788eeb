//! The Esc key while a run executes at the terminal.

use tokio::sync::oneshot;

use super::terminal::{Terminal, Withdrawal};

/// A watch for the Esc key. Opening a prompt ends it, and so does dropping it.
pub(in crate::cli) struct EscapeKey {
    pressed: oneshot::Receiver<()>,
    _open: Withdrawal,
}

impl EscapeKey {
    /// Begins to watch; `None` without a terminal.
    pub(in crate::cli) fn watch() -> Option<Self> {
        let mut terminal = Terminal::open_for_keys()?;
        let open = terminal.withdrawal();
        let (press, pressed) = oneshot::channel();
        tokio::task::spawn_blocking(move || {
            if terminal.escape().is_ok() {
                // The run may have ended in the meantime.
                let _ = press.send(());
            }
        });
        Some(Self { pressed, _open: open })
    }

    /// Returns once, when the key was pressed.
    pub(in crate::cli) async fn pressed(&mut self) {
        if self.pressed.is_terminated() || (&mut self.pressed).await.is_err() {
            std::future::pending().await
        }
    }
}
