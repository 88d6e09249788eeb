//! Compactions of a run: when one is due, what it replaces, and how its events change the state.
//!
//! Due between turns, at most once a turn, and once after the model reported that the conversation does not fit its
//! context window. The number of messages at the end that are kept is the fact that the fold uses: it is the same
//! whether the conversation before the run was read or not. Kept messages never begin with the results of calls, so no
//! call is separated from its result. People still read the replaced messages ([`Run::messages`], [`Segment`]).

use std::sync::Arc;

use jiff::Timestamp;

use super::compaction::{DEFAULT_KEEP_TOKENS, boundary, estimate, has_results, tail};
use super::fork::RENEWED_NOTE;
use super::state::{Compacting, Phase};
use super::transcript::say;
use super::{Ending, Event, InvalidEvent, Output, Run, Segment, Step};
use crate::chat::{Message, Part, Role, Usage};
use crate::error::{ErrorCode, Failure};
use crate::id::ModelName;
use crate::trace::SpanContext;

/// The text before a summary.
const FRAME: &str = "[toolgate] Summary of the earlier conversation, written by a model:";

/// The text before the user's latest message, if the summary replaces it.
const LATEST: &str = "[toolgate] The user's latest message, which the summary covers:";

/// The number of attempts of one compaction whose process stopped, after which the turn continues without it.
const MAX_VANISHED: u32 = 2;

impl Run {
    /// The conversation as people read it, without the open turn: with the messages that compactions replaced.
    pub fn conversation(&self) -> &[Arc<Message>] {
        self.compactions.conversation.as_deref().unwrap_or(&self.transcript)
    }

    /// The messages that a compaction with `keeps` messages kept replaces.
    pub fn replaced(&self, keeps: u64) -> &[Arc<Message>] {
        let cut = boundary(&self.transcript, tail(&self.transcript, keeps));
        self.transcript.get(..cut).unwrap_or_default()
    }

    /// The model to call for a summary at that time.
    pub fn compaction_model(&self, now: Timestamp) -> &ModelName {
        let spec = &self.started.spec;
        let named = spec.rules.compaction.as_ref().and_then(|compaction| compaction.model.as_ref());
        let is_cooling = |model: &&ModelName| self.cooling.get(*model).is_some_and(|until| now < *until);
        named.or_else(|| spec.models().find(|model| !is_cooling(model))).unwrap_or(&spec.model)
    }

    /// The trace context of the compaction in progress.
    pub fn compaction_context(&self) -> SpanContext {
        let Phase::Compacting(compacting) = &self.phase else { return self.execution_context() };
        self.execution.1.context(&super::labels::compaction(compacting.seq))
    }

    /// Whether the run has no other task than a compaction, or repeats such a run. A message that is added to it makes it
    /// an ordinary run.
    pub(super) fn is_compaction_alone(&self) -> bool {
        self.started.is_compaction() && self.compactions.latest.is_none()
    }

    /// Whether such a failure of a model leads to a compaction, if there is anything to replace.
    pub(super) fn compacts_after(&self, error: &Failure) -> bool {
        self.started.spec.rules.compaction.is_some()
            && !self.compactions.is_tried
            && error.code == ErrorCode::ContextWindow
    }

    /// Whether the next step is a compaction although the latest attempt at the model failed.
    pub(super) fn compacts_instead_of_ending(&self) -> bool {
        matches!(&self.phase, Phase::Retrying { error, .. } if self.compacts_after(error)) && self.cut().is_some()
    }

    /// The step of a compaction that is due or in progress, or the end of a run without another task.
    pub(super) fn compaction_step(&self) -> Option<Step> {
        let is_due = match &self.phase {
            Phase::Compacting(compacting) => return Some(self.compact_again(compacting)),
            Phase::Ready { .. } if self.tools.is_none() => false,
            Phase::Ready { .. } if self.is_compaction_alone() => return Some(self.compact_alone()),
            Phase::Ready { .. } => self.is_too_large() && self.exceeded_limit().is_none(),
            Phase::Retrying { error, .. } => self.compacts_after(error),
            Phase::Asking(_)
            | Phase::Validating { .. }
            | Phase::Accepted { .. }
            | Phase::Working { .. }
            | Phase::Ended(_) => false,
        };
        if is_due && !self.compactions.is_tried { self.compact() } else { None }
    }

    fn compact_alone(&self) -> Step {
        let ending = match &self.compactions.result {
            Some(Ok(summary)) => Ending::Completed { output: Output { text: summary.clone(), ..Output::default() } },
            Some(Err(error)) => Ending::Failed { error: error.clone() },
            None => match self.compact() {
                Some(step) => return step,
                None => Ending::Completed { output: Output::default() },
            },
        };
        Step::Record(vec![Event::Ended { ending }])
    }

    pub(super) fn compact_again(&self, compacting: &Compacting) -> Step {
        if compacting.attempts < MAX_VANISHED {
            return Step::Compact {
                attempt: compacting.attempts + 1,
                replaces: self.replaced(compacting.keeps).len() as u64,
                keeps: compacting.keeps,
            };
        }
        let message = format!(
            "toolgate stopped before there was a summary, {} times; the conversation stays as it is in this turn",
            compacting.attempts
        );
        let error = Failure::new(ErrorCode::Internal, message);
        Step::Record(vec![Event::CompactionFailed { error, usage: Usage::default() }])
    }

    fn compact(&self) -> Option<Step> {
        let cut = self.cut()?;
        Some(Step::Compact { attempt: 1, replaces: cut as u64, keeps: (self.transcript.len() - cut) as u64 })
    }

    fn is_too_large(&self) -> bool {
        let at = self.started.spec.rules.compaction.as_ref().and_then(|compaction| compaction.at_tokens);
        at.is_some_and(|at| self.size() >= at)
    }

    /// The size of the conversation in tokens: as the provider counted the latest call and reply, and estimated for
    /// the messages after them.
    pub fn size(&self) -> u64 {
        let (counted, tokens) = self.compactions.measured.unwrap_or_default();
        tokens.saturating_add(self.transcript.iter().skip(counted).map(|message| estimate(message)).sum())
    }

    /// The index of the first kept message; `None` if there is nothing to replace: at least one reply of a model is. A
    /// message of the user that has no reply yet is kept.
    fn cut(&self) -> Option<usize> {
        let messages = &self.transcript;
        let keep = self.started.spec.rules.compaction.as_ref().map_or(DEFAULT_KEEP_TOKENS, |known| known.keep_tokens);
        let (mut cut, mut kept) = (messages.len(), 0_u64);
        for (index, message) in messages.iter().enumerate().rev() {
            kept = kept.saturating_add(estimate(message));
            if kept > keep {
                break;
            }
            if !has_results(message) {
                cut = index;
            }
        }
        if let Some(last) = messages.len().checked_sub(1)
            && let Some(message) = messages.last().filter(|message| message.role == Role::User)
            && (!has_results(message) || self.compactions.latest.as_ref().is_some_and(|(index, _)| *index == last))
        {
            cut = cut.min(last);
            // Results that the user's message was joined to are kept with their calls.
            cut -= usize::from(cut == last && cut > 0 && has_results(message));
        }
        let replaced = messages.get(..cut).unwrap_or_default();
        replaced.iter().any(|message| message.role == Role::Assistant).then_some(cut)
    }

    /// Whether a compaction can start now: the admission of `compaction.started`.
    pub(super) fn admit_compaction(&self, attempt: u32) -> Result<(), InvalidEvent> {
        let event = "compaction.started";
        let contradiction = |why| Err(InvalidEvent::Contradiction { event, why });
        let expected = match &self.phase {
            Phase::Compacting(compacting) => compacting.attempts + 1,
            _ if self.started.spec.rules.compaction.is_none() => return contradiction("the run has no compaction"),
            _ if self.compactions.is_tried => return contradiction("a turn has one compaction"),
            Phase::Ready { .. } if self.tools.is_none() => return contradiction("no tools were listed yet"),
            Phase::Ready { .. } => 1,
            Phase::Retrying { error, .. } if self.compacts_after(error) => 1,
            Phase::Retrying { .. }
            | Phase::Asking(_)
            | Phase::Validating { .. }
            | Phase::Accepted { .. }
            | Phase::Working { .. }
            | Phase::Ended(_) => {
                return Err(InvalidEvent::OutOfPlace { event, phase: self.phase.describe() });
            }
        };
        if attempt == expected { Ok(()) } else { contradiction("attempts are counted from 1 without gaps") }
    }

    /// The fold of `compaction.started`.
    pub(super) fn compaction_started(&mut self, attempts: u32, keeps: u64) {
        let phase = std::mem::replace(&mut self.phase, Phase::Ready { resolved: false });
        let before = if let Phase::Compacting(compacting) = phase { compacting.before } else { Box::new(phase) };
        self.phase = Phase::Compacting(Compacting { attempts, seq: self.length, keeps, before });
    }

    /// The fold of `compaction.completed`.
    pub(super) fn compaction_completed(&mut self, summary: &str, usage: &Usage, model: &ModelName) {
        self.budget.usage.add(usage);
        self.replies.note(model, "");
        let phase = std::mem::replace(&mut self.phase, Phase::Ready { resolved: false });
        let Phase::Compacting(Compacting { keeps, before, .. }) = phase else {
            self.phase = phase;
            return;
        };
        self.compactions.conversation.get_or_insert_with(|| self.transcript.clone());
        let has_all = self.started.is_resolved();
        // Messages from before the run may stand after an earlier summary, which is never kept.
        let summaries = usize::from(self.compactions.keeps_before > 0);
        let own = self.transcript.len() - summaries;
        let unread = usize::try_from(keeps).unwrap_or(usize::MAX).saturating_sub(own);
        // Counted from the end: a journal is also folded without the conversation before it (decision 0039).
        let cut = boundary(&self.transcript, tail(&self.transcript, keeps).max(summaries));
        let kept = self.transcript.split_off(cut);
        self.compactions.keeps_before = if has_all { 0 } else { unread };
        self.compactions.keeps_own = !kept.is_empty();
        let mut content = vec![Part::text(format!("{FRAME}\n{summary}"))];
        if let Some((_, latest)) = self.compactions.latest.as_ref().filter(|(index, _)| *index < cut) {
            content.push(Part::text(LATEST));
            content.extend(latest.content.clone());
        }
        self.compactions.summary_parts = content.len();
        self.transcript = vec![Message { content, ..Message::user("") }.into()];
        let length = kept.len();
        match self.compactions.keeps_before {
            0 => kept.into_iter().for_each(|message| say(&mut self.transcript, message)),
            // Messages from before the run, which were not read, stand between the summary and these.
            _ => self.transcript.extend(kept),
        }
        let added = self.transcript.len() - length;
        if let Some((index, _)) = &mut self.compactions.latest {
            *index = index.checked_sub(cut).map_or(0, |index| index + added);
        }
        self.compactions.measured = None;
        self.compactions.is_tried = true;
        self.compactions.result = Some(Ok(summary.to_owned()));
        // After an error of the model the same turn calls it again.
        let resolved = !matches!(*before, Phase::Ready { resolved: false });
        self.phase = Phase::Ready { resolved };
        self.deliver_inbox();
    }

    /// The fold of `compaction.failed`.
    pub(super) fn compaction_failed(&mut self, error: &Failure, usage: &Usage) {
        self.budget.usage.add(usage);
        self.compactions.is_tried = true;
        self.compactions.result = Some(Err(error.clone()));
        let phase = std::mem::replace(&mut self.phase, Phase::Ready { resolved: false });
        self.phase = if let Phase::Compacting(compacting) = phase { *compacting.before } else { phase };
        if self.is_between_turns() {
            self.deliver_inbox();
        }
    }

    /// Begins the own part of a fork: the copied compactions leave the transcript as it is.
    pub(super) fn forget_tried_compaction(&mut self) {
        self.compactions.is_tried = false;
    }

    /// Counts the conversation after a reply.
    pub(super) fn measure(&mut self, usage: &Usage) {
        self.compactions.is_tried = false;
        let messages = self.transcript.len() + usize::from(self.phase.turn().is_some());
        self.compactions.measured = usage.total_tokens().map(|tokens| (messages, tokens));
    }

    /// The tokens of the conversation at its latest reply, if the provider counted them.
    pub(super) fn measured_tokens(&self) -> Option<u64> {
        self.compactions.measured.map(|(_, tokens)| tokens)
    }

    /// Begins after a conversation that was read: the whole of it for people, and what models read of it.
    pub(super) fn begin_after(&mut self, prior: &Segment) {
        self.transcript = prior.read_by_models().to_vec();
        self.compactions.conversation = prior.compacted.as_ref().map(|_| prior.messages.clone());
        self.compactions.measured = prior.tokens.map(|tokens| (self.transcript.len(), tokens));
    }

    /// Adds a message to the transcript, and to the conversation as people read it.
    pub(super) fn say(&mut self, message: Message) {
        if let Some(conversation) = &mut self.compactions.conversation {
            say(conversation, message.clone());
        }
        match &self.transcript[..] {
            // Messages from before the run, which were not read, stand between the summary and this one.
            [_] if self.compactions.keeps_before > 0 && !message.is_blank() => self.transcript.push(message.into()),
            _ => say(&mut self.transcript, message),
        }
        if self.transcript.last().is_some_and(|last| last.role == Role::Assistant) {
            self.unanswered.clear();
        }
    }

    /// Adds a message of the user or of the application.
    pub(super) fn hear(&mut self, message: Message) {
        let is_note = message.content.iter().all(|part| part.as_text() == Some(RENEWED_NOTE));
        let latest = (!is_note && !message.is_blank()).then(|| message.clone());
        self.say(message);
        if let Some(latest) = latest {
            // Results that it is joined to belong to an answered turn, with everything that is joined to them.
            if !self.transcript.last().is_some_and(has_results) {
                self.unanswered.push(latest.clone());
            }
            self.compactions.latest = Some((self.transcript.len().saturating_sub(1), latest));
        }
    }
}
