//! Segment cache: the next run of a session reads only those segments of its conversation that this process does not know.
//! Without it, every run would read and parse the whole conversation again, and a turn would cost more with each one.
//!
//! A segment never changes. One that was deleted is not asked for: the store lists the segments of a conversation each time.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use toolgate_core::id::{RunId, Tenant};
use toolgate_core::run::Segment;
use toolgate_ports::{RunStore, StoreError};

/// The most bytes of segments that are kept, as JSON.
const MAX_BYTES: usize = 16 * 1024 * 1024;

type Key = (Tenant, RunId);

/// Segments that were read recently.
#[derive(Debug, Default)]
pub struct SegmentCache(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    segments: BTreeMap<Key, (Segment, usize)>,
    /// The keys, oldest first.
    order: VecDeque<Key>,
    bytes: usize,
}

impl SegmentCache {
    /// The segments of the conversation that ends with this run, oldest first; and whether the last run has one.
    pub async fn conversation(
        &self,
        runs: &dyn RunStore,
        tenant: &Tenant,
        last: &RunId,
    ) -> Result<(Vec<Segment>, bool), StoreError> {
        let lengths = runs.segment_lengths(tenant, last).await?;
        let has_last = lengths.last().is_some_and(|(_, length)| length.is_some());
        let listed: Vec<(RunId, u64)> = lengths.into_iter().filter_map(|(run, length)| Some((run, length?))).collect();
        let mut known: BTreeMap<RunId, Segment> = listed
            .iter()
            .filter_map(|(run, length)| Some((run.clone(), self.get(&(tenant.clone(), run.clone()), *length)?)))
            .collect();
        let missing: Vec<RunId> =
            listed.iter().map(|(run, _)| run).filter(|run| !known.contains_key(*run)).cloned().collect();
        if !missing.is_empty() {
            for (run, segment) in runs.segments(tenant, &missing).await? {
                self.insert((tenant.clone(), run.clone()), &segment);
                known.insert(run, segment);
            }
        }
        Ok((listed.into_iter().filter_map(|(run, _)| known.remove(&run)).collect(), has_last))
    }

    /// Drops the segment of a deleted run.
    pub fn forget(&self, run: &RunId) {
        let mut entries = self.entries();
        let keys: Vec<Key> = entries.order.iter().filter(|(_, known)| known == run).cloned().collect();
        keys.iter().for_each(|key| entries.remove(key));
        entries.order.retain(|(_, known)| known != run);
    }

    /// The segment, if it has as many messages as the store lists.
    fn get(&self, key: &Key, length: u64) -> Option<Segment> {
        let entries = self.entries();
        let (segment, _) = entries.segments.get(key)?;
        (segment.messages.len() as u64 == length).then(|| segment.clone())
    }

    fn insert(&self, key: Key, segment: &Segment) {
        let Ok(json) = serde_json::to_vec(segment) else { return };
        let mut entries = self.entries();
        entries.remove(&key);
        entries.order.retain(|known| *known != key);
        entries.bytes += json.len();
        entries.segments.insert(key.clone(), (segment.clone(), json.len()));
        entries.order.push_back(key);
        while entries.bytes > MAX_BYTES
            && let Some(oldest) = entries.order.pop_front()
        {
            entries.remove(&oldest);
        }
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    fn remove(&mut self, key: &Key) {
        if let Some((_, bytes)) = self.segments.remove(key) {
            self.bytes = self.bytes.saturating_sub(bytes);
        }
    }
}
