//! Message log as JSON lines, for tests. Several processes may write to the same file: each line is a single write, and
//! names its process.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};

/// A longer message is logged by its length.
const LONGEST: usize = 64 * 1024;

/// The log file, if there is one.
#[derive(Clone)]
pub(crate) struct Log {
    file: Option<Arc<Mutex<File>>>,
    began: Instant,
}

impl Log {
    /// Opens the file for appending, if one is named.
    pub(crate) fn open(path: Option<&Path>) -> io::Result<Self> {
        let append = |path| OpenOptions::new().create(true).append(true).open(path);
        let file = path.map(append).transpose()?;
        Ok(Self { file: file.map(|file| Arc::new(Mutex::new(file))), began: Instant::now() })
    }

    /// Logs a received message.
    pub(crate) fn received(&self, message: &Value) {
        self.note("received", message);
    }

    /// Logs a sent message.
    pub(crate) fn sent(&self, message: &Value) {
        self.note("sent", message);
    }

    /// Logs another event.
    pub(crate) fn note(&self, what: &str, value: &Value) {
        let Some(file) = &self.file else {
            return;
        };
        let length = value.to_string().len();
        let value = if length > LONGEST { json!({"id": value.get("id"), "bytes": length}) } else { value.clone() };
        let milliseconds = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let line = format!("{}\n", json!({"pid": std::process::id(), "ms": milliseconds, what: value}));
        // A failed write must not change the behavior of the server.
        let _ = file.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes());
    }
}
