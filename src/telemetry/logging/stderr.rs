//! Standard error behind a bounded queue, so that a server never waits for the process that reads its log. A separate
//! thread writes the lines. Lines that do not fit are dropped and counted, and the log reports the number when there is
//! room again.
//!
//! Commands write directly: their log lines keep their order relative to the command's own output, and a slow reader
//! delays only that one command. A log line erases the temporary lines of a command, which draws them again below it. While a
//! prompt is open, the log line is shown above it.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use crate::spans::Redaction;

/// The most bytes that may wait. A reader that pauses for a few thousand lines misses no line.
const QUEUE_BYTES: usize = 1024 * 1024;
/// How long the process waits for queued lines when it ends.
const FLUSH: Duration = Duration::from_secs(1);

static QUEUE: OnceLock<LineQueue> = OnceLock::new();

/// The secrets that no line shows.
static REDACTION: OnceLock<Redaction> = OnceLock::new();

/// Shows a line above the open prompt, and returns whether there is one.
static ABOVE_PROMPT: OnceLock<fn(&str) -> bool> = OnceLock::new();

/// The rows of the temporary lines at the end of standard error.
static TEMPORARY_ROWS: Mutex<usize> = Mutex::new(0);

/// Locks the number of rows of the temporary lines at the end of standard error. No log line is written until the guard is
/// dropped; a number that became 0 says that one erased them.
pub fn temporary_rows() -> MutexGuard<'static, usize> {
    TEMPORARY_ROWS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The sequence that erases these rows at the cursor, and everything below.
pub fn erasure(rows: usize) -> String {
    match rows {
        0 => String::new(),
        1 => "\r\x1b[J".to_owned(),
        rows => format!("\x1b[{}A\r\x1b[J", rows - 1),
    }
}

/// Standard error for the lines of the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogLines;

impl Write for LogLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let line = cleaned(bytes);
        if let (Some(show), Ok(text)) = (ABOVE_PROMPT.get(), std::str::from_utf8(&line))
            && show(text)
        {
            return Ok(bytes.len());
        }
        let mut rows = temporary_rows();
        if *rows > 0 {
            io::stderr().lock().write_all(erasure(std::mem::take(&mut *rows)).as_bytes())?;
        }
        write_line(&line)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Stderr.flush()
    }
}

/// Standard error, through the queue if the process has one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stderr;

impl Write for Stderr {
    /// Writes whole lines, as the log does: a secret in two parts is not recognized.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        write_line(&cleaned(bytes))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        match QUEUE.get() {
            Some(_) => Ok(()),
            None => io::stderr().lock().flush(),
        }
    }
}

/// Writes a line without secrets.
fn write_line(line: &[u8]) -> io::Result<()> {
    match QUEUE.get() {
        Some(queue) => queue.push(line),
        None => io::stderr().lock().write_all(line)?,
    }
    Ok(())
}

/// Puts the queue between this process and its standard error, for everything written through [`Stderr`] from now on,
/// including panic messages. A second call does nothing.
pub(super) fn detach() -> io::Result<()> {
    if QUEUE.get().is_some() {
        return Ok(());
    }
    let queue = LineQueue::new(QUEUE_BYTES);
    queue.spawn(io::stderr(), |dropped| {
        tracing::warn!(dropped, "log lines dropped: standard error was not read in time");
    })?;
    if QUEUE.set(queue).is_ok() {
        // The hook of the standard library waits for standard error.
        std::panic::set_hook(Box::new(|panic| drop(writeln!(Stderr, "{panic}"))));
    }
    Ok(())
}

/// Hides these secrets in everything written through [`Stderr`] from now on. A second call does nothing.
pub fn redact(redaction: Redaction) {
    let _ = REDACTION.set(redaction);
}

/// Shows the lines of the log with `show` from now on, whenever it returns that it did. A second call does nothing.
pub fn show_above_prompt(show: fn(&str) -> bool) {
    let _ = ABOVE_PROMPT.set(show);
}

/// The bytes of whole lines without the secrets of this process.
fn cleaned(bytes: &[u8]) -> Cow<'_, [u8]> {
    match REDACTION.get().and_then(|redaction| without_secrets(redaction, bytes)) {
        Some(clean) => Cow::Owned(clean.into_bytes()),
        None => Cow::Borrowed(bytes),
    }
}

/// The lines without secrets; `None` if they have none. Each line may be JSON of its own.
fn without_secrets(redaction: &Redaction, bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (line, end) = text.strip_suffix('\n').map_or((text, ""), |line| (line, "\n"));
    redaction.cleaned(line).map(|clean| clean + end)
}

/// Lines dropped so far.
pub fn dropped() -> u64 {
    QUEUE.get().map_or(0, |queue| queue.state().dropped)
}

/// Waits until the queued lines are written, up to a fixed time.
pub fn flush() {
    if let Some(queue) = QUEUE.get() {
        queue.flush(FLUSH);
    }
}

/// The line queue. Clones share it.
#[derive(Clone, Debug)]
struct LineQueue(Arc<QueueShared>);

#[derive(Debug)]
struct QueueShared {
    state: Mutex<State>,
    filled: Condvar,
    written: Condvar,
    capacity: usize,
}

#[derive(Debug, Default)]
struct State {
    lines: VecDeque<Box<[u8]>>,
    bytes: usize,
    /// Whether a line was taken out and is not written yet.
    is_writing: bool,
    dropped: u64,
    /// Dropped lines that the log has not reported yet.
    unreported: u64,
}

impl LineQueue {
    fn new(capacity: usize) -> Self {
        Self(Arc::new(QueueShared {
            state: Mutex::default(),
            filled: Condvar::new(),
            written: Condvar::new(),
            capacity,
        }))
    }

    /// Starts the writer thread. `report` gets the number of lines dropped since its last call.
    fn spawn(&self, to: impl Write + Send + 'static, report: impl Fn(u64) + Send + 'static) -> io::Result<()> {
        let queue = self.clone();
        let thread = std::thread::Builder::new().name("toolgate-log".into());
        // The thread ends with the process: it may wait for a reader that never comes.
        thread.spawn(move || queue.write_to(to, &report)).map(drop)
    }

    fn push(&self, line: &[u8]) {
        let mut state = self.state();
        if !state.lines.is_empty() && state.bytes + line.len() > self.0.capacity {
            state.dropped += 1;
            state.unreported += 1;
            return;
        }
        state.bytes += line.len();
        state.lines.push_back(line.into());
        self.0.filled.notify_one();
    }

    fn write_to(&self, mut to: impl Write, report: &impl Fn(u64)) {
        loop {
            let line = self.next();
            let is_written = to.write_all(&line).and_then(|()| to.flush()).is_ok();
            let mut state = self.state();
            state.is_writing = false;
            // There is no reader, or the disk of the log is full.
            state.dropped += u64::from(!is_written);
            // Leaves room, so that the report itself is not dropped.
            let unreported = if state.bytes <= self.0.capacity / 2 { std::mem::take(&mut state.unreported) } else { 0 };
            drop(state);
            self.0.written.notify_all();
            if unreported > 0 {
                report(unreported);
            }
        }
    }

    fn next(&self) -> Box<[u8]> {
        let mut state = self.state();
        loop {
            if let Some(line) = state.lines.pop_front() {
                state.bytes -= line.len();
                state.is_writing = true;
                return line;
            }
            state = self.0.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn flush(&self, longest: Duration) {
        let has_more = |state: &mut State| state.is_writing || !state.lines.is_empty();
        drop(self.0.written.wait_timeout_while(self.state(), longest, has_more));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader};
    use std::sync::mpsc::channel;

    use toolgate_core::redact::SecretsBuilder;

    use super::*;

    #[test]
    fn lines_that_no_reader_takes_are_dropped_counted_and_reported() {
        const LINES: u64 = 5_000;
        let (reader, writer) = io::pipe().unwrap();
        let queue = LineQueue::new(4096);
        let (reports, reported) = channel();
        queue
            .spawn(writer, move |dropped| {
                let _ = reports.send(dropped);
            })
            .unwrap();

        // Far more than a pipe and the queue hold.
        let line = format!("{}\n", "x".repeat(99));
        (0..LINES).for_each(|_| queue.push(line.as_bytes()));
        let dropped = queue.state().dropped;
        assert!(dropped > 0, "a pipe without a reader cannot hold half a megabyte");

        let read = BufReader::new(reader).lines().take(usize::try_from(LINES - dropped).unwrap());
        assert!(read.map(Result::unwrap).all(|line| line.len() == 99), "no line is cut");
        let mut counted = 0;
        while counted < dropped {
            counted += reported.recv_timeout(Duration::from_secs(20)).expect("the log reports the lost lines");
        }
        queue.flush(Duration::from_secs(20));
        let state = queue.state();
        assert_eq!((counted, state.dropped, state.bytes), (dropped, dropped, 0));
    }

    #[test]
    fn lines_of_text_and_of_json_lose_their_secrets_and_nothing_else() {
        let redaction = Redaction::new(["*password"], SecretsBuilder::default()).unwrap();
        for (line, clean) in [
            ("WARN failed password=s-1 n=1\n", Some("WARN failed password=__REDACTED__ n=1\n")),
            (
                "{\"level\":\"WARN\",\"password\":\"s-1\"}\n",
                Some("{\"level\":\"WARN\",\"password\":\"__REDACTED__\"}\n"),
            ),
            ("WARN failed n=1\n", None),
        ] {
            assert_eq!(without_secrets(&redaction, line.as_bytes()).as_deref(), clean);
        }
    }

    #[test]
    fn a_closed_reader_stops_nothing() {
        let (reader, writer) = io::pipe().unwrap();
        let queue = LineQueue::new(4096);
        queue.spawn(writer, |_| {}).unwrap();
        drop(reader);
        queue.push(b"unread\n");
        queue.flush(Duration::from_secs(20));
        let state = queue.state();
        assert_eq!((state.dropped, state.bytes), (1, 0));
    }
}
