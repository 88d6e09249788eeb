//! Standard output and standard error. All output of the command line passes through here.
//!
//! Text passes the terminal escape guard. Bytes bypass it, and so does output that a program requested verbatim.
//!
//! A reader that closed the pipe (`toolgate … | head`) causes neither an error nor a panic. Later output is dropped,
//! and an active run continues, because losing a viewer never harms a run.

use std::io::{self, IsTerminal, Write};

use serde::Serialize;

use super::paint::Paint;
use super::terminal_escape;
use crate::telemetry::logging::Stderr;

/// The width in columns when the terminal reports none.
const USUAL_WIDTH: usize = 100;

/// Clears the line and moves the cursor to its start.
const CLEAR: &[u8] = b"\r\x1b[K";

/// The two streams with their properties.
pub(super) struct Output {
    stdout: Stream,
    stderr: Stream,
    width: usize,
}

struct Stream {
    to: Box<dyn Write + Send>,
    paint: Paint,
    is_terminal: bool,
    is_gone: bool,
    /// Whether the last line is temporary.
    is_passing: bool,
}

impl Output {
    /// The streams of this process.
    pub(super) fn of_process() -> Self {
        let env = |name: &str| std::env::var(name).ok();
        let (out, err) = (io::stdout(), io::stderr());
        let (out_terminal, err_terminal) = (out.is_terminal(), err.is_terminal());
        let columns = env("COLUMNS").and_then(|columns| columns.parse().ok());
        // A terminal without a size reports 0.
        let terminal_width = || comfy_table::Table::new().width().filter(|width| *width > 0).map(usize::from);
        Self {
            stdout: Stream::new(Box::new(out), out_terminal, Paint::choose(out_terminal, env)),
            stderr: Stream::new(Box::new(Stderr), err_terminal, Paint::choose(err_terminal, env)),
            width: columns.or_else(terminal_width).unwrap_or(USUAL_WIDTH).max(40),
        }
    }

    /// Writes a line of the result to standard output.
    pub(super) fn line(&mut self, text: impl AsRef<str>) {
        self.passed();
        self.stdout.write(text.as_ref(), "\n");
    }

    /// Writes text without a line break to standard output.
    pub(super) fn fragment(&mut self, text: &str) {
        self.stdout.write(text, "");
    }

    /// Writes an answer or a result to standard output. A file or a program gets it verbatim; for a terminal, the guard
    /// escapes control characters.
    pub(super) fn verbatim(&mut self, text: &str) {
        self.passed();
        match self.stdout.is_terminal {
            true => self.stdout.write(text, "\n"),
            false => self.stdout.write_bytes(format!("{text}\n").as_bytes()),
        }
    }

    /// Writes bytes to standard output verbatim.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.stdout.write_bytes(bytes);
    }

    /// Writes a message to standard error.
    pub(super) fn note(&mut self, text: impl AsRef<str>) {
        self.passed();
        self.stderr.write(text.as_ref(), "\n");
    }

    /// Writes a temporary line to standard error, which the next line overwrites. Only a terminal shows it.
    pub(super) fn passing(&mut self, text: &str) {
        if self.stderr.is_terminal {
            self.stderr.write_bytes(CLEAR);
            self.stderr.write(text, "");
            self.stderr.is_passing = true;
        }
    }

    /// Removes the temporary line.
    pub(super) fn passed(&mut self) {
        if std::mem::take(&mut self.stderr.is_passing) {
            self.stderr.write_bytes(CLEAR);
        }
    }

    /// Whether standard error is a terminal.
    pub(super) fn notes_are_seen(&self) -> bool {
        self.stderr.is_terminal
    }

    /// A JSON value as one line on standard output.
    pub(super) fn json(&mut self, value: &impl Serialize) {
        // All values that the program serializes have string keys. A failure would be a bug, so it is reported.
        match terminal_escape::json(value) {
            Ok(text) => self.line(text),
            Err(error) => self.note(format!("error: cannot be written as JSON: {error}")),
        }
    }

    /// A JSON value on several lines on standard output.
    pub(super) fn pretty(&mut self, value: &impl Serialize) {
        match terminal_escape::pretty_json(value) {
            Ok(text) => self.line(text),
            Err(error) => self.note(format!("error: cannot be written as JSON: {error}")),
        }
    }

    /// Whether standard output is a terminal.
    pub(super) fn is_terminal(&self) -> bool {
        self.stdout.is_terminal
    }

    /// The paint of standard output.
    pub(super) fn paint(&self) -> Paint {
        self.stdout.paint
    }

    /// The paint of standard error.
    pub(super) fn note_paint(&self) -> Paint {
        self.stderr.paint
    }

    /// The width of the terminal in columns.
    pub(super) fn width(&self) -> usize {
        self.width
    }
}

impl Stream {
    fn new(to: Box<dyn Write + Send>, is_terminal: bool, paint: Paint) -> Self {
        Self { to, paint, is_terminal, is_gone: false, is_passing: false }
    }

    fn write(&mut self, text: &str, end: &str) {
        self.write_bytes(format!("{}{end}", terminal_escape::escape(text, self.paint)).as_bytes());
    }

    fn write_bytes(&mut self, bytes: &[u8]) {
        if self.is_gone {
            return;
        }
        let written = self.to.write_all(bytes).and_then(|()| self.to.flush());
        self.is_gone = written.is_err();
    }
}
