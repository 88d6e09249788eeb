//! Texts of the files that calls change: read before a call is sent and when it ended, for the view that shows the
//! difference. Only a terminal sees them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value};

use super::argument_lines::FileText;
use crate::core::id::{CallId, RunId};
use crate::core::run::Event;
use crate::core::tool::ToolCall;
use crate::core::tool::file_change::changed_file;
use crate::ports::{EventSink, Update};

static READ: Mutex<ReadFiles> = Mutex::new(ReadFiles { requested: BTreeMap::new(), started: BTreeMap::new() });

/// The most calls whose texts are kept.
const MOST: usize = 64;

type Key = (RunId, CallId);

/// The calls of the runs in progress that change a file.
struct ReadFiles {
    /// The file of each call that has not started.
    requested: BTreeMap<Key, String>,
    started: BTreeMap<Key, StartedChange>,
}

struct StartedChange {
    file: String,
    before: String,
    /// `None` until the call ended; then the text, if it could be read.
    after: Option<Option<String>>,
}

/// The texts of a file of this machine around a call, each empty if there was no file. It may not be the file of the server.
pub(super) struct FileTexts {
    pub(super) before: String,
    pub(super) after: String,
}

/// The sink that reads the files, on the task of the driver: regular ones of at most a MiB.
pub(super) fn sink() -> Arc<dyn EventSink> {
    Arc::new(FileTextReader)
}

/// Takes the texts of the file that a call changed. `None` if they are not known.
pub(super) fn take(run: &RunId, call: &CallId, arguments: &Map<String, Value>) -> Option<FileTexts> {
    let StartedChange { file, before, after } = with_read(|read| read.started.remove(&(run.clone(), call.clone())))?;
    // A person may have approved the call with another file.
    let is_same = changed_file(arguments)? == file;
    let after = after.unwrap_or_else(|| FileText::content(&file)).filter(|_| is_same)?;
    Some(FileTexts { before, after })
}

fn with_read<T>(then: impl FnOnce(&mut ReadFiles) -> T) -> T {
    then(&mut READ.lock().unwrap_or_else(PoisonError::into_inner))
}

struct FileTextReader;

impl EventSink for FileTextReader {
    #[expect(clippy::wildcard_enum_match_arm, reason = "picks the events at which a file is read")]
    fn observe(&self, run: &RunId, update: &Update) {
        let Update::JournalEntry(entry) = update else { return };
        match &entry.event {
            Event::ModelReplied { reply } => {
                let calls = reply.content.iter().filter_map(ToolCall::from_part);
                let file = |call: &ToolCall| Some(changed_file(call.arguments.as_object()?)?.to_owned());
                let changed = calls.filter_map(|call| Some(((run.clone(), call.id.clone()), file(&call)?)));
                with_read(|read| read.requested.extend(changed));
            }
            Event::CallsStarted { calls } => {
                for call in calls {
                    let key = (run.clone(), call.clone());
                    let file = with_read(|read| read.requested.remove(&key));
                    let change = file.and_then(|file| {
                        let before = FileText::content(&file)?;
                        Some(StartedChange { file, before, after: None })
                    });
                    with_read(|read| {
                        read.started.extend(change.map(|change| (key, change)));
                        // Output without a live view takes none.
                        while read.started.len() > MOST {
                            read.started.pop_first();
                        }
                    });
                }
            }
            // Read before the next call that changes the file starts.
            Event::CallCompleted { call, .. } => {
                let key = (run.clone(), call.clone());
                let file = with_read(|read| read.started.get(&key).map(|change| change.file.clone()));
                let after = file.and_then(|file| FileText::content(&file));
                with_read(|read| read.started.get_mut(&key).map(|change| change.after = Some(after)));
            }
            // A view may show the calls of a run after its end, so their texts stay.
            Event::Ended { .. } => with_read(|read| read.requested.retain(|(of, _), _| of != run)),
            _ => {}
        }
    }
}
