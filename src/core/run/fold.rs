//! The fold: how each event changes the state. Each change is small; history is appended to, never rebuilt.

use std::slice;
use std::sync::Arc;

use jiff::Timestamp;

use super::empty_answer::CONTINUE_NOTE;
use super::pause::Pauses;
use super::state::{Correction, Phase, Run};
use super::stop_conditions::StopVerdict;
use super::turn::{AnsweredElicitation, Call, CallState, HeldElicitation, Settlement, Turn};
use super::{
    Authorization, Budget, CallAuthorization, CallVerdict, Deadline, Decision, DecisionKind, ElicitationAnswer, Ending,
    Event, HumanAnswer, InvalidEvent, JournalEntry, Output, OutputVerdict, Rejection, Started, ToolAccess,
};
use crate::chat::{Message, Part, Reply, Role, Stop};
use crate::id::CallId;
use crate::tool::{Outcome, Problem, TierMode, ToolOutput};

/// The headline of the problems of an answer.
const INVALID_ANSWER_NOTE: &str = "Your answer is not valid. Fix the problems below and answer again:";

/// The note to the model that its tool budget is used up.
pub(super) const BUDGET_NOTE: &str =
    "[toolgate] The tool budget of this run is used up: no more tools will be run. Answer now with what you have.";

impl Run {
    /// The state of a run whose journal is this one event.
    pub fn begin(started: Arc<Started>) -> Self {
        let mut run = Self {
            length: 1,
            began: None,
            clock: None,
            execution: (0, started.trace.clone()),
            tools: None,
            shown_tools: Arc::default(),
            pins: Default::default(),
            granted: Arc::default(),
            transcript: Vec::new(),
            inbox: Vec::new(),
            unanswered: Vec::new(),
            budget: Budget { limits: started.spec.limits.clone(), ..Budget::default() },
            correction: None,
            calls_seen: started.history.iter().flat_map(call_ids).collect(),
            external_results: Default::default(),
            decisions: Default::default(),
            expired: Default::default(),
            question_answers: Default::default(),
            inputs_given: Default::default(),
            blobs: Default::default(),
            has_cut_results: false,
            denials: Default::default(),
            denied: None,
            missing_server: None,
            tool_error: None,
            cooling: Default::default(),
            last_word: None,
            stopped: false,
            exhaustion_noted: false,
            refused: None,
            answers_at_limit: false,
            pauses: Pauses::default(),
            replies: Default::default(),
            compactions: Default::default(),
            compensating: Default::default(),
            phase: Phase::Ready { resolved: false },
            started,
        };
        let started = run.started.clone();
        if let Some(prior) = started.prior_conversation() {
            run.begin_after(prior);
            run.calls_seen.extend(prior.messages.iter().flat_map(|message| call_ids(message)));
            run.blobs.clone_from(&prior.blobs);
            run.has_cut_results = prior.has_cut_results;
        }
        run.blobs.extend(&started.files);
        for message in &started.history {
            match message.role {
                Role::User => run.hear(message.clone()),
                Role::Assistant => run.say(message.clone()),
            }
        }
        run.hear(started.input.clone());
        run
    }

    /// The state after a whole journal. `Ok(None)` for an empty one.
    pub fn replay<'a>(events: impl IntoIterator<Item = &'a Event>) -> Result<Option<Self>, InvalidEvent> {
        let mut events = events.into_iter();
        let Some(first) = events.next() else { return Ok(None) };
        let Event::Started(started) = first else {
            return Err(InvalidEvent::NotTheBeginning { event: first.name(), seq: 0 });
        };
        let mut run = Self::begin(started.clone());
        for event in events {
            run.apply(event)?;
        }
        Ok(Some(run))
    }

    /// The state after a whole journal, with the times of its events. `Ok(None)` for an empty one.
    pub fn replay_recorded<'a>(
        events: impl IntoIterator<Item = &'a JournalEntry>,
    ) -> Result<Option<Self>, InvalidEvent> {
        let mut events = events.into_iter();
        let Some(first) = events.next() else { return Ok(None) };
        let Some(mut run) = Self::replay([&first.event])? else { return Ok(None) };
        (run.began, run.clock) = (Some(first.at), Some(first.at));
        for recorded in events {
            run.apply_at(&recorded.event, recorded.at)?;
        }
        Ok(Some(run))
    }

    /// Appends an event that was written at that time. A refused event changes nothing.
    pub fn apply_at(&mut self, event: &Event, at: Timestamp) -> Result<(), InvalidEvent> {
        let before = self.clock.replace(at);
        self.apply(event).inspect_err(|_| self.clock = before)
    }

    /// Appends an event at the time of the one before. A refused event changes nothing.
    pub fn apply(&mut self, event: &Event) -> Result<(), InvalidEvent> {
        self.admit(event)?;
        match event {
            Event::Started(_) | Event::Queued | Event::Admitted | Event::Waited { .. } | Event::Interrupted { .. } => {}
            Event::Resumed { trace, limits } => {
                self.execution = (self.length, trace.clone());
                if let Some(limits) = limits {
                    self.begin_fork(limits);
                }
            }
            Event::ToolsListed { toolset } => {
                self.pin(toolset);
                self.note_missing_server(toolset);
                self.tools = Some(toolset.clone());
                // The grants are for the tool of that name as it was defined then.
                self.granted = Arc::default();
                self.shown_tools = toolset.shown(|_| false);
                self.phase = Phase::Ready { resolved: false };
            }
            Event::ApprovalsResolved { granted } => {
                self.granted.clone_from(granted);
                self.show_granted_tools();
                self.phase = Phase::Ready { resolved: true };
            }
            Event::ModelCalled { model, tool_access, .. } => self.model_called(model, *tool_access),
            Event::ModelCallRefused { limit, reason, .. } => self.call_refused(*limit, reason),
            Event::ModelReplied { reply } => {
                self.replied(reply);
                self.measure(&reply.usage);
            }
            Event::ModelFailed { error, usage, cooldown_until } => self.stumbled(error, usage, *cooldown_until),
            Event::OutputValidated { verdict } => self.validated(verdict),
            Event::TierSelected { run, deferred, .. } => self.tier_selected(run, deferred),
            Event::CallChecked { call, verdict, advisory } => self.checked(call, verdict, advisory),
            Event::ApprovalDecided { call, decision } => self.decided(call, decision),
            Event::CallDrifted { call, differences, tool } => self.drifted(call, differences, tool.as_ref()),
            Event::Extended { call, until, .. } => {
                if let Some(call) = self.open_call(call) {
                    call.deadline.extended = Some(*until);
                }
            }
            Event::Expired { call } => self.expired(call),
            Event::QuestionAnswered { call, answer } => self.question_answered(call, answer),
            Event::CallsStarted { calls } => self.sent(calls),
            Event::CallCompleted { call, outcome, .. } => self.completed(call, outcome),
            Event::InputRequested { call, needed, until } => {
                if let Some(call) = self.open_call(call) {
                    call.held = Some(HeldElicitation { needed: needed.clone(), until: *until, answer: None });
                }
            }
            Event::InputRequired { call, needed, .. } => {
                self.settle_each(slice::from_ref(call), || CallState::NeedsInput(needed.clone()))
            }
            Event::InputGiven { call, given } => self.answered(call, given),
            Event::TaskStarted { call, task, .. } => {
                self.settle_each(slice::from_ref(call), || CallState::Task(task.clone()))
            }
            Event::CompactionStarted { attempt, keeps, .. } => self.compaction_started(*attempt, *keeps),
            Event::CompactionCompleted { summary, usage, model } => self.compaction_completed(summary, usage, model),
            Event::CompactionFailed { error, usage } => self.compaction_failed(error, usage),
            Event::MessageAdded { message } => self.record_message(message),
            Event::Paused { by, via, reason } => self.paused(by, *via, reason.as_ref()),
            Event::Unpaused { limits, .. } => {
                self.continue_within(limits.as_deref());
                self.unpaused();
            }
            Event::CompensationStarted { ending, undo } => self.compensation_started(ending, undo),
            Event::Ended { ending } => self.ended(ending),
        }
        self.note_intent(event);
        self.length += 1;
        self.close_turn_if_settled();
        self.start_deadlines();
        Ok(())
    }

    fn replied(&mut self, reply: &Reply) {
        let Phase::Asking(attempts) = &self.phase else { return };
        let tool_access = attempts.tool_access;
        self.cooling.remove(&attempts.model);
        self.replies.note(&attempts.model, &reply.joined_text());
        self.budget.iterations += 1;
        self.budget.usage.add(&reply.usage);
        let message = Message {
            role: Role::Assistant,
            content: reply.content.clone(),
            provider_state: reply.provider_state.clone(),
        };
        self.blobs.extend(message.blobs());
        let calls: Vec<Call> = reply.calls().map(|requested| self.new_call(requested)).collect();
        if !calls.is_empty() {
            self.budget.tool_interactions += 1;
            self.last_word = (tool_access == ToolAccess::FinalAnswer).then(|| Output::from_parts(&message.content));
            self.phase = Phase::Working { turn: Turn { assistant: message, calls, copied: false }, tool_access };
            return;
        }
        let answer = Output::from_parts(&message.content);
        self.say(message);
        let goes_on = reply.stop == Stop::Pause || !self.inbox.is_empty();
        if goes_on && tool_access != ToolAccess::FinalAnswer {
            self.deliver_inbox();
            self.phase = Phase::Ready { resolved: reply.stop == Stop::Pause };
        } else {
            self.phase = Phase::Validating { answer, stop: reply.stop, tool_access };
        }
    }

    pub(super) fn new_call(&mut self, requested: crate::tool::ToolCall) -> Call {
        self.calls_seen.insert(requested.id.clone());
        let tool = self.tools.as_ref().and_then(|tools| tools.get(&requested.name)).cloned();
        Call {
            requested,
            tool,
            advisory: Vec::new(),
            edited: None,
            answered: None,
            held: None,
            round: 0,
            sent: false,
            sent_by_source: false,
            authorization: None,
            approved_at: None,
            drift: Vec::new(),
            deadline: Deadline::default(),
            state: CallState::New,
        }
    }

    fn validated(&mut self, verdict: &OutputVerdict) {
        match (verdict, &mut self.phase) {
            (OutputVerdict::Valid { value }, Phase::Validating { answer, .. }) => {
                let output = Output { value: value.clone(), ..std::mem::take(answer) };
                self.phase = Phase::Accepted { output };
            }
            (OutputVerdict::Invalid { problems }, _) => {
                self.budget.tool_interactions += 1;
                self.budget.corrections += 1;
                // Without a validator, only an empty answer is rejected.
                let (correction, note) = match self.started.spec.rules.validate_output {
                    true => (Correction::Answer, Problem::feedback(INVALID_ANSWER_NOTE, problems)),
                    false => (Correction::EmptyAnswer, CONTINUE_NOTE.to_owned()),
                };
                self.correction = Some(correction);
                self.say(Message::user(note));
                self.deliver_inbox();
                self.note_exhaustion();
                self.phase = Phase::Ready { resolved: false };
            }
            (OutputVerdict::Valid { .. }, _) => {}
        }
    }

    fn tier_selected(&mut self, run: &[CallId], deferred: &[CallId]) {
        let mode = self.started.spec.rules.tiers;
        self.settle_each(run, || CallState::Selected);
        if mode != TierMode::Sequential {
            let message = "deferred: calls of higher priority ran first; call again if still needed";
            self.settle_each(deferred, || rejected(Rejection::Deferred, message));
        }
    }

    fn settle_each(&mut self, ids: &[CallId], state: impl Fn() -> CallState) {
        let Some(turn) = self.phase.turn_mut() else { return };
        for call in turn.calls.iter_mut().filter(|call| ids.contains(&call.requested.id)) {
            call.state = state();
        }
    }

    fn checked(&mut self, id: &CallId, verdict: &CallVerdict, advisory: &[Problem]) {
        let event = self.length;
        let Some(call) = self.open_call(id) else { return };
        let outcome_unknown = call.sent;
        call.advisory = advisory.to_vec();
        call.deadline = Deadline::new(event, call.tool.as_ref().and_then(|tool| tool.deadline_s));
        call.state = match verdict {
            CallVerdict::Run { by } => {
                match by {
                    Authorization::Policy { .. } => call.authorization = Some(CallAuthorization::Policy),
                    Authorization::Grant { grant } => {
                        call.authorization = Some(CallAuthorization::Grant(grant.clone()))
                    }
                    // The decision is the authorization.
                    Authorization::HumanApproval => {}
                }
                CallState::Authorized
            }
            CallVerdict::Ask { rule, reason, policy, answer_timeout_s, on_timeout, may_be_denied } => {
                call.deadline = Deadline::new(event, *answer_timeout_s);
                let (rule, reason, policy) = (rule.clone(), reason.clone(), policy.clone());
                let (on_timeout, may_be_denied) = (*on_timeout, *may_be_denied);
                CallState::Asked { rule, reason, policy, outcome_unknown, on_timeout, may_be_denied }
            }
            CallVerdict::Rejected { reason, message, .. } => rejected(*reason, message),
        };
        if let CallVerdict::Rejected { reason: Rejection::Denied, message, .. } = verdict {
            self.denied = Some(message.clone());
        }
    }

    fn decided(&mut self, id: &CallId, decision: &Decision) {
        self.decisions.insert(id.clone(), decision.clone());
        let now = self.clock;
        let Some(call) = self.open_call(id) else { return };
        let outcome_unknown = matches!(call.state, CallState::Asked { outcome_unknown: true, .. });
        let key = Self::denial_key(call);
        let mut denied = None;
        call.state = match decision.answer {
            DecisionKind::Approve => {
                call.approved_at = now;
                if decision.edited_arguments.is_some() {
                    call.edited.clone_from(&decision.edited_arguments);
                }
                if let CallState::Asked { rule, reason, .. } = &call.state {
                    call.authorization =
                        Some(CallAuthorization::HumanApproval { rule: rule.clone(), reason: reason.clone() });
                }
                // The time for its answer is separate from the time for its approval.
                call.deadline = Deadline::new(call.deadline.event, call.tool.as_ref().and_then(|tool| tool.deadline_s));
                // A call that is sent is compared before it is sent, all others before they are handed over.
                if call.is_sent_by_us() { CallState::Authorized } else { CallState::Selected }
            }
            DecisionKind::Deny if outcome_unknown => CallState::Settled(Settlement::Completed(Outcome::Unknown.into())),
            DecisionKind::Deny => {
                let reason = decision.reason.as_deref().unwrap_or("no reason was given");
                let message = format!("Denied by {}: {reason}", decision.by);
                denied = Some(message.clone());
                rejected(Rejection::Denied, &message)
            }
        };
        if denied.is_some() {
            *self.denials.entry(key).or_default() += 1;
            self.denied = denied;
        }
    }

    fn expired(&mut self, id: &CallId) {
        self.expired.insert(id.clone());
        let Some(call) = self.open_call(id) else { return };
        let settlement = call.expired_settlement();
        call.state = CallState::Settled(settlement.clone());
        if let Settlement::Completed(outcome) = settlement {
            self.note_tool_error(id, &outcome);
        }
    }

    fn question_answered(&mut self, id: &CallId, answer: &HumanAnswer) {
        self.question_answers.insert(id.clone(), answer.clone());
        if let Some(call) = self.open_call(id) {
            let answered = Outcome::Returned(ToolOutput::text(answer.choice.to_words()));
            call.state = CallState::Settled(Settlement::Completed(answered.into()));
        }
    }

    fn sent(&mut self, calls: &[CallId]) {
        let Some(turn) = self.phase.turn_mut() else { return };
        for call in turn.calls.iter_mut().filter(|call| calls.contains(&call.requested.id)) {
            self.budget.mcp_calls = self.budget.mcp_calls.saturating_add(u32::from(!call.is_builtin()));
            call.sent = true;
            call.sent_by_source = false;
            // The differences were reviewed; otherwise the call would not be sent.
            call.drift.clear();
            call.held = None;
            call.state = CallState::Started;
        }
    }

    fn completed(&mut self, id: &CallId, outcome: &Arc<Outcome>) {
        self.blobs.extend(outcome.stored().iter().map(|stored| stored.handle));
        self.has_cut_results |= outcome.stored().iter().any(|stored| stored.form.is_cut());
        let Some(call) = self.open_call(id) else { return };
        call.state = CallState::Settled(Settlement::Completed(outcome.clone()));
        if call.is_external() {
            self.external_results.insert(id.clone(), outcome.clone());
        }
        self.note_tool_error(id, outcome);
        self.note_effect(id, outcome);
    }

    fn answered(&mut self, id: &CallId, given: &ElicitationAnswer) {
        self.inputs_given.insert(id.clone(), given.clone());
        let Some(call) = self.open_call(id) else { return };
        let Some(needed) = call.elicitation().cloned() else { return };
        if let (CallState::Started, Some(held)) = (&call.state, &mut call.held) {
            held.answer = Some(Arc::new(given.clone()));
            return;
        }
        call.answered = Some(AnsweredElicitation { needed: needed.clone(), given: Arc::new(given.clone()) });
        call.round += 1;
        call.state = match call.needs_consent_to_repeat(&needed) && !given.repeat {
            // Only refusals, and no consent to a second attempt: the effect of the first one stays unknown.
            true => CallState::Settled(Settlement::Completed(Outcome::Unknown.into())),
            false => CallState::Authorized,
        };
    }

    fn record_message(&mut self, message: &Message) {
        self.inbox.push(message.clone());
        match &self.phase {
            Phase::Ready { .. } => self.deliver_inbox(),
            Phase::Validating { tool_access: ToolAccess::FinalAnswer, .. } => {}
            Phase::Validating { .. } | Phase::Accepted { .. } => {
                self.deliver_inbox();
                self.phase = Phase::Ready { resolved: false };
            }
            Phase::Asking(_)
            | Phase::Compacting(_)
            | Phase::Retrying { .. }
            | Phase::Working { .. }
            | Phase::Ended(_) => {}
        }
    }

    fn ended(&mut self, ending: &Ending) {
        match self.is_compensating() {
            true => self.close_compensation(),
            false => self.abandon_turn(ending),
        }
        self.deliver_inbox();
        self.phase = Phase::Ended(ending.clone());
    }

    pub(super) fn open_call(&mut self, id: &CallId) -> Option<&mut Call> {
        self.phase.turn_mut()?.call_mut(id)
    }

    fn close_turn_if_settled(&mut self) {
        let Phase::Working { turn, .. } = &self.phase else { return };
        if !turn.is_settled() || self.is_compensating() {
            return;
        }
        let verdict = if self.last_word.is_none() { self.stop_verdict(turn) } else { StopVerdict::Continue };
        self.close_turn();
        self.deliver_inbox();
        if self.last_word.is_none() && matches!(verdict, StopVerdict::Continue) {
            self.note_exhaustion();
        }
        self.apply_stop_verdict(verdict);
    }

    /// Adds the turn's assistant message and its results to the transcript, together.
    pub(super) fn close_turn(&mut self) {
        let Phase::Working { turn, .. } = std::mem::replace(&mut self.phase, Phase::Ready { resolved: false }) else {
            return;
        };
        self.note_doubts(&turn);
        let mode = self.started.spec.rules.tiers;
        self.say(turn.assistant_message(mode));
        self.say(turn.results(mode));
        self.granted = Arc::default();
        self.correction = turn.is_useless().then_some(Correction::Calls);
        self.budget.corrections = if turn.is_useless() { self.budget.corrections + 1 } else { 0 };
    }

    fn note_exhaustion(&mut self) {
        if self.budget.is_exhausted() {
            self.exhaustion_noted = true;
            self.say(Message::user(BUDGET_NOTE));
        }
    }

    pub(super) fn deliver_inbox(&mut self) {
        for message in std::mem::take(&mut self.inbox) {
            self.hear(message);
        }
    }
}

fn rejected(reason: Rejection, message: &str) -> CallState {
    CallState::Settled(Settlement::Rejected { reason, message: message.to_owned() })
}

fn call_ids(message: &Message) -> impl Iterator<Item = CallId> {
    message.content.iter().filter_map(Part::tool_use).map(|(id, ..)| id.clone())
}
