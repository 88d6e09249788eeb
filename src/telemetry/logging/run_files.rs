//! Log files of runs: a readable file for each run (FEATURES 0.35), with a line for each event of its public stream. They
//! contain the conversation, so only the user of this process can read them, and they are deleted with the content of
//! their run.

use std::fs::{DirBuilder, File, OpenOptions, remove_file};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use serde_json::Value;
use toolgate_core::id::RunId;
use toolgate_core::lifecycle::{Content, Lifecycle, LifecycleEvent};
use toolgate_core::run::{Event, JournalEntry};
use toolgate_core::tool::escape_untrusted;
use toolgate_ports::{EventSink, Update};

use crate::per_run::PerRun;
use crate::spans::Redaction;

/// An event sink that writes a log file for each run. It blocks while it writes: use it behind a
/// [`BackgroundSink`](crate::BackgroundSink).
#[derive(Debug)]
pub struct RunLogFiles {
    folder: PathBuf,
    redaction: Redaction,
    runs: PerRun<Lifecycle>,
    has_complained: AtomicBool,
}

impl RunLogFiles {
    /// Writes into this folder, and creates it if there is none. No line has one of these secrets.
    pub fn in_folder(folder: PathBuf, redaction: Redaction) -> io::Result<Self> {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&folder)?;
        Ok(Self { folder, redaction, runs: PerRun::default(), has_complained: AtomicBool::new(false) })
    }

    /// The file of a run. An imported run may have any id.
    fn path(&self, run: &RunId) -> PathBuf {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let name: String = run.as_str().chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
        self.folder.join(format!("{name}.log"))
    }

    fn write(&self, run: &RunId, events: &[LifecycleEvent]) {
        let text: String = events.iter().map(|event| self.redaction.text(line(event)) + "\n").collect();
        let written = self.open(run).and_then(|mut file| file.write_all(text.as_bytes()));
        self.complain(written, run);
    }

    fn open(&self, run: &RunId) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(self.path(run))
    }

    /// Logs the first failure.
    fn complain(&self, done: io::Result<()>, run: &RunId) {
        if let Err(error) = done
            && !self.has_complained.swap(true, Ordering::Relaxed)
        {
            let file = self.path(run);
            tracing::warn!(file = %file.display(), %error, "failed to write log file of a run; further failures are not logged");
        }
    }

    /// Folds the beginning of a journal. It is written if the run has no file yet: the file of a fork, or of a run that
    /// another machine began, is complete.
    fn catch_up(&self, run: &RunId, history: &[JournalEntry]) -> Lifecycle {
        let mut lifecycle = Lifecycle::new(run.clone(), Content::Include);
        let events: Vec<_> = history.iter().flat_map(|recorded| lifecycle.observe(recorded)).collect();
        if !events.is_empty() && !self.path(run).exists() {
            self.write(run, &events);
        }
        lifecycle
    }
}

impl EventSink for RunLogFiles {
    fn claimed(&self, run: &RunId, history: &[JournalEntry]) {
        self.runs.put(run, self.catch_up(run, history));
    }

    fn observe(&self, run: &RunId, update: &Update) {
        let Update::JournalEntry(recorded) = update else { return };
        let new = || Lifecycle::new(run.clone(), Content::Include);
        let events = if matches!(recorded.event, Event::Started(_)) {
            Some(self.runs.with_new(run, new, |lifecycle| lifecycle.observe(recorded)))
        } else {
            self.runs.with(run, |lifecycle| lifecycle.observe(recorded))
        };
        // A fact for a run that is not active here comes again with its history.
        let Some(events) = events else { return };
        if matches!(recorded.event, Event::Ended { .. }) {
            self.runs.forget(run);
        }
        self.write(run, &events);
    }

    fn wrote_idle(&self, run: &RunId, history: &[JournalEntry], facts: &[JournalEntry]) {
        let mut lifecycle = self.catch_up(run, history);
        let events: Vec<_> = facts.iter().flat_map(|recorded| lifecycle.observe(recorded)).collect();
        self.write(run, &events);
    }

    fn released(&self, run: &RunId, at: Timestamp) {
        let pending = self.runs.with(run, |lifecycle| lifecycle.pending(at)).flatten();
        if let Some(pending) = pending {
            self.write(run, &[pending]);
        }
        self.runs.forget(run);
    }

    fn purged(&self, run: &RunId) {
        match remove_file(self.path(run)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            removed => self.complain(removed, run),
        }
    }
}

/// The line of an event: time, name, and its members as `name=value`.
fn line(event: &LifecycleEvent) -> String {
    let mut line = event.at.map_or_else(|| "-".to_owned(), |at| at.to_string());
    line.push_str(&format!(" {}", event.name()));
    let Ok(Value::Object(members)) = serde_json::to_value(event) else { return line };
    for (name, value) in members {
        if matches!(name.as_str(), "seq" | "run_id" | "at" | "type") {
            continue;
        }
        match value.as_str().filter(|word| is_word(word)) {
            Some(word) => line.push_str(&format!(" {name}={word}")),
            None => line.push_str(&format!(" {name}={value}")),
        }
    }
    escape_untrusted(&line)
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.:/".contains(c))
}
