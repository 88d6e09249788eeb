//! Compaction: a model summarizes the beginning of a long conversation, and later calls read the summary in its place.
//!
//! Due between turns, at most once a turn, and once after the model reported that the conversation does not fit its
//! context window. The number of messages at the end that are kept is the fact that the fold uses: it is the same
//! whether the conversation before the run was read or not. Kept messages never begin with the results of calls, so no
//! call is separated from its result. People still read the replaced messages ([`Run::messages`], [`Segment`]).
//!
//! [`Segment`]: super::Segment

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::fork::RENEWED_NOTE;
use super::state::Phase;
use super::transcript::say;
use super::{Ending, Event, InvalidEvent, Output, Run, Step, Trigger};
use crate::chat::{Message, Part, Role, Usage};
use crate::error::{ErrorCode, Failure};
use crate::id::ModelName;
use crate::trace::SpanContext;

/// The number of tokens at the end of a conversation that a compaction keeps by default.
pub const DEFAULT_KEEP_TOKENS: u64 = 10_000;

/// The instruction to the model that writes the summary: the last user message of its request.
pub const COMPACTION_INSTRUCTION: &str = "[toolgate] Write a summary of the conversation so far. It replaces the \
    conversation: the work continues from the summary alone. State what the user wants and every constraint they gave, \
    what was done and with which results, decisions with their reasons, names, identifiers, numbers and paths that are \
    still needed, errors, and what remains to be done. Do not call tools, do not continue the work, and do not answer \
    the user. Reply with the summary only.";

/// The text before a summary.
const FRAME: &str = "[toolgate] Summary of the earlier conversation, written by a model:";

/// The text before the user's latest message, if the summary replaces it.
const LATEST: &str = "[toolgate] The user's latest message, which the summary covers:";

/// The number of attempts of one compaction whose process stopped, after which the turn continues without it.
const MAX_VANISHED: u32 = 2;

/// The tokens that an image or another medium counts for.
const MEDIA_TOKENS: u64 = 1_000;

/// When conversations are compacted, and what is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compaction {
    /// The size of a conversation in tokens at which it is compacted; `None` for only on request, and after an error
    /// `context_window`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_tokens: Option<u64>,
    /// The most tokens at the end of the conversation that are kept.
    pub keep_tokens: u64,
    /// The model that writes the summary; `None` for the run's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelName>,
}

impl Default for Compaction {
    fn default() -> Self {
        Self { at_tokens: None, keep_tokens: DEFAULT_KEEP_TOKENS, model: None }
    }
}

/// What a run knows about its compactions.
#[derive(Clone, Debug, Default)]
pub(super) struct Compactions {
    /// Whether a compaction was tried since the latest reply.
    is_tried: bool,
    /// The result of the latest one.
    result: Option<Result<String, Failure>>,
    /// The conversation as people read it, once the transcript no longer has all of it.
    conversation: Option<Vec<Arc<Message>>>,
    /// The messages from before the run that the latest compaction kept, if that conversation was not read.
    pub(super) keeps_before: usize,
    /// The number of parts of the first message that are the summary, if there was a compaction.
    pub(super) summary_parts: usize,
    /// The user's latest message of this run, and its index in the transcript.
    latest: Option<(usize, Message)>,
    /// The number of messages that the latest call and reply had, and their tokens as the provider counted them.
    measured: Option<(usize, u64)>,
}

/// A compaction in progress.
#[derive(Clone, Debug)]
pub(super) struct Compacting {
    /// The number of attempts; those before the last one ended with their process.
    attempts: u32,
    /// The position of the event that began this attempt.
    seq: u64,
    /// The number of messages at the end that are kept.
    keeps: u64,
    /// The phase to which a failure returns.
    before: Box<Phase>,
}

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
        let named = spec.compaction.as_ref().and_then(|compaction| compaction.model.as_ref());
        let is_cooling = |model: &&ModelName| self.cooling.get(*model).is_some_and(|until| now < *until);
        named.or_else(|| spec.models().find(|model| !is_cooling(model))).unwrap_or(&spec.model)
    }

    /// The trace context of the compaction in progress.
    pub fn compaction_context(&self) -> SpanContext {
        match &self.phase {
            Phase::Compacting(compacting) => self.execution.1.context(&super::labels::compaction(compacting.seq)),
            _ => self.execution_context(),
        }
    }

    /// Whether the run has no other task than a compaction. A message that is added to it makes it an ordinary run.
    pub(super) fn is_compaction_alone(&self) -> bool {
        self.started.trigger == Trigger::Compaction && self.compactions.latest.is_none()
    }

    /// Whether such a failure of a model leads to a compaction, if there is anything to replace.
    pub(super) fn compacts_after(&self, error: &Failure) -> bool {
        self.started.spec.compaction.is_some() && !self.compactions.is_tried && error.code == ErrorCode::ContextWindow
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
            Phase::Ready { .. } => self.is_too_large() && self.budget.limit_reached().is_none(),
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
        let at = self.started.spec.compaction.as_ref().and_then(|compaction| compaction.at_tokens);
        at.is_some_and(|at| self.size() >= at)
    }

    /// The size of the conversation in tokens: as the provider counted the latest call and reply, and estimated for
    /// the messages after them.
    fn size(&self) -> u64 {
        let (counted, tokens) = self.compactions.measured.unwrap_or_default();
        tokens.saturating_add(self.transcript.iter().skip(counted).map(|message| estimate(message)).sum())
    }

    /// The index of the first kept message; `None` if there is nothing to replace: at least one reply of a model is. A
    /// message of the user that has no reply yet is kept.
    fn cut(&self) -> Option<usize> {
        let messages = &self.transcript;
        let keep = self.started.spec.compaction.as_ref().map_or(DEFAULT_KEEP_TOKENS, |known| known.keep_tokens);
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
            _ if self.started.spec.compaction.is_none() => return contradiction("the run has no compaction"),
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
        let before = match std::mem::replace(&mut self.phase, Phase::Ready { resolved: false }) {
            Phase::Compacting(compacting) => compacting.before,
            before => Box::new(before),
        };
        self.phase = Phase::Compacting(Compacting { attempts, seq: self.length, keeps, before });
    }

    /// The fold of `compaction.completed`.
    pub(super) fn compaction_completed(&mut self, summary: &str, usage: &Usage) {
        self.budget.usage.add(usage);
        let phase = std::mem::replace(&mut self.phase, Phase::Ready { resolved: false });
        let Phase::Compacting(Compacting { keeps, before, .. }) = phase else {
            self.phase = phase;
            return;
        };
        self.compactions.conversation.get_or_insert_with(|| self.transcript.clone());
        let has_all = self.started.is_resolved();
        let unread = usize::try_from(keeps).unwrap_or(usize::MAX).saturating_sub(self.transcript.len());
        self.compactions.keeps_before = if has_all { 0 } else { unread };
        let cut = boundary(&self.transcript, tail(&self.transcript, keeps));
        let kept = self.transcript.split_off(cut);
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
        match std::mem::replace(&mut self.phase, Phase::Ready { resolved: false }) {
            Phase::Compacting(compacting) => self.phase = *compacting.before,
            phase => self.phase = phase,
        }
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
    pub(super) fn begin_after(&mut self, prior: &super::Segment) {
        self.transcript = prior.read_by_models().to_vec();
        self.compactions.conversation = prior.compacted.as_ref().map(|_| prior.messages.clone());
        self.compactions.measured = prior.tokens.map(|tokens| (self.transcript.len(), tokens));
    }

    /// Adds a message to the transcript, and to the conversation as people read it.
    pub(super) fn say(&mut self, message: Message) {
        if let Some(conversation) = &mut self.compactions.conversation {
            say(conversation, message.clone());
        }
        say(&mut self.transcript, message);
    }

    /// Adds a message of the user or of the application.
    pub(super) fn hear(&mut self, message: Message) {
        let is_note = message.content.iter().all(|part| part.as_text() == Some(RENEWED_NOTE));
        let latest = (!is_note && !message.is_blank()).then(|| message.clone());
        self.say(message);
        if let Some(latest) = latest {
            self.compactions.latest = Some((self.transcript.len().saturating_sub(1), latest));
        }
    }
}

/// The request for a summary of these messages: the messages, unchanged, and the instruction.
pub fn compaction_request(messages: &[Arc<Message>]) -> Vec<Arc<Message>> {
    let mut request = messages.to_vec();
    say(&mut request, Message::user(COMPACTION_INSTRUCTION));
    request
}

/// The index of the last `keeps` messages.
pub(super) fn tail(messages: &[Arc<Message>], keeps: u64) -> usize {
    messages.len().saturating_sub(usize::try_from(keeps).unwrap_or(usize::MAX))
}

/// The first index from this one on at which no call is separated from its result.
pub(super) fn boundary(messages: &[Arc<Message>], index: usize) -> usize {
    let results = messages.iter().skip(index).take_while(|message| has_results(message)).count();
    index.saturating_add(results).min(messages.len())
}

fn has_results(message: &Arc<Message>) -> bool {
    message.content.iter().any(|part| part.tool_result().is_some())
}

/// The tokens of a message, estimated from the length of its text.
fn estimate(message: &Message) -> u64 {
    message.content.iter().map(tokens).sum()
}

fn tokens(part: &Part) -> u64 {
    let text = |length: usize| (length as u64).div_ceil(4);
    match part {
        Part::Text { text: said } | Part::Reasoning { text: said } => text(said.len()),
        Part::ToolUse { name, input, .. } => text(name.len() + input.to_value().to_string().len()),
        Part::ToolResult { content, .. } => content.iter().map(tokens).sum(),
        Part::Resource { text: Some(said), .. } => text(said.len()),
        Part::Image(_) | Part::Audio(_) | Part::Resource { text: None, .. } => MEDIA_TOKENS,
    }
}
