//! Forks: which events a fork copies from its source, and the state in which its own part begins.
//!
//! The copied events count for the transcript and not for the budget: the event that begins the fork's own part carries
//! the fork's limits, and the fold restarts every counter there. Without a position, a fork copies the longest
//! beginning of its source that leads to a model call or to a wait. The end of the source is not part of that: a
//! failure, a denial, a final reply without tools, or an answer without a following message.
//!
//! A pause in force is not copied. Unused consents are not copied either. An approval, and an answer to a
//! server, let one call of one run continue, once. A copy would let it continue a second time. Used consents stay used,
//! so that the fork does not ask again about a call that has run. An unused consent belongs to the source, and the fork
//! asks for it again. An unanswered question about a call is not copied: the policy of the fork judges the call.

use std::sync::Arc;

use super::state::Phase;
use super::turn::{Call, CallState};
use super::{
    Authorization, Budget, CallAuthorization, CallVerdict, Ending, Event, InvalidEvent, Limits, OnDeny, Rejection, Run,
    Step, ToolAccess,
};
use crate::chat::Message;
use crate::id::CallId;

/// The note to the model that it has a tool budget again, after a transcript that says that the budget is used up.
pub(super) const RENEWED_NOTE: &str = "[toolgate] The tool budget was renewed: you may call tools again.";

impl Run {
    /// The events of a journal, or of the beginning of one, that a fork of it begins with.
    pub fn forked(mut source: Vec<Event>) -> Result<Vec<Event>, InvalidEvent> {
        let Some(run) = Self::replay(&source)? else { return Ok(source) };
        for call in run.unused_consents() {
            let Some(given) = source.iter().rposition(|event| consent(event) == Some(&call)) else { continue };
            let since = source.split_off(given);
            source.extend(since.into_iter().filter(|event| depends_on_consent(event) != Some(&call)));
        }
        let asked = Self::replay(&source)?.map(|run| run.asked_calls()).unwrap_or_default();
        for call in asked {
            let Some(at) = source.iter().rposition(|event| question(event) == Some(&call)) else { continue };
            let since = source.split_off(at);
            source.extend(since.into_iter().skip(1).filter(|event| extended(event) != Some(&call)));
        }
        if run.ending().is_none() {
            // A pause that ended stays, because the run may have been continued with other limits.
            let ended = source.iter().rposition(|event| matches!(event, Event::Unpaused { .. }));
            let since = source.split_off(ended.map_or(0, |at| at + 1));
            source.extend(since.into_iter().filter(|event| !matches!(event, Event::Paused { .. })));
        }
        Ok(source)
    }

    /// The number of events that a fork with these limits copies without a position: the longest beginning of the journal
    /// after which the model is called, or the run waits. A fork with a message replies to the answer of its source, if
    /// there is one. A fork has every call that its source sent, even where its limits then end it at once. 0 for an empty
    /// journal.
    pub fn fork_position(source: &[Event], has_message: bool, limits: &Limits) -> Result<u64, InvalidEvent> {
        let Some((first, rest)) = source.split_first() else { return Ok(0) };
        let Some(mut run) = Self::replay([first])? else { return Ok(0) };
        let (mut positions, mut before_turn, mut before_sent) = (vec![run.length()], 1, 0);
        let mut has_denied_beside_sent = false;
        // Undo calls are no part of what the model did.
        let undoes = |event: &&Event| matches!(event, Event::CompensationStarted { .. });
        for event in rest.iter().take_while(|event| !undoes(event)) {
            if has_message && matches!(event, Event::Ended { ending } if ending.output().is_some()) {
                return Ok(run.length());
            }
            if matches!(event, Event::ModelReplied { .. }) {
                before_turn = positions.len();
            } else if matches!(event, Event::CallsStarted { .. }) {
                before_sent = positions.len();
            }
            run.apply(event)?;
            if run.is_denied_by_policy(event) {
                // A fork inside the turn would be denied again before the model is asked. A fork before the turn would
                // not know a call that was sent: then the model reads the denial as well.
                has_denied_beside_sent = before_sent > before_turn;
                if !has_denied_beside_sent {
                    positions.truncate(before_turn);
                }
            }
            if run.is_fork_point(has_denied_beside_sent) {
                positions.push(run.length());
            }
        }
        while let Some(&[_, .., last]) = positions.get(before_sent..) {
            let beginning = source.iter().take(usize::try_from(last).unwrap_or(usize::MAX));
            if !Self::replay(beginning)?.is_some_and(|run| run.ends_as_fork(limits)) {
                break;
            }
            positions.pop();
        }
        Ok(positions.last().copied().unwrap_or_default())
    }

    /// Whether a fork with these limits that copies the journal up to here ends without a step that needs the outside
    /// world, for example because it may run no tool and the model made only tool calls.
    fn ends_as_fork(&self, limits: &Limits) -> bool {
        let mut run = self.clone();
        run.begin_fork(limits);
        run.foregone_ending().is_some()
    }

    /// The ending that follows from the journal alone, without a new event from outside.
    pub fn foregone_ending(&self) -> Option<Ending> {
        let mut run = self.clone();
        loop {
            if run.is_compensating() {
                return run.decided_ending().cloned();
            }
            match run.next() {
                Step::Record(events) => {
                    for event in events {
                        if let Event::Ended { ending } = event {
                            return Some(ending);
                        }
                        // `next` records only events that the fold admits.
                        run.apply(&event).ok()?;
                    }
                }
                Step::Done(ending) => return Some(ending),
                Step::ListTools
                | Step::ResolveApprovals(_)
                | Step::CallModel { .. }
                | Step::Compact { .. }
                | Step::ValidateOutput(_)
                | Step::CheckCalls(_)
                | Step::RunTier(_)
                | Step::Wait(_) => return None,
            }
        }
    }

    /// Begins a fork's own part: an unused budget, and no turn in progress.
    pub(super) fn begin_fork(&mut self, limits: &Limits) {
        let was_told = self.exhaustion_noted || self.stopped || self.last_word.is_some();
        Arc::make_mut(&mut self.started).spec.limits = limits.clone();
        self.budget = Budget { limits: limits.clone(), ..Budget::default() };
        self.correction = None;
        // The model reads the errors and denials of the source.
        self.tool_error = None;
        self.denied = None;
        self.last_word = None;
        self.exhaustion_noted = false;
        self.stopped = false;
        self.refused = None;
        self.answers_at_limit = false;
        self.cooling.clear();
        self.replies = Default::default();
        self.begin_unpaused();
        self.forget_effects();
        self.forget_tried_compaction();
        if was_told && self.tool_access() == ToolAccess::Enabled {
            self.inbox.insert(0, Message::user(RENEWED_NOTE));
        }
        match &mut self.phase {
            // The attempts belong to the source: the turn begins again.
            Phase::Asking(_) | Phase::Compacting(_) | Phase::Retrying { .. } => {
                self.phase = Phase::Ready { resolved: false }
            }
            Phase::Validating { tool_access, .. } if *tool_access == ToolAccess::FinalAnswer => {
                *tool_access = ToolAccess::BudgetExhausted
            }
            // The calls that were sent are the source's, and so is a correction that none of them was usable.
            Phase::Working { turn, .. } => {
                turn.copied = true;
                turn.calls.iter_mut().for_each(|call| call.sent_by_source = call.sent);
            }
            Phase::Ready { .. } | Phase::Validating { .. } | Phase::Accepted { .. } | Phase::Ended(_) => {}
        }
        if self.is_between_turns() {
            self.deliver_inbox();
        }
    }

    /// Whether the phase after this event allows a fork.
    fn is_fork_point(&self, may_be_denied: bool) -> bool {
        let is_denied = self.denied.is_some() && self.started.spec.rules.on_deny == OnDeny::Fail && !may_be_denied;
        let has_answer = matches!(self.phase, Phase::Validating { .. } | Phase::Accepted { .. } | Phase::Ended(_));
        !has_answer && !is_denied && self.missing_server.is_none() && self.last_word.is_none()
    }

    /// Whether the event is a denial that ends the run without a person's decision.
    fn is_denied_by_policy(&self, event: &Event) -> bool {
        let denied = matches!(
            event,
            Event::CallChecked { verdict: CallVerdict::Rejected { reason: Rejection::Denied, .. }, .. }
        );
        denied && self.started.spec.rules.on_deny == OnDeny::Fail
    }

    /// The calls that would run because of a person's consent alone, and have not run yet.
    fn unused_consents(&self) -> Vec<CallId> {
        let unused = self.phase.calls().iter().filter(|call| call.rests_on_unused_consent());
        unused.map(|call| call.requested.id.clone()).collect()
    }

    /// The calls that wait for a decision.
    fn asked_calls(&self) -> Vec<CallId> {
        let asked = self.phase.calls().iter().filter(|call| matches!(call.state, CallState::Asked { .. }));
        asked.map(|call| call.requested.id.clone()).collect()
    }
}

impl Call {
    fn rests_on_unused_consent(&self) -> bool {
        let by_a_person = matches!(self.authorization, Some(CallAuthorization::HumanApproval { .. }));
        // A call that was sent, and is to be sent again, has answers for its server or an approval in spite of the
        // doubt.
        let goes_on = self.state == CallState::Authorized && (by_a_person || self.sent);
        goes_on || self.is_approved()
    }
}

/// The call that an event lets continue because a person consented.
fn consent(event: &Event) -> Option<&CallId> {
    if let Event::ApprovalDecided { call, .. } | Event::InputGiven { call, .. } = event { Some(call) } else { None }
}

/// The call of a consent, or of an event that follows an unused one: that the consent still holds, or an extended
/// deadline.
fn depends_on_consent(event: &Event) -> Option<&CallId> {
    if let Event::CallChecked { call, verdict: CallVerdict::Run { by: Authorization::HumanApproval }, .. } = event {
        return Some(call);
    }
    extended(event).or_else(|| consent(event))
}

/// The call whose deadline an event extends.
fn extended(event: &Event) -> Option<&CallId> {
    if let Event::Extended { call, .. } = event { Some(call) } else { None }
}

/// The call about which an event asks a person.
fn question(event: &Event) -> Option<&CallId> {
    if let Event::CallChecked { call, verdict: CallVerdict::Ask { .. }, .. } = event { Some(call) } else { None }
}
