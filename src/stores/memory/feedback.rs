//! Feedback on runs in memory.

use async_trait::async_trait;
use toolgate_core::id::{FeedbackId, RunId};
use toolgate_ports::{Feedback, FeedbackStore, MAX_FEEDBACK, StoreError};

use super::MemoryStore;

#[async_trait]
impl FeedbackStore for MemoryStore {
    async fn put_feedback(&self, run: &RunId, feedback: &Feedback) -> Result<bool, StoreError> {
        let mut contents = self.contents();
        if contents.runs.get(run).is_none_or(|run| run.row.purged_at.is_some()) {
            return Ok(false);
        }
        let known = contents.feedback.entry(run.clone()).or_default();
        let has_room = known.contains_key(&feedback.id) || known.len() < MAX_FEEDBACK;
        if has_room {
            known.insert(feedback.id.clone(), feedback.clone());
        }
        Ok(has_room)
    }

    async fn feedback(&self, run: &RunId) -> Result<Vec<Feedback>, StoreError> {
        let contents = self.contents();
        let mut found: Vec<Feedback> =
            contents.feedback.get(run).into_iter().flat_map(|known| known.values().cloned()).collect();
        found.sort_by_key(|feedback| feedback.created_at);
        Ok(found)
    }

    async fn delete_feedback(&self, run: &RunId, id: &FeedbackId) -> Result<bool, StoreError> {
        let mut contents = self.contents();
        if contents.feedback.get_mut(run).and_then(|known| known.remove(id)).is_none() {
            return Ok(false);
        }
        let quotes_it = |body: &[u8]| body.windows(id.as_str().len()).any(|part| part == id.as_str().as_bytes());
        contents.requests.values_mut().for_each(|stored| {
            stored.forget_answer(|reply| reply.run.as_ref() == Some(run) && quotes_it(&reply.body));
        });
        Ok(true)
    }
}
