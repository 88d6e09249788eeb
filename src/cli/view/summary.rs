//! Run summary for `runs show`: turns and calls, folded from the journal. `show` renders it.

use std::sync::Arc;

use jiff::Timestamp;

use super::approval::{by_way_of, marked};
use super::approval_scope::reach;
use super::usage::MissingUsage;
use crate::core::chat::{Media, Part, Usage};
use crate::core::id::{CallId, ModelName};
use crate::core::run::{
    Authorization, CallVerdict, Decision, DecisionKind, Event, JournalEntry, OutputVerdict, Rejection, Started,
    ToolAccess, Trigger,
};
use crate::core::tool::{Arguments, ElicitationRequest, LeftOut, Outcome, TaskHandle, ToolOutput, escape_untrusted};

/// The summary of a run.
#[derive(Debug)]
pub(in crate::cli) struct RunSummary {
    pub(super) started: Arc<Started>,
    pub(super) began: Timestamp,
    pub(super) last: Timestamp,
    pub(super) executions: u32,
    pub(super) left_out: Vec<LeftOut>,
    pub(super) turns: Vec<Turn>,
    pub(super) later_messages: Vec<(usize, String)>,
    /// Usage that attempts did not report.
    pub(super) gaps: MissingUsage,
}

/// A model reply and its calls.
#[derive(Debug)]
pub(super) struct Turn {
    /// The model of the last attempt.
    pub(super) model: ModelName,
    pub(super) tool_access: ToolAccess,
    pub(super) attempts: u32,
    pub(super) asked_at: Timestamp,
    pub(super) took_ms: Option<u64>,
    /// The total of all attempts.
    pub(super) usage: Usage,
    pub(super) text: String,
    pub(super) media: Vec<Media>,
    /// Failed attempts and their usage.
    pub(super) failures: Vec<(String, Usage)>,
    pub(super) priority: Option<i32>,
    pub(super) calls: Vec<Call>,
    /// The problems that validation of the answer found; `None` if the answer was not validated.
    pub(super) answer_problems: Option<Vec<String>>,
}

/// A call and its outcome.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) id: CallId,
    pub(super) name: String,
    /// The arguments with which the call was, or would be, sent.
    pub(super) arguments: Arguments,
    /// The edit of the arguments, if a person changed them.
    pub(super) edited: Option<ArgumentEdit>,
    pub(super) verdict: Option<CallVerdict>,
    pub(super) decision: Option<Decision>,
    pub(super) deferred: bool,
    pub(super) sent: Option<Timestamp>,
    pub(super) end: Option<(Timestamp, Arc<Outcome>)>,
    /// The suspensions of the call by its server, in order.
    pub(super) pauses: Vec<Pause>,
    /// Whether the deadline passed without an answer.
    pub(super) expired: bool,
}

/// A person's edit of the arguments. It stays in effect if the call requires approval again.
#[derive(Debug)]
pub(super) struct ArgumentEdit {
    /// The name of the person.
    pub(super) by: String,
    /// The model's original arguments.
    pub(super) written: Arguments,
}

/// The reason why a server suspended a call.
#[derive(Debug)]
pub(super) enum Pause {
    /// The server asked questions.
    Asked {
        /// The questions by key.
        needed: Arc<ElicitationRequest>,
        /// The name of the person who answered, if the questions were answered.
        answered_by: Option<String>,
    },
    /// The call runs, or ran, as a task at the server.
    Task(Arc<TaskHandle>),
}

impl RunSummary {
    /// Summarizes a journal; `None` if it does not begin with `Started`.
    pub(in crate::cli) fn of(journal: &[JournalEntry]) -> Option<Self> {
        let first = journal.first()?;
        let Event::Started(started) = &first.event else { return None };
        let mut picture = Self {
            started: started.clone(),
            began: first.at,
            last: first.at,
            executions: 1,
            left_out: Vec::new(),
            turns: Vec::new(),
            later_messages: Vec::new(),
            gaps: MissingUsage::default(),
        };
        journal.iter().for_each(|recorded| picture.add(recorded));
        Some(picture)
    }

    /// The source of a fork.
    pub(super) fn origin(&self) -> Option<String> {
        match &self.started.trigger {
            Trigger::Manual => None,
            Trigger::Fork { run, at, .. } => Some(format!("fork of {run} at event {at}")),
        }
    }

    /// The number of calls of all turns.
    pub(super) fn calls(&self) -> usize {
        self.turns.iter().map(|turn| turn.calls.len()).sum()
    }

    fn add(&mut self, recorded: &JournalEntry) {
        let at = recorded.at;
        self.last = at;
        match &recorded.event {
            Event::Started(_) | Event::ApprovalsResolved { .. } | Event::Ended { .. } => {}
            Event::Resumed { limits, .. } => {
                self.executions += 1;
                if limits.is_some() {
                    // The totals of a fork cover only its own part.
                    self.gaps = MissingUsage::default();
                }
            }
            Event::ToolsListed { toolset } => self.left_out = toolset.left_out().to_vec(),
            Event::ModelCalled { model, attempt, tool_access } => self.model_called(model, *attempt, *tool_access, at),
            Event::ModelReplied { reply } => {
                self.gaps.replied(&reply.usage);
                let Some(turn) = self.turns.last_mut() else { return };
                turn.took_ms = Some(elapsed_ms(turn.asked_at, at));
                turn.usage.add(&reply.usage);
                turn.text = reply.content.iter().filter_map(Part::as_text).collect();
                turn.media = reply.content.iter().filter_map(Part::as_media).collect();
                turn.calls = reply.calls().map(Call::new).collect();
            }
            Event::ModelFailed { error, usage, .. } => {
                self.gaps.failed(usage);
                let has_others = !self.started.spec.fallback.is_empty();
                let Some(turn) = self.turns.last_mut() else { return };
                turn.usage.add(usage);
                let who = if has_others { format!("model {}: ", turn.model) } else { String::new() };
                turn.failures.push((format!("{who}{error}"), *usage));
            }
            Event::OutputValidated { verdict } => {
                let Some(turn) = self.turns.last_mut() else { return };
                turn.answer_problems = Some(match verdict {
                    OutputVerdict::Valid { .. } => Vec::new(),
                    OutputVerdict::Invalid { problems } => problems.iter().map(|p| p.message.clone()).collect(),
                });
            }
            Event::TierSelected { priority, deferred, .. } => {
                let Some(turn) = self.turns.last_mut() else { return };
                turn.priority = Some(*priority);
                turn.calls.iter_mut().for_each(|call| call.deferred = deferred.contains(&call.id));
            }
            Event::CallChecked { call, verdict } => self.change(call, |call| call.verdict = Some(verdict.clone())),
            Event::ApprovalDecided { call, decision } => {
                self.change(call, |call| call.decided(decision));
            }
            Event::CallDrifted { call, .. } => self.change(call, |call| {
                call.verdict = None;
                call.decision = None;
            }),
            Event::Extended { .. } => {}
            Event::Expired { call } => self.change(call, |call| call.expired = true),
            Event::QuestionAnswered { call, answer } => {
                let said = Outcome::Returned(ToolOutput::text(answer.choice.to_words()));
                self.change(call, |call| call.end = Some((at, said.into())));
            }
            Event::CallsStarted { calls } => calls.iter().for_each(|id| self.change(id, |call| call.sent = Some(at))),
            Event::CallCompleted { call, outcome, .. } => {
                self.change(call, |call| call.end = Some((at, outcome.clone())))
            }
            Event::InputRequested { call, needed, .. } | Event::InputRequired { call, needed, .. } => {
                let pause = Pause::Asked { needed: needed.clone(), answered_by: None };
                self.change(call, |call| {
                    // Questions of a held call that became pending appear once.
                    call.pauses.pop_if(|last| matches!(last, Pause::Asked { answered_by: None, .. }));
                    call.pauses.push(pause);
                });
            }
            Event::InputGiven { call, given } => self.change(call, |call| {
                if let Some(Pause::Asked { answered_by, .. }) = call.pauses.last_mut() {
                    *answered_by = Some(given.by.clone());
                }
            }),
            Event::TaskStarted { call, task, .. } => {
                self.change(call, |call| call.pauses.push(Pause::Task(task.clone())));
            }
            Event::MessageAdded { message } => self.later_messages.push((self.turns.len(), message.text())),
        }
    }

    fn model_called(&mut self, model: &ModelName, attempt: u32, tool_access: ToolAccess, at: Timestamp) {
        let unanswered = self.turns.last_mut().filter(|turn| turn.took_ms.is_none() && attempt > 1);
        if let Some(turn) = unanswered {
            turn.attempts = attempt;
            turn.model = model.clone();
            return;
        }
        self.turns.push(Turn {
            model: model.clone(),
            tool_access,
            attempts: 1,
            asked_at: at,
            took_ms: None,
            usage: Usage::default(),
            text: String::new(),
            media: Vec::new(),
            failures: Vec::new(),
            priority: None,
            calls: Vec::new(),
            answer_problems: None,
        });
    }

    fn change(&mut self, id: &CallId, change: impl FnOnce(&mut Call)) {
        let calls = self.turns.last_mut().map(|turn| turn.calls.iter_mut());
        if let Some(call) = calls.into_iter().flatten().find(|call| call.id == *id) {
            change(call);
        }
    }
}

impl Call {
    fn new(asked: crate::core::tool::ToolCall) -> Self {
        Self {
            id: asked.id,
            name: asked.name,
            arguments: asked.arguments,
            edited: None,
            verdict: None,
            decision: None,
            deferred: false,
            sent: None,
            end: None,
            pauses: Vec::new(),
            expired: false,
        }
    }

    fn decided(&mut self, decision: &Decision) {
        self.decision = Some(decision.clone());
        if let Some(arguments) = &decision.edited_arguments {
            let before = std::mem::replace(&mut self.arguments, arguments.clone());
            let written = self.edited.take().map_or(before, |edited| edited.written);
            self.edited = Some(ArgumentEdit { by: decision.by.clone(), written });
        }
    }

    /// The duration of the call, if it was sent and answered.
    pub(super) fn took_ms(&self) -> Option<u64> {
        let (sent, (ended, _)) = self.sent.zip(self.end.as_ref())?;
        Some(elapsed_ms(sent, *ended))
    }

    /// Why the call ran, or why it did not.
    pub(super) fn right(&self) -> String {
        if let Some(decision) = &self.decision {
            let word = match decision.answer {
                DecisionKind::Approve => "approved",
                DecisionKind::Deny => "denied",
            };
            let reach = reach(decision.scope, decision.coverage, decision.expires_at);
            let edited = if decision.edited_arguments.is_some() { ", edited" } else { "" };
            let policy = decision.binding.as_ref().and_then(|binding| binding.policy.as_ref());
            let policy = policy.map(|policy| format!(", {}", marked(policy))).unwrap_or_default();
            return format!(
                "{word}{reach} by {} {}{edited}{policy}",
                escape_untrusted(&decision.by),
                by_way_of(decision.via)
            );
        }
        match &self.verdict {
            None if self.deferred => "deferred".into(),
            None => "not checked yet".into(),
            _ if self.expired => "not answered in time".into(),
            Some(CallVerdict::Run { by: Authorization::Grant { grant } }) => format!("auto-approved, {grant}"),
            Some(CallVerdict::Run { by: Authorization::Policy { rule: Some(rule), .. } }) => {
                format!("allowed, rule {rule}")
            }
            Some(CallVerdict::Run { by: Authorization::Policy { rule: None, .. } }) => "allowed".into(),
            Some(CallVerdict::Run { by: Authorization::HumanApproval }) => "approved".into(),
            Some(CallVerdict::Ask { .. }) => "requires approval".into(),
            Some(CallVerdict::Rejected { reason: Rejection::Deferred, .. }) => "deferred".into(),
            Some(CallVerdict::Rejected { reason, .. }) => format!("rejected, {}", reason.as_str().replace('_', " ")),
        }
    }
}

fn elapsed_ms(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.duration_since(from).as_millis()).unwrap_or(0)
}
