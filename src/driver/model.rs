//! Step: call the current model.

use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt;
use toolgate_core::chat::{Message, Reply};
use toolgate_core::error::{ErrorCode, FailedStep, Failure};
use toolgate_core::id::{AgentName, ModelName};
use toolgate_core::lifecycle::{Delta, FragmentPosition};
use toolgate_core::run::{Backoff, Ending, Event, LONGEST_RETRY_AFTER_MS, ToolAccess};
use toolgate_ports::{Context, Conversation, Model, ModelFailure, ModelRequest, StoreError, Update};

use super::interrupt::StepOutcome;
use super::spending::Refusal;
use super::tool_results::RenderedMessages;
use super::{DriveError, Driver, Journal, Progress};

/// The context of a turn, while its call is recorded.
struct TurnContext {
    system: String,
    /// The messages, unless they are the transcript. The list of a long run is not copied in each turn, and the intent to call a
    /// model does not change it.
    messages: Option<Vec<Arc<Message>>>,
}

impl TurnContext {
    fn new(Context { system, messages }: Context<'_>, transcript: &[Arc<Message>]) -> Self {
        let is_transcript = matches!(messages, Cow::Borrowed(borrowed) if std::ptr::eq(borrowed, transcript));
        Self { system: system.into_owned(), messages: (!is_transcript).then(|| messages.into_owned()) }
    }
}

impl Driver<'_> {
    pub(super) async fn call_model(
        &mut self,
        journal: &mut Journal,
        attempt: u32,
        tool_access: ToolAccess,
        after: Option<Failure>,
    ) -> Result<(), DriveError> {
        if attempt == 1 && self.refresh_tools(journal).await? {
            return Ok(());
        }
        if let Some(failure) = after
            && let StepOutcome::Interrupted = self.back_off(journal, &failure).await?
        {
            return journal.catch_up().await;
        }
        let Some(context) = self.build_context(journal).await? else { return Ok(()) };
        let model = journal.run().candidate(self.ports.clock.now()).clone();
        if tool_access != ToolAccess::FinalAnswer {
            let refused = AssertUnwindSafe(self.refusal(journal, &model, attempt)).catch_unwind();
            match self.unless_ended(journal, refused).await {
                StepOutcome::Done(Ok(None)) => {}
                StepOutcome::Done(Ok(Some(Refusal { limit, reason, estimate }))) => {
                    return journal.stage(Event::ModelCallRefused { model, limit, reason, estimate });
                }
                StepOutcome::Done(Err(_panic)) => {
                    let message = "the governor panicked; this is a bug in the governor";
                    let error = Failure::new(ErrorCode::Internal, message);
                    return journal.end(Ending::Failed { error });
                }
                StepOutcome::Interrupted => return journal.catch_up().await,
            }
        }
        journal.stage(Event::ModelCalled { model: model.clone(), attempt, tool_access })?;
        if journal.commit().await? == Progress::CaughtUp {
            return Ok(());
        }
        let Some(mut conversation) = self.conversation(&model) else {
            return self.failed(journal, no_such_model(&model, &self.agent.name).into());
        };
        let mut shown = std::mem::take(&mut self.shown);
        let reply = AssertUnwindSafe(self.ask(journal, &context, conversation.as_mut(), &mut shown, tool_access));
        let waited = self.unless_ended(journal, reply.catch_unwind()).await;
        let answer = match waited {
            StepOutcome::Interrupted => return journal.catch_up().await,
            StepOutcome::Done(answer) => answer,
        };
        // A conversation that panicked may be in any state: the next attempt begins a new one.
        if answer.is_ok() {
            self.conversations.insert(model, conversation);
            self.shown = shown;
        }
        match answer {
            Ok(Err(ModelCallError::Store(error))) => Err(error.into()),
            Ok(Ok(reply)) => {
                if let Some(failure) = journal.run().out_of_room(&reply) {
                    return self.failed(journal, ModelFailure { failure, usage: reply.usage });
                }
                match self.keep_media(journal.id(), reply).await? {
                    Ok(reply) => {
                        let reply = journal.run().with_unique_ids(reply).into();
                        journal.stage(Event::ModelReplied { reply })
                    }
                    Err(failure) => self.failed(journal, failure),
                }
            }
            Ok(Err(ModelCallError::Failed(failure))) => self.failed(journal, failure),
            Err(_panic) => {
                let message = "the model adapter panicked; this is a bug in toolgate";
                self.failed(journal, Failure::new(ErrorCode::Internal, message).into())
            }
        }
    }

    /// The conversation with that model, unless the agent has no such model.
    pub(super) fn conversation(&mut self, model: &ModelName) -> Option<Box<dyn Conversation>> {
        self.conversations.remove(model).or_else(|| self.model(model).map(|model| model.converse()))
    }

    /// The model with that name, of the agent's turns or of its compactions.
    pub(super) fn model(&self, name: &ModelName) -> Option<&Arc<dyn Model>> {
        let summarizes = self.agent.compaction_model.iter().map(|named| (&named.name, &named.model));
        self.agent.models().chain(summarizes).find(|(known, _)| *known == name).map(|(_, model)| model)
    }

    fn failed(&self, journal: &mut Journal, ModelFailure { failure, usage }: ModelFailure) -> Result<(), DriveError> {
        let event = journal.run().model_failed(failure, usage, self.ports.clock.now());
        journal.stage(event)
    }

    /// The context of the turn. One that cannot be built ends the run; the model is not called then.
    async fn build_context(&self, journal: &mut Journal) -> Result<Option<TurnContext>, DriveError> {
        let run = journal.run();
        let spec = &run.started().spec;
        let context = self.ports.context.build(spec, run.transcript(), run.shown_tools(), run.budget());
        let error = match self.unless_ended(journal, AssertUnwindSafe(context).catch_unwind()).await {
            StepOutcome::Done(Ok(Ok(context))) => return Ok(Some(TurnContext::new(context, run.transcript()))),
            StepOutcome::Done(Ok(Err(failure))) => failure,
            StepOutcome::Done(Err(_panic)) => {
                Failure::new(ErrorCode::Internal, "the context builder panicked; this is a bug in the builder")
            }
            StepOutcome::Interrupted => {
                journal.catch_up().await?;
                return Ok(None);
            }
        };
        let error = error.in_step(FailedStep::ContextBuild);
        journal.end(Ending::Failed { error })?;
        Ok(None)
    }

    async fn ask(
        &self,
        journal: &Journal,
        context: &TurnContext,
        conversation: &mut dyn Conversation,
        shown: &mut RenderedMessages,
        tool_access: ToolAccess,
    ) -> Result<Reply, ModelCallError> {
        let run = journal.run();
        let spec = &run.started().spec;
        let messages = context.messages.as_deref().unwrap_or(run.transcript());
        let messages = shown.update(self.ports, run, messages).await.map_err(ModelCallError::Store)?;
        let trace = run.model_context();
        let request = ModelRequest {
            system: &context.system,
            messages,
            tools: run.shown_tools(),
            tool_access,
            output_schema: spec.rules.output_schema.as_ref(),
            trace: &trace,
        };
        let written = WrittenChars::new(run.length());
        let show = |delta: Delta| {
            let position = written.add(&delta);
            let update = Update::Delta { delta, position };
            self.ports.sinks.iter().for_each(|sink| sink.observe(journal.id(), &update));
        };
        Ok(conversation.reply(&request, &show).await?)
    }

    /// Waits before a retry of the same model: as long as the provider asks, otherwise as the agent's backoff says. A
    /// deadline, a pause or an ending shortens the wait.
    async fn back_off(&self, journal: &mut Journal, failure: &Failure) -> Result<StepOutcome<()>, DriveError> {
        // The failed attempt is durable before the wait.
        if journal.commit().await? == Progress::CaughtUp {
            return Ok(StepOutcome::Interrupted);
        }
        let run = journal.run();
        let made = run.model_asked().map_or(0, |model| run.attempts_at(model));
        let delay = delay_before(self.agent.backoff, made + 1, failure, jitter(journal));
        Ok(self.unless_stopped(journal, self.ports.clock.sleep(delay)).await)
    }
}

/// The positions of the fragments of an attempt.
struct WrittenChars {
    /// The position of the attempt's `llm.call.started`.
    call: u64,
    text: AtomicU64,
    reasoning: AtomicU64,
}

impl WrittenChars {
    /// For an attempt whose `llm.call.started` is the last entry of a journal of that length.
    fn new(length: u64) -> Self {
        Self { call: length.saturating_sub(1), text: AtomicU64::new(0), reasoning: AtomicU64::new(0) }
    }

    /// The position of the next fragment, if it is one of the reply.
    fn add(&self, delta: &Delta) -> Option<FragmentPosition> {
        let written = match delta {
            Delta::Text { .. } => &self.text,
            Delta::Reasoning { .. } => &self.reasoning,
            Delta::Progress { .. } => return None,
        };
        Some(FragmentPosition { call: self.call, index: written.fetch_add(delta.chars(), Ordering::Relaxed) })
    }
}

/// The reason why there is no reply.
pub(super) enum ModelCallError {
    /// The attempt failed.
    Failed(ModelFailure),
    /// The media of the conversation could not be fetched, so the model was not called.
    Store(StoreError),
}

impl From<ModelFailure> for ModelCallError {
    fn from(failure: ModelFailure) -> Self {
        Self::Failed(failure)
    }
}

/// The error for a model that the agent's current configuration does not have.
pub(super) fn no_such_model(model: &ModelName, agent: &AgentName) -> Failure {
    let message =
        format!("agent `{agent}` has no model `{model}` here; name it as the agent's `model` or in its `fallback`");
    Failure::new(ErrorCode::Configuration, message)
}

/// The delay before this attempt; `jitter` is in 0..=1000.
fn delay_before(backoff: Backoff, attempt: u32, failure: &Failure, jitter: u32) -> Duration {
    if let Some(retry_after) = failure.retry_after_ms {
        return Duration::from_millis(retry_after.min(LONGEST_RETRY_AFTER_MS));
    }
    backoff.delay(attempt, jitter)
}

/// Spreads retries of different runs over time without a source of randomness: from the run's id and position.
fn jitter(journal: &Journal) -> u32 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hash = DefaultHasher::new();
    (journal.id(), journal.run().length()).hash(&mut hash);
    u32::try_from(hash.finish() % 1001).unwrap_or(500)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_up_to_the_cap_and_honour_the_provider() {
        let failure = Failure::new(ErrorCode::ProviderUnavailable, "down");
        let delays = |backoff: Backoff| -> Vec<u128> {
            (2..9).map(|attempt| delay_before(backoff, attempt, &failure, 1000).as_millis()).collect()
        };
        let usual = Backoff::default();
        assert_eq!(delays(usual), [500, 1000, 2000, 4000, 8000, 8000, 8000]);
        let (first, cap) = (Duration::from_millis(100), Duration::from_secs(1));
        assert_eq!(delays(Backoff::Exponential { first, cap, factor: 3 }), [100, 300, 900, 1000, 1000, 1000, 1000]);
        assert_eq!(delays(Backoff::Constant(first)), [100; 7]);
        assert_eq!(delay_before(usual, 2, &failure, 0), Duration::from_millis(250));
        assert_eq!(delay_before(usual, 2, &failure.clone().after_ms(Some(1200)), 0), Duration::from_millis(1200));
        assert_eq!(delay_before(usual, 2, &failure.after_ms(Some(9_999_999)), 0), Duration::from_secs(120));
    }
}
