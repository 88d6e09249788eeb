//! The next step of a run: a pure function of the state. The driver executes it; an embedder may do so itself.

use super::fallback::OUT_OF_ROOM;
use super::state::{Correction, Phase};
use super::turn::{Call, CallState, Turn};
use super::{
    CallVerdict, Ending, Event, OnDeny, OnUnknownOutcome, Output, PendingItem, Rejection, Run, Step, ToolAccess,
};
use crate::chat::Stop;
use crate::error::{ErrorCode, Failure};
use crate::id::CallId;
use crate::policy::Verdict;
use crate::tool::{Outcome, ToolName, top_tier};

/// The number of denials of the same call after which it is denied without asking again in this run.
const DENIALS_THAT_SETTLE: u32 = 2;

/// The number of consecutive attempts at a model that ended with their process, after which the run ends.
const VANISHED_IN_A_ROW: u32 = 20;

impl Run {
    /// The next step.
    pub fn next(&self) -> Step {
        if let Some(ending) = self.overdue_ending() {
            return Step::Record(vec![self.ending_event(ending)]);
        }
        if self.pause().is_some() && self.ending().is_none() {
            return Step::Wait(self.pending_items());
        }
        if let Some(step) = self.compaction_step() {
            return step;
        }
        match &self.phase {
            Phase::Ready { resolved } => self.next_turn(*resolved),
            Phase::Asking(attempts) => {
                Step::CallModel { attempt: attempts.count + 1, tool_access: attempts.tool_access, after: None }
            }
            Phase::Compacting(compacting) => self.compact_again(compacting),
            Phase::Retrying { attempts, error } => {
                let after = self.asked_again().map(|_| error.clone());
                Step::CallModel { attempt: attempts.count + 1, tool_access: attempts.tool_access, after }
            }
            Phase::Validating { answer, stop, tool_access } => self.next_after_answer(answer, *stop, *tool_access),
            Phase::Accepted { output } => {
                Step::Record(vec![Event::Ended { ending: Ending::Completed { output: output.clone() } }])
            }
            Phase::Working { turn, tool_access } => self.next_in_turn(turn, *tool_access),
            Phase::Ended(ending) => Step::Done(ending.clone()),
        }
    }

    /// Whether the model may call tools in the next turn.
    pub(super) fn tool_access(&self) -> ToolAccess {
        if self.exceeded_limit().is_some() {
            ToolAccess::FinalAnswer
        } else if self.stopped {
            ToolAccess::Stopped
        } else if self.budget.is_exhausted() {
            ToolAccess::BudgetExhausted
        } else {
            ToolAccess::Enabled
        }
    }

    /// A failure that already follows from the journal and only has to be recorded.
    fn overdue_ending(&self) -> Option<Ending> {
        let failed = |code, message: String| Some(Ending::Failed { error: Failure::new(code, message) });
        match &self.phase {
            Phase::Ended(_) => None,
            _ if self.is_compensating() => self.compensated_ending(),
            _ if self.denied.is_some() && self.started.spec.rules.on_deny == OnDeny::Fail => {
                failed(ErrorCode::ToolDenied, self.denied.clone().unwrap_or_default())
            }
            _ if let Some(error) = self.missing_server.as_ref().or(self.tool_error.as_ref()) => {
                Some(Ending::Failed { error: error.clone() })
            }
            _ if self.compacts_instead_of_ending() => None,
            Phase::Retrying { .. } if let Some(ending) = self.failed_last_word() => Some(ending),
            Phase::Retrying { error, .. } => self.last_failure(error).map(|error| Ending::Failed { error }),
            Phase::Asking(attempts) if attempts.unanswered >= VANISHED_IN_A_ROW => failed(
                ErrorCode::Internal,
                format!(
                    "model `{}` was called, and toolgate stopped before there was an answer, {} times in a row; the \
                     run is not resumed, because it may be the cause",
                    attempts.model, attempts.unanswered
                ),
            ),
            Phase::Ready { .. } if self.last_word.is_some() => {
                let limit = self.exceeded_limit()?;
                Some(Ending::Incomplete { limit, output: self.last_word.clone().filter(|words| !words.is_empty()) })
            }
            Phase::Ready { .. } if self.budget.corrections > self.budget.limits.max_corrections => {
                let times = self.budget.corrections;
                match self.correction {
                    Some(Correction::Answer | Correction::EmptyAnswer) => failed(
                        ErrorCode::Validation,
                        format!("the model's answer was invalid {times} times in a row; see `validation.failed`"),
                    ),
                    Some(Correction::Calls) | None => failed(
                        ErrorCode::ToolFailed,
                        format!("the model made only unusable tool calls {times} times in a row; see `tool.rejected`"),
                    ),
                }
            }
            Phase::Ready { .. }
            | Phase::Asking(_)
            | Phase::Compacting(_)
            | Phase::Validating { .. }
            | Phase::Accepted { .. }
            | Phase::Working { .. } => None,
        }
    }

    fn next_turn(&self, resolved: bool) -> Step {
        let Some(tools) = &self.tools else { return Step::ListTools };
        if let Some(step) = self.limit_step() {
            return step;
        }
        let tool_access = self.tool_access();
        if !resolved && tool_access == ToolAccess::Enabled {
            let guarded = tools.iter().filter(|tool| tool.verdict == Verdict::Ask);
            let guarded: Vec<ToolName> = guarded.map(|tool| tool.name.clone()).collect();
            if !guarded.is_empty() {
                return Step::ResolveApprovals(guarded);
            }
        }
        Step::CallModel { attempt: 1, tool_access, after: None }
    }

    /// Whether an answer to such a call ends the run at its limit. A limit that was raised while the model answered is no
    /// longer exceeded, and the answer is then one like any other.
    pub(super) fn is_last_word(&self, tool_access: ToolAccess) -> bool {
        tool_access == ToolAccess::FinalAnswer && self.exceeded_limit().is_some()
    }

    fn next_after_answer(&self, answer: &Output, stop: Stop, tool_access: ToolAccess) -> Step {
        let failed = |code, message: &str| Ending::Failed { error: Failure::new(code, message) };
        let ending = match stop {
            Stop::ContentFilter => {
                failed(ErrorCode::ContentFilter, "the provider's content filter withheld the answer")
            }
            Stop::Refusal => failed(ErrorCode::ModelRefused, "the model declined to answer"),
            Stop::ContextWindow => failed(ErrorCode::ContextWindow, OUT_OF_ROOM),
            Stop::MaxTokens if !self.is_last_word(tool_access) => failed(
                ErrorCode::OutputTruncated,
                "the answer was cut off at the model's output limit; raise `max_tokens`",
            ),
            Stop::End | Stop::ToolCalls | Stop::Pause | Stop::Unknown | Stop::MaxTokens => {
                match (tool_access, self.exceeded_limit()) {
                    (ToolAccess::FinalAnswer, Some(limit)) => {
                        Ending::Incomplete { limit, output: Some(answer.clone()).filter(|answer| !answer.is_empty()) }
                    }
                    _ if self.started.spec.rules.validate_output => return Step::ValidateOutput(answer.text.clone()),
                    _ if let Some(correction) = self.empty_answer_correction(answer) => {
                        return Step::Record(vec![correction]);
                    }
                    _ => Ending::Completed { output: answer.clone() },
                }
            }
        };
        Step::Record(vec![self.ending_event(ending)])
    }

    fn next_in_turn(&self, turn: &Turn, tool_access: ToolAccess) -> Step {
        let ids = |wanted: fn(&CallState) -> bool| -> Vec<CallId> {
            calls_in(turn, wanted).map(|call| call.requested.id.clone()).collect()
        };
        if let Some(refused) = self.refused_undos() {
            return refused;
        }
        let untouched = ids(|state| matches!(state, CallState::New));
        let active = turn.calls.iter().any(|call| !call.is_settled() && call.state != CallState::New);
        if !untouched.is_empty() && !active {
            return Step::Record(Self::sort_out(turn, tool_access));
        }
        let doubts = self.settle_doubts(turn);
        if !doubts.is_empty() {
            return Step::Record(doubts);
        }
        let is_unchecked = |call: &&Call| call.state == CallState::Selected || call.is_doubtful();
        let unchecked: Vec<CallId> =
            turn.calls.iter().filter(is_unchecked).map(|call| call.requested.id.clone()).collect();
        if !unchecked.is_empty() {
            let settled = self.settle_repeated_denials(turn);
            return if settled.is_empty() { Step::CheckCalls(unchecked) } else { Step::Record(settled) };
        }
        let ready: Vec<&Call> =
            turn.calls.iter().filter(|call| Self::may_be_sent(call) && self.is_its_turn(call)).collect();
        if !ready.is_empty() {
            return self.run_within_budget(&ready);
        }
        Step::Wait(turn.calls.iter().filter_map(PendingItem::new).collect())
    }

    /// Rejects calls that cannot be run at all and selects the highest tier of the others.
    fn sort_out(turn: &Turn, tool_access: ToolAccess) -> Vec<Event> {
        let mut events = Vec::new();
        let mut runnable = Vec::new();
        for call in calls_in(turn, |state| matches!(state, CallState::New)) {
            let id = call.requested.id.clone();
            match &call.tool {
                _ if tool_access != ToolAccess::Enabled => events.push(reject(
                    id,
                    Rejection::Budget,
                    "Not run: the tool budget of this run is used up. Answer with what you have.".into(),
                )),
                None => events.push(reject(
                    id,
                    Rejection::Unknown,
                    format!("Tool does not exist: `{}`. Call one of the tools you were given.", call.requested.name),
                )),
                Some(tool) => runnable.push((id, tool.priority)),
            }
        }
        if let Some(tier) = top_tier(&runnable) {
            events.push(Event::TierSelected { priority: tier.priority, run: tier.run, deferred: tier.deferred });
        }
        events
    }

    /// Law 4: a call that was started and never settled is not silently repeated. Its outcome is reported as unknown,
    /// or it is checked like any other call and requires approval. A task at its server is not in doubt: the server is
    /// asked for its state.
    fn settle_doubts(&self, turn: &Turn) -> Vec<Event> {
        let started = turn.calls.iter().filter(|call| call.is_in_doubt());
        started
            .filter_map(|call| match (call.task(), self.started.spec.rules.on_unknown_outcome) {
                (Some(task), _) => {
                    let (call, task) = (call.requested.id.clone(), task.clone().into());
                    Some(Event::TaskStarted { call, task, wire: None })
                }
                (None, OnUnknownOutcome::Report) if call.is_doubtful() => Some(Event::CallCompleted {
                    call: call.requested.id.clone(),
                    outcome: Outcome::Unknown.into(),
                    stderr: Vec::new(),
                    wire: None,
                }),
                (None, OnUnknownOutcome::Report | OnUnknownOutcome::Ask) => None,
            })
            .collect()
    }

    fn settle_repeated_denials(&self, turn: &Turn) -> Vec<Event> {
        let unchecked = calls_in(turn, |state| *state == CallState::Selected);
        let unchecked = unchecked.filter(|call| !call.sent && !call.is_approved());
        let denied = |call: &&Call| self.denials.get(&Self::denial_key(call)).copied().unwrap_or(0);
        unchecked
            .filter(|call| denied(call) >= DENIALS_THAT_SETTLE)
            .map(|call| {
                let message = "Denied: this very call was denied before in this run, and is not asked about again. \
                               Continue without it.";
                reject(call.requested.id.clone(), Rejection::Denied, message.into())
            })
            .collect()
    }

    fn may_be_sent(call: &Call) -> bool {
        call.is_sent_by_us() && (call.state == CallState::Authorized || call.is_repeated_freely())
    }

    /// The calls that may start while others of their tier are in progress: those that were approved meanwhile, or waited
    /// for one that changes a file. None if the run may not make that many calls; the next step rejects the excess.
    pub fn startable_calls(&self) -> Vec<CallId> {
        let Phase::Working { turn, .. } = &self.phase else { return Vec::new() };
        if self.pause().is_some() || self.overdue_ending().is_some() || self.is_compensating() {
            return Vec::new();
        }
        let ready = calls_in(turn, |state| *state == CallState::Authorized).filter(|call| call.is_sent_by_us());
        let ready: Vec<&Call> = ready.collect();
        if ready.is_empty() || !self.beyond_budget(&ready).is_empty() {
            return Vec::new();
        }
        let started: Vec<&Call> = calls_in(turn, |state| *state == CallState::Started).collect();
        let both = [&started[..], &ready[..]].concat();
        call_ids(concurrent(&both).get(started.len()..).unwrap_or_default())
    }

    fn run_within_budget(&self, ready: &[&Call]) -> Step {
        let over = self.beyond_budget(ready);
        if over.is_empty() {
            return Step::RunTier(call_ids(concurrent(ready)));
        }
        let message = "Not run: this run may make no more calls to MCP servers (max_mcp_calls).";
        Step::Record(over.into_iter().map(|id| reject(id, Rejection::Budget, message.into())).collect())
    }

    /// The calls that the run may not make. Only first sends to servers count: a call that is made again was counted before.
    fn beyond_budget(&self, ready: &[&Call]) -> Vec<CallId> {
        let left = self.budget.mcp_calls_left().filter(|_| !self.is_compensating());
        let counted = ready.iter().copied().filter(|call| !call.sent && !call.is_builtin());
        call_ids(&counted.skip(left.map_or(usize::MAX, |left| left as usize)).collect::<Vec<_>>())
    }
}

/// The first of these calls, in their order, that may be in progress at the same time. A call that changes a file runs alone
/// (decision 0063).
fn concurrent<'a, 'turn>(calls: &'a [&'turn Call]) -> &'a [&'turn Call] {
    if calls.len() < 2 {
        return calls;
    }
    let alone = calls.iter().position(|call| call.changes_file());
    calls.split_at(alone.map_or(calls.len(), |at| at.max(1))).0
}

fn call_ids(calls: &[&Call]) -> Vec<CallId> {
    calls.iter().map(|call| call.requested.id.clone()).collect()
}

/// The calls of the open turn that are in this state.
fn calls_in(turn: &Turn, wanted: fn(&CallState) -> bool) -> impl Iterator<Item = &Call> {
    turn.calls.iter().filter(move |call| wanted(&call.state))
}

fn reject(call: CallId, reason: Rejection, message: String) -> Event {
    let verdict = CallVerdict::Rejected { reason, message, problems: Vec::new() };
    Event::CallChecked { call, verdict, advisory: Vec::new() }
}
