//! Fallback terminal for platforms without supported terminal modes: reads lines from standard input.

use std::io::{self, IsTerminal, Write};

use super::console::{Accepts, Console, Entry};
use crate::cli::paint::Paint;
use crate::cli::terminal_escape;

/// Standard input and standard error.
pub(in crate::cli) struct Terminal;

/// A guard without effect: a read in progress cannot be withdrawn here.
pub(in crate::cli) struct Withdrawal;

/// A guard without effect: there is no terminal mode to restore.
pub(in crate::cli) struct TerminalGuard;

impl Terminal {
    pub(super) fn open() -> Option<Self> {
        io::stdin().is_terminal().then_some(Self)
    }

    pub(super) fn open_for_keys() -> Option<Self> {
        Self::open()
    }

    /// Lines are read here, and no keys.
    pub(super) fn escape(&mut self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn withdrawal(&self) -> Withdrawal {
        Withdrawal
    }
}

impl Console for Terminal {
    fn paint(&self) -> Paint {
        Paint::Plain
    }

    fn say(&mut self, text: &str) -> io::Result<()> {
        writeln!(io::stderr(), "{}", terminal_escape::escape(text, Paint::Plain))
    }

    fn discard_typed_ahead(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn editor(&mut self, _: &str, _: Option<&str>) -> io::Result<Option<String>> {
        Ok(None)
    }

    fn line(&mut self, question: &str, accepts: Accepts<'_>) -> io::Result<Option<Entry>> {
        if let Accepts::Choice(menu) = accepts {
            self.say(menu.text(menu.usual(), usize::MAX, usize::MAX).trim_end())?;
        }
        write!(io::stderr(), "{}", terminal_escape::escape(question, Paint::Plain))?;
        io::stderr().flush()?;
        let mut line = String::new();
        let read = io::stdin().read_line(&mut line)?;
        let text = line.trim_end_matches(['\n', '\r']).to_owned();
        Ok((read > 0).then(|| Entry { text, ..Entry::default() }))
    }
}

pub(super) fn claim() {}

/// Never shows anything: a question here cannot be drawn again.
pub(in crate::cli) fn announce(_: &str) -> bool {
    false
}

/// No keys are read while a run executes.
pub(in crate::cli) mod typed_ahead {
    pub(in crate::cli) fn text() -> String {
        String::new()
    }

    pub(in crate::cli) fn first_message() -> Option<String> {
        None
    }

    pub(in crate::cli) fn take_entry(_: &str) -> bool {
        false
    }

    pub(in crate::cli) fn shown() -> (Vec<String>, String) {
        Default::default()
    }

    pub(in crate::cli) fn put_back(_: String) {}
}
