//! Effects of a hard limit on a run (`on_exceed`), and model calls that are not made because their worst case would
//! exceed one (FEATURES 3.11, 3.40, 3.42; decision 0042).

use std::sync::Arc;

use super::state::Phase;
use super::{
    Budget, CallEstimate, Channel, Ending, Event, InvalidEvent, Limit, Limits, OnExceed, Run, Step, ToolAccess,
};

impl Budget {
    /// The limit that a call of this size would exceed.
    fn limit_exceeded_by(&self, call: &CallEstimate) -> Option<Limit> {
        let tokens = call.input_tokens.saturating_add(call.output_tokens.unwrap_or(0));
        let tokens = self.usage.total_tokens().unwrap_or(0).saturating_add(tokens);
        let cost = call.cost_usd.map(|cost| cost + self.usage.cost_usd.unwrap_or_default());
        if self.limits.max_tokens.is_some_and(|max| tokens > max) {
            Some(Limit::Tokens)
        } else if self.limits.max_cost_usd.zip(cost).is_some_and(|(max, cost)| cost > max) {
            Some(Limit::Cost)
        } else {
            None
        }
    }

    /// How much of a limit is used, in words.
    fn describe(&self, limit: Limit) -> String {
        let (used, max) = match limit {
            Limit::Iterations => (self.iterations.to_string(), Some(self.limits.max_iterations.to_string())),
            Limit::Tokens => {
                (self.usage.total_tokens().unwrap_or(0).to_string(), self.limits.max_tokens.map(|max| max.to_string()))
            }
            Limit::Cost => (
                self.usage.cost_usd.unwrap_or_default().to_string(),
                self.limits.max_cost_usd.map(|max| max.to_string()),
            ),
            Limit::Governor => return "the governor refused the next model call".into(),
        };
        format!("`{}`: {used} of {} used", limit.name(), max.unwrap_or_default())
    }
}

impl Run {
    /// The hard limit that is in force now: one that is reached, or that the next model call would exceed.
    pub fn exceeded_limit(&self) -> Option<Limit> {
        let warns = self.started.spec.rules.on_exceed == OnExceed::Warn;
        let reached = || self.budget.limit_reached().filter(|limit| !warns || *limit == Limit::Iterations);
        self.refused.as_ref().map(|(limit, _)| *limit).or_else(reached)
    }

    /// The limit that a model call of this size would exceed, if the run keeps within its limits: with `fail` and `ask`.
    /// The last answer of `last_word` is beyond a limit in any case.
    pub fn limit_exceeded_by(&self, call: &CallEstimate) -> Option<Limit> {
        match self.started.spec.rules.on_exceed {
            OnExceed::Fail | OnExceed::Ask => self.budget.limit_exceeded_by(call),
            OnExceed::LastWord | OnExceed::Warn => None,
        }
    }

    /// Whether the size of the next model call is to be estimated.
    pub fn estimates_calls(&self) -> bool {
        let limits = &self.budget.limits;
        let is_bounded = limits.max_tokens.is_some() || limits.max_cost_usd.is_some();
        is_bounded && matches!(self.started.spec.rules.on_exceed, OnExceed::Fail | OnExceed::Ask)
    }

    /// The step at a hard limit that is not a last answer.
    pub(super) fn limit_step(&self) -> Option<Step> {
        let limit = self.exceeded_limit()?;
        let event = match self.started.spec.rules.on_exceed {
            OnExceed::Fail => Event::Ended { ending: Ending::Incomplete { limit, output: None } },
            OnExceed::Ask if !self.answers_at_limit => {
                let what = match &self.refused {
                    Some((_, reason)) => reason.clone(),
                    None => self.budget.describe(limit),
                };
                let reason = Some(format!("{what}; continue with a higher limit, or without one for a last answer"));
                Event::Paused { by: "toolgate".into(), via: Channel::Limit, reason }
            }
            OnExceed::LastWord | OnExceed::Ask | OnExceed::Warn => return None,
        };
        Some(Step::Record(vec![event]))
    }

    pub(super) fn admit_refused_call(&self) -> Result<(), InvalidEvent> {
        let event = "llm.call.refused";
        let tool_access = match &self.phase {
            Phase::Ready { .. } => self.tool_access(),
            Phase::Asking(attempts) | Phase::Retrying { attempts, .. } => attempts.tool_access,
            Phase::Compacting(_)
            | Phase::Validating { .. }
            | Phase::Accepted { .. }
            | Phase::Working { .. }
            | Phase::Ended(_) => return Err(InvalidEvent::OutOfPlace { event, phase: self.phase.describe() }),
        };
        match tool_access {
            ToolAccess::FinalAnswer => {
                Err(InvalidEvent::Contradiction { event, why: "a last answer is beyond the limit in any case" })
            }
            ToolAccess::Enabled | ToolAccess::BudgetExhausted | ToolAccess::Stopped => Ok(()),
        }
    }

    pub(super) fn call_refused(&mut self, limit: Limit, reason: &str) {
        self.refused = Some((limit, reason.to_owned()));
        self.phase = Phase::Ready { resolved: false };
    }

    /// The fold of the end of a pause, which may set other limits. A pause at a limit that stays is followed by a last answer.
    pub(super) fn continue_within(&mut self, limits: Option<&Limits>) {
        let was_at_limit = self.pause().is_some_and(|pause| pause.via == Channel::Limit);
        match limits {
            Some(limits) => {
                self.budget.limits = limits.clone();
                // The deadline, attempts and sizes of results are read from the specification.
                Arc::make_mut(&mut self.started).spec.limits = limits.clone();
                self.refused = None;
                self.answers_at_limit = false;
            }
            None => self.answers_at_limit |= was_at_limit,
        }
    }

    /// Whether a failed attempt at a turn leads to a hard limit, so that the turn begins again there.
    pub(super) fn stops_retrying(&self, tool_access: ToolAccess) -> bool {
        tool_access != ToolAccess::FinalAnswer && self.exceeded_limit().is_some()
    }

    /// The ending after an attempt at a last answer that cost something and failed.
    pub(super) fn failed_last_word(&self) -> Option<Ending> {
        let Phase::Retrying { attempts, .. } = &self.phase else { return None };
        let limit = self.exceeded_limit().filter(|limit| matches!(limit, Limit::Tokens | Limit::Cost))?;
        let is_over = attempts.tool_access == ToolAccess::FinalAnswer && attempts.was_charged;
        is_over.then_some(Ending::Incomplete { limit, output: None })
    }
}
