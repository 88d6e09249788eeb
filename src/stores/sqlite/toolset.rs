//! Toolsets of journals. A `tools.listed` event names its toolset by the hash of its JSON, which is stored once among the
//! blobs, however many runs list the same tools. A loaded journal has whole events.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rusqlite::{Connection, Error};
use toolgate_core::blob::BlobHandle;
use toolgate_core::id::RunId;
use toolgate_core::run::Event;
use toolgate_core::tool::Toolset;
use toolgate_ports::{Recent, StoreError};

use super::blob;
use super::json::to_json;
use super::query::query;

const MEDIA_TYPE: &str = "application/vnd.toolgate.toolset+json";
/// The most toolsets in memory.
const CAPACITY: usize = 32;

/// The stored form of the event is the handle between these.
const EVENT: (&str, &str) = (r#"{"type":"tools.listed","toolset":""#, r#""}"#);

/// The toolsets of a journal.
pub(super) type NamedToolsets = BTreeMap<BlobHandle, Arc<Toolset>>;

/// The last toolsets. Journals with the same tools share them.
#[derive(Debug)]
pub(super) struct ToolsetStore(Recent<BlobHandle, StoredToolset>);

/// A toolset and its JSON.
#[derive(Clone, Debug)]
pub(super) struct StoredToolset {
    handle: BlobHandle,
    toolset: Arc<Toolset>,
    json: Arc<str>,
}

impl Default for ToolsetStore {
    fn default() -> Self {
        Self(Recent::new(CAPACITY))
    }
}

impl ToolsetStore {
    /// The stored form of a toolset that run `run` lists.
    pub(super) fn stored(&self, run: &RunId, toolset: &Arc<Toolset>) -> Result<StoredToolset, StoreError> {
        if let Some(stored) = self.0.get(|_, stored| stored.toolset == *toolset) {
            return Ok(stored);
        }
        let json = to_json(format_args!("a toolset of run {run}"), toolset)?;
        Ok(self.keep(toolset.clone(), json))
    }

    /// The toolsets that the stored events of a journal name.
    pub(super) fn load<'a>(
        &self,
        db: &Connection,
        run: &RunId,
        events: impl Iterator<Item = &'a str>,
    ) -> Result<Result<NamedToolsets, StoreError>, Error> {
        let handles: BTreeSet<BlobHandle> = events.filter_map(named).collect();
        let mut toolsets = NamedToolsets::new();
        for handle in handles {
            let known = self.0.get(|known, _| *known == handle).map(|stored| stored.toolset);
            let toolset = match known {
                Some(toolset) => toolset,
                None => {
                    let row: Option<(String, Vec<u8>)> =
                        query(blob::GET).bind(handle.digest().as_slice()).optional(db)?;
                    match self.parse(row.map(|(_, json)| json)) {
                        Ok(toolset) => toolset,
                        Err(why) => {
                            let why = format!("the toolset {handle} of run {run} {why}");
                            return Ok(Err(StoreError::Corrupt(why)));
                        }
                    }
                }
            };
            toolsets.insert(handle, toolset);
        }
        Ok(Ok(toolsets))
    }

    fn parse(&self, json: Option<Vec<u8>>) -> Result<Arc<Toolset>, String> {
        let json = String::from_utf8(json.ok_or("is missing")?).map_err(|error| format!("is unreadable: {error}"))?;
        let toolset = serde_json::from_str(&json).map_err(|error| format!("is unreadable: {error}"))?;
        Ok(self.keep(Arc::new(toolset), json).toolset)
    }

    fn keep(&self, toolset: Arc<Toolset>, json: String) -> StoredToolset {
        let stored = StoredToolset { handle: BlobHandle::for_bytes(json.as_bytes()), toolset, json: json.into() };
        self.0.insert(stored.handle, stored.clone());
        stored
    }
}

impl StoredToolset {
    /// The stored form of the event that lists it.
    pub(super) fn event(&self) -> String {
        let (begin, end) = EVENT;
        format!("{begin}{}{end}", self.handle)
    }

    /// Adds it to the blobs of the run.
    pub(super) fn put(&self, run: &RunId, db: &Connection) -> Result<(), Error> {
        blob::put(run.as_str(), &self.handle, (MEDIA_TYPE, self.json.as_bytes()), db)
    }
}

/// The event, if it is in the stored form and its toolset is among these.
pub(super) fn listed(event: &str, toolsets: &NamedToolsets) -> Option<Event> {
    let toolset = toolsets.get(&named(event)?)?.clone();
    Some(Event::ToolsListed { toolset })
}

/// The toolset that a stored event names.
fn named(event: &str) -> Option<BlobHandle> {
    let (begin, end) = EVENT;
    BlobHandle::parse(event.strip_prefix(begin)?.strip_suffix(end)?).ok()
}
