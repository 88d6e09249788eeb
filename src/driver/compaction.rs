//! Step: call a model for a summary of the beginning of the conversation.
//!
//! The request is that of an ordinary call up to the kept messages: the same system prompt, tools and messages, and
//! then the instruction. The provider serves that prefix from its prompt cache. The model may not call tools.

use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use toolgate_core::chat::{Reply, Stop};
use toolgate_core::error::{ErrorCode, Failure};
use toolgate_core::run::{Event, ToolAccess, compaction_request};
use toolgate_ports::{Context, ModelFailure, ModelRequest};

use super::interrupt::StepOutcome;
use super::model::ModelCallError;
use super::spending::Refusal;
use super::{DriveError, Driver, Journal, Progress};

impl Driver<'_> {
    pub(super) async fn compact(
        &mut self,
        journal: &mut Journal,
        attempt: u32,
        replaces: u64,
        keeps: u64,
    ) -> Result<(), DriveError> {
        let model = journal.run().compaction_model(self.ports.clock.now()).clone();
        journal.stage(Event::CompactionStarted { model: model.clone(), attempt, replaces, keeps })?;
        if journal.commit().await? == Progress::CaughtUp {
            return Ok(());
        }
        let Some(mut conversation) = self.conversation(&model) else {
            let failure = super::model::no_such_model(&model, &self.agent.name);
            return not_compacted(journal, failure.into());
        };
        let mut shown = std::mem::take(&mut self.shown);
        let summary = async {
            if let Some(Refusal { reason, .. }) = self.refusal(journal, &model, attempt).await {
                return Err(ModelCallError::Failed(Failure::new(ErrorCode::TurnLimit, reason).into()));
            }
            let context = self.compaction_context(journal, keeps).await?;
            let run = journal.run();
            let trace = run.compaction_context();
            let request = ModelRequest {
                system: &context.system,
                messages: shown.update(self.ports, run, &context.messages).await.map_err(ModelCallError::Store)?,
                tools: run.shown_tools(),
                tool_access: ToolAccess::FinalAnswer,
                output_schema: None,
                trace: &trace,
            };
            // Fragments of a summary are not part of the conversation.
            let reply = conversation.reply(&request, &|_| {}).await?;
            Ok::<Reply, ModelCallError>(reply)
        };
        let answer = match self.unless_ended(journal, AssertUnwindSafe(summary).catch_unwind()).await {
            StepOutcome::Interrupted => return journal.catch_up().await,
            StepOutcome::Done(answer) => answer,
        };
        if answer.is_ok() {
            self.conversations.insert(model.clone(), conversation);
            self.shown = shown;
        }
        match answer {
            Ok(Err(ModelCallError::Store(error))) => Err(error.into()),
            Ok(Err(ModelCallError::Failed(failure))) => not_compacted(journal, failure),
            Ok(Ok(reply)) => match summary_of(&reply) {
                Ok(summary) => journal.stage(Event::CompactionCompleted { summary, usage: reply.usage, model }),
                Err(failure) => not_compacted(journal, ModelFailure { failure, usage: reply.usage }),
            },
            Err(_panic) => {
                let message = "the governor, the model adapter or the context builder panicked; this is a bug";
                not_compacted(journal, Failure::new(ErrorCode::Internal, message).into())
            }
        }
    }

    /// The context of the turn with the replaced messages alone, and the instruction after them.
    async fn compaction_context(&self, journal: &Journal, keeps: u64) -> Result<Context<'static>, ModelCallError> {
        let run = journal.run();
        let spec = &run.started().spec;
        let context = self.ports.context.build(spec, run.replaced(keeps), run.shown_tools(), run.budget());
        let context = context.await.map_err(|failure| ModelCallError::Failed(failure.into()))?.into_owned();
        Ok(Context { messages: compaction_request(&context.messages).into(), ..context })
    }
}

fn not_compacted(journal: &mut Journal, failed: ModelFailure) -> Result<(), DriveError> {
    let ModelFailure { failure: error, usage } = failed;
    journal.stage(Event::CompactionFailed { error, usage })
}

/// The text of a whole summary.
fn summary_of(reply: &Reply) -> Result<String, Failure> {
    let (code, message) = match reply.stop {
        Stop::End | Stop::ToolCalls | Stop::Pause | Stop::Unknown => {
            let summary = reply.joined_text();
            if !summary.trim().is_empty() {
                return Ok(summary);
            }
            (ErrorCode::ProviderInvalidResponse, "the model wrote no summary")
        }
        Stop::MaxTokens => {
            (ErrorCode::OutputTruncated, "the summary was cut off at the model's output limit; raise `max_tokens`")
        }
        Stop::ContextWindow => (ErrorCode::ContextWindow, "the conversation does not fit the context window"),
        Stop::ContentFilter => (ErrorCode::ContentFilter, "the provider's content filter withheld the summary"),
        Stop::Refusal => (ErrorCode::ModelRefused, "the model declined to write a summary"),
    };
    Err(Failure::new(code, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_text_is_a_summary() {
        assert_eq!(summary_of(&Reply::text("all of it")), Ok("all of it".to_owned()));
        let code = |reply: &Reply| summary_of(reply).unwrap_err().code;
        assert_eq!(code(&Reply::text(" ")), ErrorCode::ProviderInvalidResponse);
        assert_eq!(code(&Reply { stop: Stop::MaxTokens, ..Reply::text("all o") }), ErrorCode::OutputTruncated);
        assert_eq!(code(&Reply { stop: Stop::Refusal, ..Reply::text("no") }), ErrorCode::ModelRefused);
    }
}
