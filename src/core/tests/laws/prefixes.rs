//! Cut tests: journals are cut at every position, and every prefix is driven to the same ending by a world that answers
//! the same way. These tests reveal state outside the journal.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use toolgate_core::chat::{Message, Reply, Stop, Usage};
use toolgate_core::id::CallId;
use toolgate_core::policy::Verdict;
use toolgate_core::run::{
    Answer, AnswerForm, Authorization, CallVerdict, Compaction, Decision, DecisionKind, Event, Input, Limits, OnDeny,
    OnToolError, OnUnknownOutcome, OutputVerdict, PendingItem, Rejection, Resume, Run, RunRules, Spec, Status, Step,
};
use toolgate_core::tool::{Arguments, Outcome, TierMode, ToolCall, ToolOutput};

use crate::answers::decision;
use crate::events::asked;
use crate::fixtures::{call, noon, problem, spec, started, toolset};
use crate::provider::{Open, refusal};

/// A world without memory: its answers depend on the journal alone.
struct Script {
    spec: Spec,
    replies: Vec<Reply>,
    on_wait: fn(&[PendingItem]) -> Input,
}

impl Script {
    fn new(spec: Spec, replies: impl IntoIterator<Item = Reply>) -> Self {
        Self { spec, replies: replies.into_iter().collect(), on_wait: |items| resume(items, &approve()) }
    }

    fn waiting(self, on_wait: fn(&[PendingItem]) -> Input) -> Self {
        Self { on_wait, ..self }
    }

    fn drive(&self, mut journal: Vec<Event>) -> (Vec<Event>, Run) {
        let mut run = Run::replay(&journal).unwrap().unwrap();
        for _ in 0..1000 {
            let replies = journal.iter().filter(|event| matches!(event, Event::ModelReplied { .. })).count();
            let events = match run.next() {
                Step::Record(events) => events,
                Step::ListTools => vec![Event::ToolsListed { toolset: toolset() }],
                Step::ResolveApprovals(_) => vec![Event::ApprovalsResolved { granted: Arc::default() }],
                Step::CallModel { attempt, tool_access, .. } => {
                    let reply = self.replies.get(replies).or(self.replies.last()).cloned().unwrap();
                    let reply = Arc::new(run.with_unique_ids(reply));
                    let model = run.candidate(noon()).clone();
                    vec![Event::ModelCalled { model, attempt, tool_access }, Event::ModelReplied { reply }]
                }
                Step::Compact { attempt, replaces, keeps } => {
                    let (model, usage) = (run.compaction_model(noon()).clone(), Usage::default());
                    let started = Event::CompactionStarted { model: model.clone(), attempt, replaces, keeps };
                    vec![started, Event::CompactionCompleted { summary: "all of it".into(), usage, model }]
                }
                Step::ValidateOutput(text) => vec![Event::OutputValidated { verdict: validate(&text) }],
                Step::CheckCalls(ids) => ids.into_iter().map(|id| check(&run, id)).collect(),
                Step::RunTier(ids) => {
                    let results = ids.iter().map(|id| Event::CallCompleted {
                        call: id.clone(),
                        outcome: answer(id),
                        stderr: Vec::new(),
                        wire: None,
                    });
                    let results: Vec<Event> = results.collect();
                    [Event::CallsStarted { calls: ids }].into_iter().chain(results).collect()
                }
                Step::Wait(items) => run.accept(&(self.on_wait)(&items)).unwrap(),
                Step::Done(_) => return (journal, run),
            };
            for event in events {
                run.apply(&event).unwrap();
                journal.push(event);
            }
        }
        panic!("no ending: {:?}", run.next());
    }

    /// Drives the whole journal, then every prefix of it; the ending has to be the same each time.
    fn survives_every_cut(&self, expected: Status) -> Vec<Event> {
        let (journal, whole) = self.drive(vec![Event::Started(started(self.spec.clone()))]);
        assert_eq!(whole.status(), expected, "{:?}", whole.ending());
        for end in 1..journal.len() {
            let (driven, run) = self.drive(journal[..end].to_vec());
            assert_eq!(run.status(), expected, "cut at {end}");
            let (one, other) = (run.ending().unwrap(), whole.ending().unwrap());
            assert_eq!(one.output(), other.output(), "cut at {end}, after {:?}", journal[end - 1]);
            assert_eq!(refusal(run.transcript(), Open::Never), None, "cut at {end}");
            assert_eq!(started_twice(&driven), Vec::<CallId>::new(), "cut at {end}");
        }
        journal
    }
}

/// Calls that were started twice although they may not be repeated and no person approved that.
fn started_twice(journal: &[Event]) -> Vec<CallId> {
    let mut starts: BTreeMap<CallId, i32> = BTreeMap::new();
    for (index, event) in journal.iter().enumerate() {
        match event {
            Event::CallsStarted { calls } => {
                let run = Run::replay(&journal[..index]).unwrap().unwrap();
                let once = |id: &&CallId| !run.call(id).unwrap().tool.as_ref().unwrap().is_repeatable();
                calls.iter().filter(once).for_each(|id| *starts.entry(id.clone()).or_default() += 1);
            }
            Event::ApprovalDecided { call, .. } if starts.contains_key(call) => {
                *starts.entry(call.clone()).or_default() -= 1;
            }
            _ => {}
        }
    }
    starts.into_iter().filter(|(_, count)| *count > 1).map(|(id, _)| id).collect()
}

fn check(run: &Run, id: CallId) -> Event {
    let call = run.call(&id).unwrap();
    let verdict = match call.tool.as_ref().unwrap().verdict {
        _ if call.is_approved() => CallVerdict::Run { by: Authorization::HumanApproval },
        Verdict::Allow | Verdict::Ask if call.reapproval_reason().is_some() => asked("once more"),
        Verdict::Allow => CallVerdict::Run { by: Authorization::Policy { rule: None, policy: None } },
        Verdict::Ask => asked("asked"),
        Verdict::Deny => CallVerdict::Rejected {
            reason: Rejection::Denied,
            message: "Denied by policy".into(),
            problems: Vec::new(),
        },
    };
    Event::CallChecked { call: id, verdict, advisory: Vec::new() }
}

fn validate(text: &str) -> OutputVerdict {
    match text {
        "bad" => OutputVerdict::Invalid { problems: vec![problem()] },
        good => OutputVerdict::Valid { value: Some(json!({"answer": good})) },
    }
}

fn answer(id: &CallId) -> Arc<Outcome> {
    Outcome::Returned(ToolOutput::text(format!("result of {id}"))).into()
}

fn approve() -> Decision {
    decision(DecisionKind::Approve)
}

fn resume(items: &[PendingItem], decision: &Decision) -> Input {
    let mut resume = Resume::default();
    for item in items {
        let call = item.call_id().unwrap().clone();
        match item.form() {
            AnswerForm::Result { .. } => {
                let outcome = Outcome::Returned(ToolOutput::text("from the caller"));
                resume.answers.push((call, outcome.into()));
            }
            AnswerForm::Decision(review) => {
                // A decision about a doubt has another reason than the first one.
                let decision = Decision { reason: Some(review.reason.to_owned()), ..decision.clone() };
                resume.answers.push((call, decision.into()));
            }
            AnswerForm::Choice(_)
            | AnswerForm::Elicitation { .. }
            | AnswerForm::Background(_)
            | AnswerForm::Continue { .. } => {
                panic!("no server of these scripts suspends a call")
            }
        }
    }
    Input::Resume(resume)
}

fn plain() -> Spec {
    spec(Limits::default())
}

fn done() -> Reply {
    Reply::text("done")
}

#[test]
fn a_plain_answer() {
    Script::new(plain(), [done()]).survives_every_cut(Status::Completed);
}

#[test]
fn two_tiers_one_after_the_other() {
    let calls = [call("a", "mcp_files_first_read"), call("b", "mcp_files_write")];
    let again = Reply::calling([call("b", "mcp_files_write")]);
    let journal = Script::new(plain(), [Reply::calling(calls), again, done()]).survives_every_cut(Status::Completed);
    assert_eq!(journal.iter().filter(|event| matches!(event, Event::CallsStarted { .. })).count(), 2);
}

#[test]
fn a_mixed_tier_with_an_external_call() {
    let calls = [call("a", "mcp_files_write"), call("b", "ext_order"), call("c", "mcp_files_read")];
    Script::new(plain(), [Reply::calling(calls), done()]).survives_every_cut(Status::Completed);
}

#[test]
fn approvals_denials_and_edits() {
    let calls = || Reply::calling([call("a", "mcp_files_ask_write"), call("b", "ext_ask_order")]);
    let script = || Script::new(plain(), [calls(), done()]);
    script().survives_every_cut(Status::Completed);
    script().waiting(|items| resume(items, &decision(DecisionKind::Deny))).survives_every_cut(Status::Completed);
    let edit = |items: &[PendingItem]| {
        let edited = Some(Arguments::from_value(json!({"less": true})));
        resume(items, &Decision { edited_arguments: edited, ..approve() })
    };
    script().waiting(edit).survives_every_cut(Status::Completed);
}

#[test]
fn a_compaction_between_turns() {
    let compaction = Compaction { at_tokens: Some(0), keep_tokens: 0, model: None };
    let spec = Spec { rules: RunRules { compaction: Some(compaction), ..RunRules::default() }, ..plain() };
    let calls = [call("a", "mcp_files_write"), call("b", "mcp_files_read")];
    let journal = Script::new(spec, [Reply::calling(calls), done()]).survives_every_cut(Status::Completed);
    assert_eq!(journal.iter().filter(|event| matches!(event, Event::CompactionCompleted { .. })).count(), 1);
}

#[test]
fn a_denial_that_ends_the_run() {
    let spec = Spec { rules: RunRules { on_deny: OnDeny::Fail, ..RunRules::default() }, ..plain() };
    let script =
        Script::new(spec, [Reply::calling([call("a", "mcp_files_ask_write"), call("b", "ext_order")]), done()]);
    script.waiting(|items| resume(items, &decision(DecisionKind::Deny))).survives_every_cut(Status::Failed);
}

#[test]
fn a_tool_error_that_ends_the_run() {
    let spec = Spec { rules: RunRules { on_tool_error: OnToolError::Fail, ..RunRules::default() }, ..plain() };
    let script = Script::new(spec, [Reply::calling([call("a", "mcp_files_read"), call("b", "ext_order")]), done()]);
    let fail = |items: &[PendingItem]| {
        let ids = items.iter().filter_map(|item| item.call_id().cloned());
        Input::Resume(ids.map(|id| (id, Answer::error("out of stock"))).collect())
    };
    script.waiting(fail).survives_every_cut(Status::Failed);
}

#[test]
fn a_failed_or_cancelled_run_that_undoes_its_calls() {
    let spec =
        |on_tool_error| Spec { rules: RunRules { compensate: true, on_tool_error, ..RunRules::default() }, ..plain() };
    let calls = || [ToolCall::new("a", "mcp_files_write", json!({"n": 1})), call("b", "ext_order")];
    let replies = || [Reply::calling([call("x", "mcp_files_first_read")]), Reply::calling(calls())];
    let script = |on_tool_error| Script::new(spec(on_tool_error), replies());
    let undone = |journal: &[Event]| {
        let is_undo =
            |event: &&Event| matches!(event, Event::CallsStarted { calls } if calls[0].as_str().starts_with("undo_"));
        journal.iter().filter(is_undo).count()
    };
    let fail = |items: &[PendingItem]| {
        let is_external = |item: &&PendingItem| matches!(item.form(), AnswerForm::Result { .. });
        match items.iter().find(is_external) {
            Some(item) => {
                Input::Resume([(item.call_id().unwrap().clone(), Answer::error("none"))].into_iter().collect())
            }
            None => resume(items, &approve()),
        }
    };
    let failed = script(OnToolError::Fail).waiting(fail).survives_every_cut(Status::Failed);
    let cancel = |items: &[PendingItem]| match items.iter().any(|item| matches!(item.form(), AnswerForm::Result { .. }))
    {
        true => Input::Cancel { reason: None, partial_reply: None, expected_version: None },
        false => resume(items, &approve()),
    };
    let cancelled = script(OnToolError::Report).waiting(cancel).survives_every_cut(Status::Cancelled);
    assert_eq!((undone(&failed), undone(&cancelled)), (2, 2));
}

#[test]
fn an_answer_rejected_once() {
    let spec = Spec { rules: RunRules { validate_output: true, ..RunRules::default() }, ..plain() };
    Script::new(spec, [Reply::text("bad"), done()]).survives_every_cut(Status::Completed);
}

#[test]
fn calls_in_doubt_reported_or_requiring_approval() {
    for on_unknown_outcome in [OnUnknownOutcome::Report, OnUnknownOutcome::Ask] {
        let spec = Spec { rules: RunRules { on_unknown_outcome, ..RunRules::default() }, ..plain() };
        let calls = [call("a", "mcp_files_write"), call("b", "mcp_files_read"), call("c", "mcp_files_ask_write")];
        Script::new(spec, [Reply::calling(calls), done()]).survives_every_cut(Status::Completed);
    }
}

#[test]
fn the_turn_limit() {
    let spec = spec(Limits { max_iterations: 2, ..Limits::default() });
    let stubborn = Reply::calling([call("a", "mcp_files_read")]);
    Script::new(spec, [stubborn]).survives_every_cut(Status::Incomplete);
}

#[test]
fn an_exhausted_tool_budget() {
    let spec = spec(Limits { max_tool_interactions: 1, max_mcp_calls: Some(1), ..Limits::default() });
    let calls = || Reply::calling([call("a", "mcp_files_write"), call("b", "mcp_files_read")]);
    Script::new(spec, [calls(), calls(), done()]).survives_every_cut(Status::Completed);
}

#[test]
fn lower_tiers_run_in_sequence_or_dropped() {
    for tiers in [TierMode::Sequential, TierMode::Drop] {
        let spec = Spec { rules: RunRules { tiers, ..RunRules::default() }, ..plain() };
        let calls = [call("a", "ext_low_order"), call("b", "mcp_files_first_read"), call("c", "mcp_files_write")];
        Script::new(spec, [Reply::calling(calls), done()]).survives_every_cut(Status::Completed);
    }
}

#[test]
fn a_cancellation_of_a_waiting_run() {
    let script = Script::new(plain(), [Reply::calling([call("a", "ext_order"), call("b", "mcp_files_write")]), done()]);
    script
        .waiting(|_| Input::Cancel { reason: Some("enough".into()), partial_reply: None, expected_version: None })
        .survives_every_cut(Status::Cancelled);
}

#[test]
fn a_paused_reply_that_continues_with_a_call() {
    let pause = Reply { stop: Stop::Pause, ..Reply::text("one moment") };
    let replies = [pause, Reply::calling([call("a", "ext_order")]), done()];
    let script = Script::new(plain(), replies);
    script.survives_every_cut(Status::Completed);
    script.drive(vec![Event::Started(started(plain())), Event::MessageAdded { message: Message::user("hurry") }]);
}
