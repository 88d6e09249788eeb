//! The Esc key while a run executes at the terminal.

use tokio::sync::oneshot;

use super::terminal::{Terminal, Withdrawal};

/// A watch for the Esc key. Opening a prompt ends it, and so does dropping it.
pub(in crate::cli) struct EscapeKey {
    pressed: Option<oneshot::Receiver<()>>,
    _open: Option<Withdrawal>,
}

impl EscapeKey {
    /// Begins to watch, if this process has a terminal in the foreground.
    pub(in crate::cli) fn watch() -> Self {
        let Some(mut terminal) = Terminal::open() else { return Self { pressed: None, _open: None } };
        let open = terminal.withdrawal();
        let (press, pressed) = oneshot::channel();
        tokio::task::spawn_blocking(move || {
            if terminal.escape().is_ok() {
                // The run may have ended in the meantime.
                let _ = press.send(());
            }
        });
        Self { pressed: Some(pressed), _open: Some(open) }
    }

    /// Returns once the key was pressed.
    pub(in crate::cli) async fn pressed(&mut self) {
        if let Some(pressed) = &mut self.pressed
            && pressed.await.is_ok()
        {
            self.pressed = None;
            return;
        }
        self.pressed = None;
        std::future::pending().await
    }
}
