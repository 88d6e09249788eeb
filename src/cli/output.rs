//! Standard output and standard error. Everything the command line says goes through here.
//!
//! Text passes the guard on its way, so that no terminal gets what it would obey; bytes do not, and neither does what a
//! program asked for to have it as it is.
//!
//! A reader that went away (`toolgate … | head`) is no error and no panic: what is written after that is dropped, and a
//! run that is under way goes on, for losing a viewer never harms a run.

use std::io::{self, IsTerminal, Write};

use serde::Serialize;

use super::guard;
use super::paint::Paint;
use crate::telemetry::logging::Stderr;

/// Columns when the terminal does not tell.
const USUAL_WIDTH: usize = 100;

/// Empties the line and goes to its beginning.
const CLEAR: &[u8] = b"\r\x1b[K";

/// The two streams and what is known of them.
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
    /// Whether the last line is one that passes.
    is_passing: bool,
}

impl Output {
    /// The streams of this process.
    pub(super) fn of_process() -> Self {
        let env = |name: &str| std::env::var(name).ok();
        let (out, err) = (io::stdout(), io::stderr());
        let (out_terminal, err_terminal) = (out.is_terminal(), err.is_terminal());
        let columns = env("COLUMNS").and_then(|columns| columns.parse().ok());
        // A terminal that knows no size says 0.
        let asked = || comfy_table::Table::new().width().filter(|width| *width > 0).map(usize::from);
        Self {
            stdout: Stream::new(Box::new(out), out_terminal, Paint::choose(out_terminal, env)),
            stderr: Stream::new(Box::new(Stderr), err_terminal, Paint::choose(err_terminal, env)),
            width: columns.or_else(asked).unwrap_or(USUAL_WIDTH).max(40),
        }
    }

    /// A line on standard output: what was asked for.
    pub(super) fn line(&mut self, text: impl AsRef<str>) {
        self.passed();
        self.stdout.write(text.as_ref(), "\n");
    }

    /// Text on standard output without a line's end.
    pub(super) fn fragment(&mut self, text: &str) {
        self.stdout.write(text, "");
    }

    /// An answer or a result on standard output: whoever reads it into a file or a program gets it as it is, and only a
    /// terminal is spared what it would obey.
    pub(super) fn verbatim(&mut self, text: &str) {
        self.passed();
        match self.stdout.is_terminal {
            true => self.stdout.write(text, "\n"),
            false => self.stdout.write_bytes(format!("{text}\n").as_bytes()),
        }
    }

    /// Bytes on standard output, as they are.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.stdout.write_bytes(bytes);
    }

    /// A line on standard error: what is said about it.
    pub(super) fn note(&mut self, text: impl AsRef<str>) {
        self.passed();
        self.stderr.write(text.as_ref(), "\n");
    }

    /// A line on standard error whose place the next one takes. Only a terminal shows it.
    pub(super) fn passing(&mut self, text: &str) {
        if self.stderr.is_terminal {
            self.stderr.write_bytes(CLEAR);
            self.stderr.write(text, "");
            self.stderr.is_passing = true;
        }
    }

    /// Takes away the line that passes.
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
        // What we serialise has string keys throughout; a failure would be a fault of ours and is said as one.
        match guard::json(value) {
            Ok(text) => self.line(text),
            Err(error) => self.note(format!("error: cannot be written as JSON: {error}")),
        }
    }

    /// A JSON value over several lines on standard output.
    pub(super) fn pretty(&mut self, value: &impl Serialize) {
        match guard::pretty_json(value) {
            Ok(text) => self.line(text),
            Err(error) => self.note(format!("error: cannot be written as JSON: {error}")),
        }
    }

    /// Whether standard output is a terminal.
    pub(super) fn is_terminal(&self) -> bool {
        self.stdout.is_terminal
    }

    /// How standard output is painted.
    pub(super) fn paint(&self) -> Paint {
        self.stdout.paint
    }

    /// How standard error is painted.
    pub(super) fn note_paint(&self) -> Paint {
        self.stderr.paint
    }

    /// Columns of the terminal.
    pub(super) fn width(&self) -> usize {
        self.width
    }
}

impl Stream {
    fn new(to: Box<dyn Write + Send>, is_terminal: bool, paint: Paint) -> Self {
        Self { to, paint, is_terminal, is_gone: false, is_passing: false }
    }

    fn write(&mut self, text: &str, end: &str) {
        self.write_bytes(format!("{}{end}", guard::shown(text, self.paint)).as_bytes());
    }

    fn write_bytes(&mut self, bytes: &[u8]) {
        if self.is_gone {
            return;
        }
        let written = self.to.write_all(bytes).and_then(|()| self.to.flush());
        self.is_gone = written.is_err();
    }
}
