//! Field pointers for a resume: the runner reports errors by call, and a client needs the place in its request.

use std::collections::BTreeMap;

use toolgate_core::id::CallId;
use toolgate_core::run::ResumeError;

/// The places in the `answers` of a body that refer to each call: the index of an entry, and its field with the content.
#[derive(Debug, Default)]
pub struct FieldPointers(BTreeMap<CallId, Vec<(usize, &'static str)>>);

impl FieldPointers {
    /// The calls of the entries, in order, each with the field that has its content; empty for no single field.
    pub fn new<'a>(entries: impl Iterator<Item = (&'a CallId, &'static str)>) -> Self {
        let mut places = Self::default();
        for (index, (call, field)) in entries.enumerate() {
            places.0.entry(call.clone()).or_default().push((index, field));
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
        match self.0.get(call).and_then(|places| places.first()) {
            // The entry answers several requests, and the error text names the one.
            Some((index, field)) if at.is_empty() || field.is_empty() => pointer(*index, ""),
            Some((index, field)) => pointer(*index, &format!("/{field}{at}")),
            None => String::new(),
        }
    }

    fn first(&self, call: &CallId, field: &str) -> String {
        let place = self.0.get(call).and_then(|places| places.first());
        place.map_or_else(String::new, |(index, _)| pointer(*index, field))
    }

    fn last(&self, call: &CallId, field: &str) -> String {
        let place = self.0.get(call).and_then(|places| places.last());
        place.map_or_else(String::new, |(index, _)| pointer(*index, field))
    }
}

fn pointer(index: usize, field: &str) -> String {
    format!("/answers/{index}{field}")
}
