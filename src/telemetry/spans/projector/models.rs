//! Spans of model calls, one for each model that a turn calls. The first attempt opens the span; the reply, the first
//! attempt at another model, or the end of the execution closes it.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value as Json, json};
use toolgate_core::chat::{Message, Reply, Role, Usage};
use toolgate_core::error::Failure;
use toolgate_core::id::ModelName;
use toolgate_core::run::{ModelOptions, Run, ToolAccess, compaction_request, labels};
use toolgate_ports::ModelIdentity;

use super::Projector;
use crate::spans::conversation::Conversation;
use crate::spans::execution::{Child, Execution, OpenModelCall};
use crate::spans::llm::ModelCall;
use crate::spans::span::{Kind, Span, SpanEvent, Status};
use crate::spans::tool::CutShort;
use crate::spans::{SpanContent, Value, names};

impl Projector {
    /// An attempt at a model: opens a new span or continues the open one. The span of another model that failed before
    /// ends here.
    pub(super) fn model_called(
        &mut self,
        seq: u64,
        at: Timestamp,
        model: &ModelName,
        tool_access: ToolAccess,
        attempt: u32,
    ) -> Option<Span> {
        let before = self.lifecycle.run().and_then(Run::model_asked).filter(|before| *before != model).cloned();
        let left = before.as_ref().and_then(|_| self.model_lost(CutShort::Interrupted, at));
        let execution = self.execution.as_mut()?;
        let Some(open) = &mut execution.model else {
            execution.model = Some(OpenModelCall {
                model: model.clone(),
                instead_of: before,
                seq,
                start: at,
                tool_access,
                attempts: 1,
                usage: Usage::default(),
                failure: None,
                events: Vec::new(),
                summarizes: None,
            });
            return left;
        };
        open.attempts += 1;
        open.failure = None;
        let attributes = vec![("toolgate.attempt".into(), Value::Int(i64::from(attempt)))];
        open.events.push(SpanEvent { name: "llm.call.retrying", at, attributes });
        left
    }

    pub(super) fn model_failed(&mut self, at: Timestamp, error: &Failure, usage: &Usage) {
        let Some(open) = self.execution.as_mut().and_then(|execution| execution.model.as_mut()) else { return };
        open.usage.add(usage);
        open.events.push(SpanEvent::exception(error.code.as_str(), self.content.sentence(error), at));
        open.failure = Some((at, error.clone()));
    }

    pub(super) fn model_replied(&mut self, at: Timestamp, reply: &Reply) -> Option<Span> {
        let execution = self.execution.as_mut()?;
        let is_checked = self.lifecycle.run().is_some_and(|run| run.started().spec.rules.validate_output);
        execution.answer = is_checked.then(|| (at, reply.joined_text()));
        let mut open = execution.model.take()?;
        open.usage.add(&reply.usage);
        self.model_span(open, at, Some(reply), None)
    }

    /// A model call for a summary: a span of its own, after that of a call that failed before.
    pub(super) fn compaction_started(
        &mut self,
        seq: u64,
        at: Timestamp,
        model: &ModelName,
        keeps: u64,
    ) -> Option<Span> {
        let left = self.model_lost(CutShort::Interrupted, at);
        let open = OpenModelCall {
            model: model.clone(),
            instead_of: None,
            seq,
            start: at,
            tool_access: ToolAccess::FinalAnswer,
            attempts: 1,
            usage: Usage::default(),
            failure: None,
            events: Vec::new(),
            summarizes: Some(keeps),
        };
        self.execution.as_mut()?.model = Some(open);
        left
    }

    pub(super) fn compaction_completed(&mut self, at: Timestamp, summary: &str, usage: &Usage) -> Option<Span> {
        let mut open = self.execution.as_mut()?.model.take()?;
        open.usage.add(usage);
        let reply = Reply { usage: *usage, ..Reply::text(summary) };
        self.model_span(open, at, Some(&reply), None)
    }

    /// A model call that ended without a reply.
    pub(super) fn model_lost(&mut self, cut: CutShort, at: Timestamp) -> Option<Span> {
        let mut open = self.execution.as_mut()?.model.take()?;
        let (at, kind, message) = match open.failure.take() {
            Some((at, error)) => (at, error.code.as_str(), self.content.sentence(&error).to_owned()),
            None => {
                open.events.push(SpanEvent::exception(cut.as_str(), cut.message(), at));
                (at, cut.as_str(), cut.message().to_owned())
            }
        };
        self.model_span(open, at, None, Some((kind, &message)))
    }

    fn model_span(
        &mut self,
        open: OpenModelCall,
        end: Timestamp,
        reply: Option<&Reply>,
        failure: Option<(&str, &str)>,
    ) -> Option<Span> {
        let run = self.lifecycle.run()?;
        let iteration = self.lifecycle.iteration();
        let spec = &run.started().spec;
        let mut identity = self.identity_of(&open.model);
        if spec.asks(&open.model) {
            set_options(&mut identity, &spec.model_options);
        }
        // The transcript does not change during a model call.
        let summarized = open.summarizes.map(|keeps| compaction_request(run.replaced(keeps)));
        let transcript = summarized.as_deref().unwrap_or(run.transcript());
        let left_out = left_out(transcript, self.content);
        let is_shown = self.execution.as_ref().is_some_and(Execution::is_reported) && !self.content.hide_inputs;
        if is_shown {
            if left_out > 0 {
                // The shown part starts at another message each time.
                self.conversation = Conversation::redacted(self.redaction.clone());
            }
            let shown = transcript.get(left_out..).unwrap_or_default();
            self.conversation.update(&spec.system, shown, self.content);
        }
        let tools = run.tools().filter(|_| is_shown).map(|_| run.shown_tools());
        let offered = tools.map(|tools| self.redaction.rendered(tools, self.content.value_bytes)).unwrap_or_default();
        let call = ModelCall {
            identity: &identity,
            prompt: self.instructions.as_deref().map(|instructions| (spec.agent.as_str(), instructions)),
            system: &spec.system,
            conversation: &self.conversation,
            left_out,
            offered: &offered,
            tool_access: open.tool_access,
            reply,
            usage: open.usage,
            attempts: open.attempts,
            content: self.content,
        };
        let child = Child {
            label: match open.summarizes {
                Some(_) => labels::compaction(open.seq),
                None => labels::model_call(open.seq),
            },
            name: format!("chat {}", identity.model),
            kind: Kind::Client,
            start: open.start,
            end,
            status: failure.map_or(Status::Ok, |(_, message)| Status::error(message)),
            events: open.events,
        };
        self.execution.as_mut()?.child(child, |to| {
            to.int(names::ITERATION, u64::from(iteration));
            to.text_if(names::MODEL_OPERATION, open.summarizes.map(|_| "compaction"));
            to.text_if(names::INSTEAD_OF, open.instead_of.as_ref().map(ModelName::as_str));
            to.text_if(names::ERROR_TYPE, failure.map(|(kind, _)| kind));
            call.attributes(to);
        })
    }
}

/// Shows the model options of a run in place of the settings of its model.
fn set_options(identity: &mut ModelIdentity, options: &ModelOptions) {
    let ModelOptions { tool_choice, parallel_tool_calls, temperature, max_output_tokens } = options;
    let Some(settings) = identity.settings.as_object_mut() else { return };
    for (name, value) in [
        ("tool_choice", tool_choice.as_ref().map(|choice| json!(choice))),
        ("parallel_tool_calls", parallel_tool_calls.map(Json::from)),
        ("temperature", temperature.map(Json::from)),
        ("max_tokens", max_output_tokens.map(Json::from)),
    ] {
        settings.extend(value.map(|value| (name.to_owned(), value)));
    }
}

/// The number of messages at the start that are not shown.
fn left_out(transcript: &[Arc<Message>], content: SpanContent) -> usize {
    let last_said = || transcript.iter().rposition(|message| message.role == Role::Assistant);
    content.last_turn_only.then(last_said).flatten().unwrap_or(0)
}
