//! State that the views of a conversation share: what was shown last about grants and about tools, and the numbers of calls.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::core::id::{CallId, RunId};

/// The shared state. A view that shares it with no other has one of its own.
#[derive(Clone, Debug, Default)]
pub(in crate::cli) struct SharedViewState(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// The texts that are shown when they change.
    shown: BTreeMap<Topic, String>,
    /// The calls in the order in which models requested them. A call has its position, from 1, as number.
    calls: Vec<(RunId, CallId)>,
}

/// The topic of a text that is shown when it changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Topic {
    GrantsInForce,
    /// What is wrong with the tools: servers that are left out, and warnings.
    ToolFaults,
}

impl SharedViewState {
    /// Whether the text about this topic is another one than before.
    pub(super) fn is_news(&self, topic: Topic, text: &str) -> bool {
        self.state().shown.insert(topic, text.to_owned()).is_none_or(|known| known != text)
    }

    /// Gives a call the next number, unless it has one.
    pub(super) fn add_call(&self, run: &RunId, call: &CallId) {
        let mut state = self.state();
        if !state.calls.iter().any(|(known, id)| (known, id) == (run, call)) {
            state.calls.push((run.clone(), call.clone()));
        }
    }

    /// The number of a call.
    pub(super) fn number(&self, run: &RunId, call: &CallId) -> Option<usize> {
        self.state().calls.iter().position(|(known, id)| (known, id) == (run, call)).map(|position| position + 1)
    }

    /// The call with this number or id, or else the last one.
    pub(in crate::cli) fn call(&self, named: Option<&str>) -> Option<(RunId, CallId)> {
        let state = self.state();
        let Some(named) = named else { return state.calls.last().cloned() };
        let numbered = || state.calls.get(named.parse::<usize>().ok()?.checked_sub(1)?);
        state.calls.iter().rfind(|(_, id)| id.as_str() == named).or_else(numbered).cloned()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_found_by_its_number_or_its_id() {
        let shared = SharedViewState::default();
        let [first, second] = ["run_1", "run_2"].map(RunId::from);
        for (run, call) in [(&first, "a"), (&first, "b"), (&first, "a"), (&second, "a")] {
            shared.add_call(run, &call.into());
        }
        assert_eq!(shared.number(&second, &"a".into()), Some(3));
        assert_eq!(shared.call(Some("2")), Some((first, "b".into())));
        assert_eq!(shared.call(Some("a")), Some((second.clone(), "a".into())), "the latest with that id");
        assert_eq!(shared.call(None), Some((second, "a".into())));
        assert_eq!((shared.call(Some("4")), shared.call(Some("0"))), (None, None));
    }
}
