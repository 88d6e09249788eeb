//! What was typed before a question could be read is no answer to it: keys that were pressed twice, or while the run was
//! under way, would approve a call that nobody saw.

use std::time::Duration;

/// Nobody reads a question and answers it in less; a key that is pressed twice comes within this time.
const READING: Duration = Duration::from_millis(300);

/// What a person types on, if they type.
pub(super) struct Keyboard {
    forget: Option<Box<dyn Fn() + Send>>,
}

impl Keyboard {
    /// That of a terminal.
    #[cfg(unix)]
    pub(super) fn of(terminal: impl std::os::fd::AsFd + Send + 'static) -> Self {
        use rustix::termios::{QueueSelector, tcflush};
        // A terminal that went away will say so when it is read.
        let forget = move || {
            let _ = tcflush(&terminal, QueueSelector::IFlush);
        };
        Self { forget: Some(Box::new(forget)) }
    }

    /// There is nothing to forget it with.
    #[cfg(not(unix))]
    pub(super) fn of<T>(_: T) -> Self {
        Self { forget: None }
    }

    /// Answers that were written beforehand are meant.
    #[cfg(test)]
    pub(super) fn none() -> Self {
        Self { forget: None }
    }

    /// To be called when a question is on the screen, and before what is typed is taken for its answer.
    pub(super) fn forget_what_was_typed(&self) {
        if let Some(forget) = &self.forget {
            std::thread::sleep(READING);
            forget();
        }
    }
}
