//! Former texts of files: read when a call that writes a file starts, before it is sent, for the view that shows the
//! difference after it. Only a terminal sees them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value};

use super::argument_lines::FileText;
use crate::core::id::{CallId, RunId};
use crate::core::run::Event;
use crate::core::tool::file_change::{changed_file, new_content};
use crate::core::tool::{Arguments, ToolCall};
use crate::ports::{EventSink, Update};

static FORMER: Mutex<Former> = Mutex::new(Former { requested: BTreeMap::new(), texts: BTreeMap::new() });

type Key = (RunId, CallId);

/// The calls of the runs in progress that write a file.
struct Former {
    /// The file of each call that has not started.
    requested: BTreeMap<Key, String>,
    /// The file and its text when the call started; empty if there was no file.
    texts: BTreeMap<Key, (String, String)>,
}

/// The sink that reads the files, on the task of the driver: regular ones of at most a MiB.
pub(super) fn sink() -> Arc<dyn EventSink> {
    Arc::new(FormerFiles)
}

/// Takes the former text of the file that a call wrote. `None` if it is not known, or if the file of this machine has
/// another content than the call wrote: it may not be the file of the server.
pub(super) fn take(run: &RunId, call: &CallId, arguments: &Map<String, Value>) -> Option<String> {
    let (file, text) = with_former(|former| former.texts.remove(&(run.clone(), call.clone())))?;
    let (_, written) = new_content(arguments)?;
    // A person may have approved the call with another file.
    let is_same = changed_file(arguments)? == file;
    (is_same && FileText::former(&file)? == written).then_some(text)
}

fn with_former<T>(then: impl FnOnce(&mut Former) -> T) -> T {
    then(&mut FORMER.lock().unwrap_or_else(PoisonError::into_inner))
}

struct FormerFiles;

impl EventSink for FormerFiles {
    fn observe(&self, run: &RunId, update: &Update) {
        let Update::JournalEntry(entry) = update else { return };
        if let Event::ModelReplied { reply } = &entry.event {
            let calls = reply.content.iter().filter_map(ToolCall::from_part);
            let written = calls.filter_map(|call| Some(((run.clone(), call.id), written_file(&call.arguments)?)));
            with_former(|former| former.requested.extend(written));
        }
        if let Event::CallsStarted { calls } = &entry.event {
            for call in calls {
                let key = (run.clone(), call.clone());
                let file = with_former(|former| former.requested.remove(&key));
                let text = file.and_then(|file| FileText::former(&file).map(|text| (file, text)));
                with_former(|former| former.texts.extend(text.map(|text| (key, text))));
            }
        }
        // A view may show the calls of a run after its end, so their texts stay.
        if let Event::Ended { .. } = &entry.event {
            with_former(|former| former.requested.retain(|(of, _), _| of != run));
        }
    }
}

/// The file whose whole content the call replaces.
fn written_file(arguments: &Arguments) -> Option<String> {
    let arguments = arguments.as_object()?;
    new_content(arguments)?;
    changed_file(arguments).map(str::to_owned)
}
