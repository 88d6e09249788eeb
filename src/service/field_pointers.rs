//! Field pointers for a resume: the runner reports errors by call, and a client needs the place in its request.

use std::collections::BTreeMap;

use toolgate_core::id::CallId;
use toolgate_core::run::ResumeError;

/// The places of a body that refer to each call, as JSON Pointers.
#[derive(Debug, Default)]
pub struct FieldPointers(BTreeMap<CallId, Vec<String>>);

impl FieldPointers {
    /// Calls, each with its list and its index in the list.
    pub fn new<'a>(calls: impl Iterator<Item = (&'a CallId, &'static str, usize)>) -> Self {
        let mut places = Self::default();
        for (call, list, index) in calls {
            places.0.entry(call.clone()).or_default().push(format!("/{list}/{index}"));
        }
        places
    }

    /// The place of an error; empty for the whole body.
    pub fn of_refusal(&self, refusal: &ResumeError) -> String {
        match refusal {
            ResumeError::UnknownCall { call_id }
            | ResumeError::AlreadySettled { call_id }
            | ResumeError::WrongKind { call_id, .. }
            | ResumeError::TooLate { call_id } => self.first(call_id, "/call_id"),
            // The first entry for the call is valid.
            ResumeError::Duplicate { call_id } => self.last(call_id, "/call_id"),
            ResumeError::Invalid { call_id, at, .. } => self.within(call_id, at),
            ResumeError::RepeatUnconfirmed { call_id } => self.first(call_id, "/repeat"),
            ResumeError::Drifted { call_id } => self.first(call_id, "/digest"),
            ResumeError::InThePast { call_id, .. } => self.first(call_id, "/expires_at"),
            ResumeError::NotLater { .. } | ResumeError::NoDeadline { .. } => String::new(),
            ResumeError::VersionConflict { .. } => "/expected_version".to_owned(),
            ResumeError::NotPaused => "/continue".to_owned(),
            ResumeError::Incomplete { .. }
            | ResumeError::RunEnded { .. }
            | ResumeError::Oversized { .. }
            | ResumeError::EmptyMessage => String::new(),
        }
    }

    /// A place within the entry for a call.
    fn within(&self, call: &CallId, at: &str) -> String {
        let entry = self.first(call, "");
        let field = match entry.split('/').nth(1) {
            Some("results") => "/output",
            Some("decisions") => "/edited_arguments",
            // The entry answers several requests, and the error text names the one.
            Some(_) | None => return entry,
        };
        if at.is_empty() { entry } else { entry + field + at }
    }

    fn first(&self, call: &CallId, field: &str) -> String {
        self.0.get(call).and_then(|places| places.first()).map_or_else(String::new, |place| format!("{place}{field}"))
    }

    fn last(&self, call: &CallId, field: &str) -> String {
        self.0.get(call).and_then(|places| places.last()).map_or_else(String::new, |place| format!("{place}{field}"))
    }
}
