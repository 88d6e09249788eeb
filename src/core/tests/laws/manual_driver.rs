//! Manual driver: a run that a test drives step by step. Defaults apply where a test specifies nothing: checks follow
//! the tool's verdict, tools answer "result of <name>".

use std::sync::Arc;

use toolgate_core::chat::{Message, Part, Reply};
use toolgate_core::id::CallId;
use toolgate_core::policy::Verdict;
use toolgate_core::run::{
    Authorization, CallVerdict, Event, Input, OutputVerdict, PendingItem, Rejection, Resume, Run, Spec, Status, Step,
};
use toolgate_core::tool::{Outcome, Problem, ToolCall, ToolOutput};

use crate::fixtures::{noon, started, toolset};

pub(crate) struct Hand {
    pub(crate) run: Run,
    pub(crate) journal: Vec<Event>,
}

impl Hand {
    /// A run before its first model call.
    pub(crate) fn with(spec: Spec) -> Self {
        let started = started(spec);
        let hand = Self { run: Run::begin(started.clone()), journal: vec![Event::Started(started)] };
        hand.settled()
    }

    pub(crate) fn record(&mut self, event: Event) {
        self.run.apply(&event).unwrap();
        self.journal.push(event);
    }

    /// Calls the model, which replies with this, and takes all steps that need no input from outside.
    pub(crate) fn model_says(mut self, reply: Reply) -> Self {
        let Step::CallModel { attempt, tool_access, .. } = self.run.next() else {
            panic!("not now: {:?}", self.run.next())
        };
        let model = self.run.candidate(noon()).clone();
        self.record(Event::ModelCalled { model, attempt, tool_access });
        let reply = self.run.with_unique_ids(reply);
        self.record(Event::ModelReplied { reply: reply.into() });
        self.settled()
    }

    pub(crate) fn model_calls<const N: usize>(self, calls: [ToolCall; N]) -> Self {
        self.model_says(Reply::calling(calls))
    }

    pub(crate) fn finds_the_answer(mut self, problems: &[Problem]) -> Self {
        assert!(matches!(self.run.next(), Step::ValidateOutput(_)), "not now: {:?}", self.run.next());
        let verdict = match problems {
            [] => OutputVerdict::Valid { value: None },
            some => OutputVerdict::Invalid { problems: some.to_vec() },
        };
        self.record(Event::OutputValidated { verdict });
        self.settled()
    }

    pub(crate) fn given(mut self, input: Input) -> Self {
        for event in self.run.accept(&input).unwrap() {
            self.record(event);
        }
        self.settled()
    }

    pub(crate) fn resumed_with(self, id: &str, text: &str) -> Self {
        self.given(Input::Resume(Resume::default().with(id, Outcome::Returned(ToolOutput::text(text)))))
    }

    pub(crate) fn settled(mut self) -> Self {
        for _ in 0..100 {
            match self.run.next() {
                Step::Record(events) => events.into_iter().for_each(|event| self.record(event)),
                Step::ListTools => self.record(Event::ToolsListed { toolset: toolset() }),
                Step::ResolveApprovals(_) => self.record(Event::ApprovalsResolved { granted: Arc::default() }),
                Step::CheckCalls(ids) => ids.into_iter().for_each(|id| self.check(id)),
                Step::RunTier(ids) => self.run_tier(ids),
                Step::CallModel { .. }
                | Step::Compact { .. }
                | Step::ValidateOutput(_)
                | Step::Wait(_)
                | Step::Done(_) => return self,
            }
        }
        panic!("the run is neither pending nor over: {:?}", self.run.next());
    }

    fn check(&mut self, id: CallId) {
        let call = self.run.call(&id).unwrap();
        let verdict = match call.tool.as_ref().unwrap().verdict {
            _ if call.arguments().as_object().is_none() => CallVerdict::Rejected {
                reason: Rejection::InvalidArguments,
                message: Problem::feedback("Invalid arguments:", &[Problem::whole("json", "not an object")]),
                problems: vec![Problem::whole("json", "not an object")],
            },
            _ if call.is_approved() => CallVerdict::Run { by: Authorization::HumanApproval },
            Verdict::Allow | Verdict::Ask if call.reapproval_reason().is_some() => crate::events::asked("once more"),
            Verdict::Allow => CallVerdict::Run { by: Authorization::Policy { rule: None, policy: None } },
            Verdict::Ask => crate::events::asked("asked"),
            Verdict::Deny => CallVerdict::Rejected {
                reason: Rejection::Denied,
                message: "Denied by policy".into(),
                problems: Vec::new(),
            },
        };
        self.record(Event::CallChecked { call: id, verdict, advisory: Vec::new() });
    }

    /// Results arrive in reverse order of their calls.
    fn run_tier(&mut self, ids: Vec<CallId>) {
        self.record(Event::CallsStarted { calls: ids.clone() });
        for id in ids.into_iter().rev() {
            let text = format!("result of {}", self.run.call(&id).unwrap().requested.name);
            self.record(Event::CallCompleted {
                call: id,
                outcome: Arc::new(Outcome::Returned(ToolOutput::text(text))),
                stderr: Vec::new(),
                wire: None,
            });
        }
    }

    pub(crate) fn status(&self) -> Status {
        self.run.status()
    }

    pub(crate) fn pending(&self) -> Vec<String> {
        let items = self.run.pending();
        items
            .iter()
            .map(|item: &PendingItem| match item.call_id() {
                Some(call) => format!("{} {call}", item.kind()),
                None => item.kind().to_owned(),
            })
            .collect()
    }

    pub(crate) fn started_calls(&self) -> Vec<String> {
        let started = self.journal.iter().filter_map(|event| match event {
            Event::CallsStarted { calls } => Some(calls.iter().map(CallId::to_string)),
            _ => None,
        });
        started.flatten().collect()
    }

    /// The last message, each part as one line.
    pub(crate) fn last_lines(&self) -> Vec<String> {
        lines(self.run.transcript().last().unwrap())
    }
}

/// Each part of a message as one line.
pub(crate) fn lines(message: &Message) -> Vec<String> {
    let line = |part: &Part| match part {
        Part::Text { text } => text.clone(),
        Part::ToolUse { id, name, .. } => format!("call {id} {name}"),
        Part::ToolResult { tool_use_id, content, is_error } => {
            let text: String = content.iter().filter_map(Part::as_text).collect();
            format!("{} {tool_use_id}: {text}", if *is_error { "error" } else { "result" })
        }
        other => format!("{other:?}"),
    };
    message.content.iter().map(line).collect()
}
