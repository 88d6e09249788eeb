//! Call ids: replaces missing and duplicate ids of a server's calls. Some servers count from zero in every reply, and a
//! call id must be unique within a run.

use std::collections::HashSet;

use toolgate_core::chat::{Message, Part};
use toolgate_core::id::CallId;

/// The call ids of a conversation.
#[derive(Clone, Debug, Default)]
pub struct CallIds(HashSet<CallId>);

impl CallIds {
    /// Adds the ids of a message's calls.
    pub(super) fn add(&mut self, message: &Message) {
        self.0.extend(ids(message).cloned());
    }

    /// Removes the ids of a message's calls.
    pub(super) fn remove(&mut self, message: &Message) {
        for id in ids(message) {
            self.0.remove(id);
        }
    }

    /// Gives every call of a reply a unique id. New ids depend only on the conversation, so another process assigns the
    /// same ones.
    pub(crate) fn assign(&self, parts: &mut [Part]) {
        let mut fresh: HashSet<CallId> = HashSet::new();
        for part in parts {
            if let Part::ToolUse { id, .. } = part {
                let is_free = |id: &CallId| !id.as_str().is_empty() && !self.0.contains(id) && !fresh.contains(id);
                if !is_free(id) {
                    let stem = if id.as_str().is_empty() { "call" } else { id.as_str() };
                    let first = self.0.len() + fresh.len() + 1;
                    let free = (first..).map(|number| CallId::from(format!("{stem}_{number}"))).find(|id| is_free(id));
                    *id = free.unwrap_or_else(|| id.clone());
                }
                fresh.insert(id.clone());
            }
        }
    }
}

fn ids(message: &Message) -> impl Iterator<Item = &CallId> {
    message.content.iter().filter_map(Part::tool_use).map(|(id, ..)| id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use toolgate_core::chat::{Reply, Role};
    use toolgate_core::tool::ToolCall;

    fn calling(ids: &[&str]) -> Message {
        let content = Reply::calling(ids.iter().map(|id| ToolCall::new(*id, "t", Value::Null))).content;
        Message { role: Role::Assistant, content, provider_state: None }
    }

    #[test]
    fn missing_and_repeated_ids_are_replaced_and_good_ones_stay() {
        let mut known = CallIds::default();
        known.add(&calling(&["call_0", "call_3"]));
        let mut reply = calling(&["call_0", "", "good", "good"]);
        known.assign(&mut reply.content);
        let got: Vec<&str> = ids(&reply).map(CallId::as_str).collect();
        assert_eq!(got, ["call_0_3", "call_4", "good", "good_6"]);
    }
}
