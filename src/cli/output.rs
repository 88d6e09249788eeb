//! Standard output and standard error. All output of the command line passes through here.
//!
//! Text passes the terminal escape guard. Bytes bypass it, and so does output that a program requested verbatim.
//!
//! A reader that closed the pipe (`toolgate … | head`) causes neither an error nor a panic. Later output is dropped,
//! and an active run continues, because losing a viewer never harms a run.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;

use super::paint::Paint;
use super::terminal_escape;
use super::wrap::{visible_width, wrap};
use crate::telemetry::logging::{Stderr, erasure, temporary_rows};

/// The width in columns when the terminal reports none.
const USUAL_WIDTH: usize = 100;

/// The two streams with their properties.
pub(super) struct Output {
    stdout: Stream,
    stderr: Stream,
    width: Width,
}

/// The width of the output in columns.
enum Width {
    /// What `COLUMNS` says.
    Fixed(usize),
    /// That of the terminal, which its user may resize at any time.
    Terminal,
}

struct Stream {
    to: Box<dyn Write + Send>,
    paint: Paint,
    is_terminal: bool,
    is_gone: bool,
    /// The widths of the temporary lines at the end.
    temporary: Vec<usize>,
    /// Whether the terminal moves its cursor on command.
    moves_cursor: bool,
}

impl Output {
    /// The streams of this process.
    pub(super) fn of_process() -> Self {
        let env = |name: &str| std::env::var(name).ok();
        let (out, err) = (io::stdout(), io::stderr());
        let (out_terminal, err_terminal) = (out.is_terminal(), err.is_terminal());
        let columns = env("COLUMNS").and_then(|columns| columns.parse().ok());
        Self {
            stdout: Stream::new(Box::new(out), out_terminal, Paint::choose(out_terminal, env)),
            stderr: Stream::new(Box::new(Stderr), err_terminal, Paint::choose(err_terminal, env)),
            width: columns.map_or(Width::Terminal, Width::Fixed),
        }
    }

    /// An output of the same form whose lines are collected, to be shown later.
    pub(super) fn collecting(&self) -> (Self, Arc<Mutex<Vec<u8>>>) {
        let collected = Arc::new(Mutex::new(Vec::new()));
        let stream = |like: &Stream| Stream {
            to: Box::new(Collector(collected.clone())),
            temporary: Vec::new(),
            is_gone: false,
            ..*like
        };
        let (stdout, stderr) = (stream(&self.stdout), stream(&self.stderr));
        (Self { stdout, stderr, width: Width::Fixed(self.width()) }, collected)
    }

    /// Writes a line of the result to standard output. A terminal gets it wrapped at words.
    pub(super) fn line(&mut self, text: impl AsRef<str>) {
        self.passed();
        let text = self.wrapped(&self.stdout, text.as_ref());
        self.stdout.write(&text, "\n");
    }

    /// Writes a line that is not wrapped.
    fn whole(&mut self, text: &str) {
        self.passed();
        self.stdout.write(text, "\n");
    }

    /// Writes text without a line break to standard output.
    pub(super) fn fragment(&mut self, text: &str) {
        self.passed();
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
        let text = self.wrapped(&self.stderr, text.as_ref());
        self.stderr.write(&text, "\n");
    }

    /// Writes lines to standard error whose columns belong together, without a wrap.
    pub(super) fn drawing(&mut self, text: &str) {
        self.passed();
        self.stderr.write(text, "\n");
    }

    /// Writes a warning to standard error.
    pub(super) fn warning(&mut self, text: impl std::fmt::Display) {
        let word = self.note_paint().yellow("warning:");
        self.note(format!("{word} {text}"));
    }

    /// Writes temporary lines to standard error, in place of those before; the next output overwrites them. None may be
    /// wider than the terminal. Only a terminal that moves its cursor shows them.
    pub(super) fn passing(&mut self, lines: &[String]) {
        if !self.shows_passing() || (lines.is_empty() && self.stderr.temporary.is_empty()) {
            return;
        }
        let text = terminal_escape::escape(&lines.join("\n"), self.stderr.paint);
        let (columns, mut rows) = (self.width(), temporary_rows());
        let erased = self.stderr.erased(columns, *rows);
        // One write, so that the terminal never shows half of it.
        self.stderr.write_bytes(format!("{erased}{text}").as_bytes());
        self.stderr.temporary = lines.iter().map(|line| visible_width(line)).collect();
        *rows = self.stderr.rows(columns);
    }

    /// Removes the temporary lines.
    pub(super) fn passed(&mut self) {
        if !self.stderr.temporary.is_empty() {
            let (columns, mut rows) = (self.width(), temporary_rows());
            let erased = self.stderr.erased(columns, std::mem::take(&mut *rows));
            self.stderr.write_bytes(erased.as_bytes());
        }
    }

    /// Whether temporary lines are visible.
    pub(super) fn shows_passing(&self) -> bool {
        self.stderr.is_terminal && self.stderr.moves_cursor
    }

    /// Whether standard error is a terminal.
    pub(super) fn notes_are_seen(&self) -> bool {
        self.stderr.is_terminal
    }

    /// A JSON value as one line on standard output.
    pub(super) fn json(&mut self, value: &impl Serialize) {
        // All values that the program serializes have string keys. A failure would be a bug, so it is reported.
        match terminal_escape::json(value) {
            Ok(text) => self.whole(&text),
            Err(error) => self.note(format!("error: cannot be written as JSON: {error}")),
        }
    }

    /// A JSON value on several lines on standard output.
    pub(super) fn pretty(&mut self, value: &impl Serialize) {
        match terminal_escape::pretty_json(value) {
            Ok(text) => self.whole(&text),
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

    /// The text, wrapped at words if the stream is a terminal.
    fn wrapped<'t>(&self, stream: &Stream, text: &'t str) -> Cow<'t, str> {
        if stream.is_terminal { Cow::Owned(wrap(text, self.width())) } else { Cow::Borrowed(text) }
    }

    /// The width of the terminal in columns.
    pub(super) fn width(&self) -> usize {
        let width = match self.width {
            Width::Fixed(columns) => Some(columns),
            // A terminal without a size reports 0.
            Width::Terminal => comfy_table::Table::new().width().filter(|width| *width > 0).map(usize::from),
        };
        width.unwrap_or(USUAL_WIDTH).max(40)
    }
}

/// Collects what is written.
struct Collector(Arc<Mutex<Vec<u8>>>);

impl Write for Collector {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream {
    fn new(to: Box<dyn Write + Send>, is_terminal: bool, paint: Paint) -> Self {
        let moves_cursor = std::env::var("TERM").map_or(true, |term| term != "dumb");
        Self { to, paint, is_terminal, is_gone: false, temporary: Vec::new(), moves_cursor }
    }

    /// The rows of the temporary lines. A terminal that was made narrower shows a line on several.
    fn rows(&self, columns: usize) -> usize {
        self.temporary.iter().map(|width| width.div_ceil(columns).max(1)).sum()
    }

    /// The sequence that erases the temporary lines; empty if none is left of the rows that they had.
    fn erased(&mut self, columns: usize, left: usize) -> String {
        let rows = if left == 0 { 0 } else { self.rows(columns) };
        self.temporary.clear();
        erasure(rows)
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
