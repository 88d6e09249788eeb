//! Wire log: every line in both directions with its time, as JSON lines in a file.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use serde_json::json;
use toolgate_core::redact::Secrets;

/// The direction of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Sent,
    Received,
    /// A line of stderr.
    Stderr,
    /// Something that happened to the connection: a start, an exit, an HTTP status.
    Event,
}

impl Direction {
    fn as_str(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Received => "received",
            Self::Stderr => "stderr",
            Self::Event => "event",
        }
    }
}

/// The log of all connections of a check. Clones share the file.
#[derive(Clone)]
pub(crate) struct WireLog {
    file: Option<Arc<Mutex<BufWriter<File>>>>,
    secrets: Secrets,
    began: Instant,
}

impl WireLog {
    /// A log that writes to this file, or nowhere, and never shows these secrets.
    pub(crate) fn new(file: Option<File>, secrets: Secrets) -> Self {
        let file = file.map(|file| Arc::new(Mutex::new(BufWriter::new(file))));
        Self { file, secrets, began: Instant::now() }
    }

    /// Records a line. `dropped` is the reason why a received line is not a message.
    pub(crate) fn record(&self, connection: &str, direction: Direction, line: &[u8], dropped: Option<&str>) {
        let Some(file) = &self.file else { return };
        let text = String::from_utf8_lossy(line);
        let text = self.secrets.redacted(text.trim_end_matches(['\r', '\n']));
        let mut row = json!({
            "time": jiff::Timestamp::now(),
            "ms": self.began.elapsed().as_millis() as u64,
            "connection": connection,
            "direction": direction.as_str(),
            "line": text,
        });
        if let (Some(row), Some(reason)) = (row.as_object_mut(), dropped) {
            row.insert("dropped".into(), reason.into());
        }
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        // A full disk costs the log and not the check.
        let _ = writeln!(file, "{row}");
    }

    /// Writes everything that is buffered.
    pub(crate) fn flush(&self) {
        if let Some(file) = &self.file {
            let _ = file.lock().unwrap_or_else(PoisonError::into_inner).flush();
        }
    }
}
