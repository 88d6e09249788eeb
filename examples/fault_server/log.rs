//! What the wire saw, as JSON lines, for a test to read. Several processes may write to the same file: each line is one
//! write, and names its process.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};

/// A message longer than this is noted by its length.
const LONGEST: usize = 64 * 1024;

/// The log, or nothing.
#[derive(Clone)]
pub(crate) struct Log {
    file: Option<Arc<Mutex<File>>>,
    began: Instant,
}

impl Log {
    /// Appends to the file, if one is named.
    pub(crate) fn open(path: Option<&Path>) -> io::Result<Self> {
        let append = |path| OpenOptions::new().create(true).append(true).open(path);
        let file = path.map(append).transpose()?;
        Ok(Self { file: file.map(|file| Arc::new(Mutex::new(file))), began: Instant::now() })
    }

    /// A message came in.
    pub(crate) fn received(&self, message: &Value) {
        self.note("received", message);
    }

    /// A message went out.
    pub(crate) fn sent(&self, message: &Value) {
        self.note("sent", message);
    }

    /// Notes anything else that happened.
    pub(crate) fn note(&self, what: &str, value: &Value) {
        let Some(file) = &self.file else {
            return;
        };
        let length = value.to_string().len();
        let value = if length > LONGEST { json!({"id": value.get("id"), "bytes": length}) } else { value.clone() };
        let milliseconds = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let line = format!("{}\n", json!({"pid": std::process::id(), "ms": milliseconds, what: value}));
        // A log that cannot be written must not change how the server behaves.
        let _ = file.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes());
    }
}
