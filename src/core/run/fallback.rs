//! Model fallback: which model of a run is called next. A run has a preferred model and may have fallback models, in
//! order; this tracks the attempts at each.
//!
//! A model is retried while it has attempts left and its failure is transient. After that it is not called again in
//! this turn, and later turns skip it until its cooldown is over, unless no other model is available. Only failures of
//! a model or of its provider trigger a fallback. A refusal for content reasons ends the run: the request is not sent
//! to another model.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::attempts::Attempts;
use super::limits::LONGEST_RETRY_AFTER_MS;
use super::spending::is_charged;
use super::state::Phase;
use super::{Event, Run, Spec, ToolAccess};
use crate::chat::{Reply, Stop, Usage};
use crate::error::{ErrorCode, Failure};
use crate::id::ModelName;

/// The message for a reply that reached the end of the model's context window.
pub(super) const OUT_OF_ROOM: &str =
    "the answer was cut off because the conversation no longer fits the model's context window";

impl Spec {
    /// The models of the run, the preferred one first.
    pub fn models(&self) -> impl Iterator<Item = &ModelName> {
        [&self.model].into_iter().chain(self.fallback.iter().map(|candidate| &candidate.model))
    }

    /// Attempts at a model in one turn.
    fn attempts(&self, model: &ModelName) -> u32 {
        let candidate = self.fallback.iter().find(|candidate| candidate.model == *model);
        candidate.and_then(|candidate| candidate.attempts).unwrap_or(self.limits.max_attempts).max(1)
    }
}

impl Run {
    /// The model to call at that time.
    pub fn candidate(&self, now: Timestamp) -> &ModelName {
        if let Some(again) = self.asked_again() {
            return again;
        }
        let is_cooling = |model: &&ModelName| self.cooling.get(*model).is_some_and(|until| now < *until);
        let free = self.open_candidates().find(|model| !is_cooling(model));
        free.or_else(|| self.open_candidates().next()).unwrap_or(&self.started.spec.model)
    }

    /// The number of calls of a model in the current turn.
    pub fn attempts_at(&self, model: &ModelName) -> u32 {
        self.attempts().and_then(|attempts| attempts.tried.get(model)).map_or(0, |tried| tried.attempts)
    }

    /// The model of the current or latest attempt in the current turn.
    pub fn model_asked(&self) -> Option<&ModelName> {
        self.attempts().map(|attempts| &attempts.model)
    }

    /// Whether a model was called and has not replied.
    pub fn is_asking(&self) -> bool {
        matches!(self.phase, Phase::Asking(_))
    }

    /// The event for a failure of the current model at that time, including its cooldown.
    pub fn model_failed(&self, error: Failure, usage: Usage, now: Timestamp) -> Event {
        // In the fact, so that no fold needs the time at which it was recorded (decision 0006).
        let cooldown_until = self.triggers_fallback(&error).then(|| {
            let theirs = SignedDuration::from_millis(error.retry_after_ms.unwrap_or(0).try_into().unwrap_or(i64::MAX));
            let ours = SignedDuration::from_secs(self.started.spec.cooldown_s.try_into().unwrap_or(i64::MAX));
            now.checked_add(ours.max(theirs)).unwrap_or(Timestamp::MAX)
        });
        Event::ModelFailed { error, usage, cooldown_until }
    }

    /// The failure that corresponds to a reply of the current model that was cut off for lack of context, if another
    /// model may have more, or a compaction may make room.
    pub fn out_of_room(&self, reply: &Reply) -> Option<Failure> {
        let is_cut = reply.stop == Stop::ContextWindow && reply.calls().next().is_none();
        let failure = Failure::new(ErrorCode::ContextWindow, OUT_OF_ROOM);
        let has_others = self.open_candidates().any(|model| Some(model) != self.model_asked());
        (is_cut && (has_others || self.compacts_after(&failure))).then_some(failure)
    }

    /// Whether such a failure of the current model triggers a fallback to the other models.
    pub(super) fn triggers_fallback(&self, error: &Failure) -> bool {
        !self.started.spec.fallback.is_empty()
            && triggers_fallback(error.code)
            && !self.may_retry(error)
            && !self.compacts_after(error)
    }

    /// Whether a model may be called now. A journal may contain a call of a model during its cooldown: time is up to
    /// the driver.
    pub(super) fn may_ask(&self, model: &ModelName) -> bool {
        match (self.asked_again(), &self.phase) {
            (Some(again), _) => again == model,
            (None, Phase::Retrying { error, .. }) if !triggers_fallback(error.code) => false,
            (None, _) => self.open_candidates().any(|open| open == model),
        }
    }

    /// The model to retry, unless the turn begins or the next model is to be called.
    pub(super) fn asked_again(&self) -> Option<&ModelName> {
        let attempts = self.attempts()?;
        let model = &attempts.model;
        let again = match self.is_asking() {
            // The outcome of the attempt is unknown. It counts as long as another model is available.
            true => self.is_open(model) || self.open_candidates().next().is_none(),
            false => !attempts.tried.get(model).is_some_and(|tried| tried.is_exhausted),
        };
        again.then_some(model)
    }

    /// The failure that ends a turn, if no further attempt is possible.
    pub(super) fn last_failure(&self, error: &Failure) -> Option<Failure> {
        let attempts = self.attempts().filter(|_| self.asked_again().is_none())?;
        if triggers_fallback(error.code) && self.open_candidates().next().is_some() {
            return None;
        }
        let message = match attempts.tried.len() {
            0 | 1 => error.message.clone(),
            models => format!("{} (this is the last failure; {models} models were tried)", error.message),
        };
        Some(Failure { message, ..error.clone() })
    }

    pub(super) fn attempts(&self) -> Option<&Attempts> {
        let (Phase::Asking(attempts) | Phase::Retrying { attempts, .. }) = &self.phase else { return None };
        Some(attempts)
    }

    /// Whether the current model is retried after such a failure.
    fn may_retry(&self, error: &Failure) -> bool {
        let asks_too_much = error.retry_after_ms.is_some_and(|wait| wait > LONGEST_RETRY_AFTER_MS);
        error.retryable && !asks_too_much && self.model_asked().is_some_and(|model| self.is_open(model))
    }

    /// The models that may still be called in this turn.
    fn open_candidates(&self) -> impl Iterator<Item = &ModelName> {
        self.started.spec.models().filter(|model| self.is_open(model))
    }

    fn is_open(&self, model: &ModelName) -> bool {
        let tried = self.attempts().and_then(|attempts| attempts.tried.get(model)).copied().unwrap_or_default();
        !tried.is_exhausted && tried.attempts < self.started.spec.attempts(model)
    }

    /// Records an attempt: the fold of `llm.call.started`.
    pub(super) fn model_called(&mut self, model: &ModelName, tool_access: ToolAccess) {
        let (execution, position) = (self.execution.0, self.length);
        let mut attempts = match std::mem::replace(&mut self.phase, Phase::Ready { resolved: false }) {
            Phase::Asking(attempts) => Attempts { unanswered: attempts.unanswered + 1, ..attempts },
            Phase::Retrying { attempts, .. } => Attempts { unanswered: 1, ..attempts },
            Phase::Ready { .. }
            | Phase::Compacting(_)
            | Phase::Validating { .. }
            | Phase::Accepted { .. }
            | Phase::Working { .. }
            | Phase::Ended(_) => Attempts {
                tool_access,
                count: 0,
                model: model.clone(),
                first: position,
                latest: position,
                unanswered: 1,
                was_charged: false,
                tried: BTreeMap::new(),
            },
        };
        if attempts.model != *model || attempts.first <= execution {
            attempts.first = position;
            attempts.model = model.clone();
        }
        attempts.latest = position;
        attempts.count += 1;
        attempts.tried.entry(model.clone()).or_default().attempts += 1;
        self.phase = Phase::Asking(attempts);
    }

    /// Records a failed attempt: the fold of `llm.call.failed`.
    pub(super) fn stumbled(&mut self, error: &Failure, usage: &Usage, cooldown_until: Option<Timestamp>) {
        self.budget.usage.add(usage);
        let is_exhausted = !self.may_retry(error);
        let phase = std::mem::replace(&mut self.phase, Phase::Ready { resolved: false });
        let Phase::Asking(mut attempts) = phase else {
            self.phase = phase;
            return;
        };
        attempts.tried.entry(attempts.model.clone()).or_default().is_exhausted = is_exhausted;
        self.cooling.extend(cooldown_until.map(|until| (attempts.model.clone(), until)));
        attempts.was_charged |= is_charged(usage);
        if !self.stops_retrying(attempts.tool_access) {
            self.phase = Phase::Retrying { attempts, error: error.clone() };
        }
    }
}

/// Whether a failure belongs to the model or its provider, so that another model may succeed.
fn triggers_fallback(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::ProviderAuth
            | ErrorCode::ProviderBilling
            | ErrorCode::ProviderRateLimit
            | ErrorCode::ProviderUnavailable
            | ErrorCode::ProviderTimeout
            | ErrorCode::ProviderRejected
            | ErrorCode::ProviderInvalidResponse
            | ErrorCode::ContextWindow
            | ErrorCode::Configuration
            | ErrorCode::Internal
    )
}
