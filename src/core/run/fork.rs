//! What a fork takes over from the run it copies: every fact but the consents that were not used yet.
//!
//! A person's yes, and an answer to a server, let one call of one run go on, once. In a copy they would do so a second
//! time. What was used stays used, so that nobody is asked again about what has run; what was not used yet belongs to the
//! other run, and is asked for again in this one.

use super::state::Phase;
use super::turn::{Call, CallState};
use super::{CallVerdict, Clearance, Event, Impossible, Right, Run};
use crate::core::id::CallId;

impl Run {
    /// The facts of a journal, or of the beginning of one, that a fork of it begins with.
    pub fn forked(mut source: Vec<Event>) -> Result<Vec<Event>, Impossible> {
        let Some(run) = Self::replay(&source)? else { return Ok(source) };
        for call in run.unused_consents() {
            let Some(given) = source.iter().rposition(|event| consent(event) == Some(&call)) else { continue };
            let since = source.split_off(given);
            source.extend(since.into_iter().filter(|event| depends_on_consent(event) != Some(&call)));
        }
        Ok(source)
    }

    /// The calls that would go on, on the strength of a person's word alone, and have not yet.
    fn unused_consents(&self) -> Vec<CallId> {
        let Phase::Working { turn, .. } = &self.phase else { return Vec::new() };
        let unused = turn.calls.iter().filter(|call| call.rests_on_unused_consent());
        unused.map(|call| call.asked.id.clone()).collect()
    }
}

impl Call {
    fn rests_on_unused_consent(&self) -> bool {
        let by_a_person = matches!(self.clearance, Some(Clearance::Person { .. }));
        // What was sent, and is to be sent once more, was answered for its server or approved in spite of a doubt.
        let goes_on = self.state == CallState::Cleared && (by_a_person || self.sent);
        goes_on || self.is_approved()
    }
}

/// The call that a fact lets go on because a person said so.
fn consent(event: &Event) -> Option<&CallId> {
    match event {
        Event::ApprovalDecided { call, .. } | Event::InputGiven { call, .. } => Some(call),
        Event::Started(_)
        | Event::Resumed { .. }
        | Event::ToolsListed { .. }
        | Event::ApprovalsResolved { .. }
        | Event::ModelCalled { .. }
        | Event::ModelReplied { .. }
        | Event::ModelFailed { .. }
        | Event::OutputValidated { .. }
        | Event::TierSelected { .. }
        | Event::CallChecked { .. }
        | Event::CallDrifted { .. }
        | Event::Extended { .. }
        | Event::Expired { .. }
        | Event::QuestionAnswered { .. }
        | Event::CallsStarted { .. }
        | Event::CallCompleted { .. }
        | Event::InputRequested { .. }
        | Event::InputRequired { .. }
        | Event::TaskStarted { .. }
        | Event::MessageAdded { .. }
        | Event::Ended { .. } => None,
    }
}

/// The call of a consent, or of what can follow one that is not used yet: that it still holds, and more time for whoever is
/// to run the call.
fn depends_on_consent(event: &Event) -> Option<&CallId> {
    if let Event::CallChecked { call, verdict: CallVerdict::Run { by: Right::Person } } | Event::Extended { call, .. } =
        event
    {
        return Some(call);
    }
    consent(event)
}
