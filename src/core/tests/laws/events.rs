//! Events of every kind, about current, past or unknown calls. Most of them are not admitted.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use toolgate_core::chat::{Message, Reply, Usage, Usd};
use toolgate_core::error::{ErrorCode, Failure};
use toolgate_core::id::CallId;
use toolgate_core::policy::{Judgement, OnTimeout, Policy, Subject};
use toolgate_core::run::{
    Authorization, CallEstimate, CallState, CallVerdict, Channel, Decision, DecisionKind, Ending, Event, HumanAnswer,
    Limit, OutputVerdict, Rejection, Run, ServerWait, ToolAccess, ToolGrant,
};
use toolgate_core::tool::{
    Arguments, Choice, Difference, ElicitationRequest, ElicitationResponse, Question, TaskHandle, Tool, ToolName,
};

use crate::answers::{decision, reactions};
use crate::choices::Tape;
use crate::fixtures::{
    any_failure, any_limits, any_outcome, any_reply, larger_toolset, problem, smaller_toolset, toolset, trace,
};

/// The judgement of a call about which no rule says anything.
pub(crate) fn asked_by_default(tool: &Tool) -> Judgement {
    Policy::ask_always().judge(&Subject { tool, agent: None, principal: None, arguments: None })
}

pub(crate) fn granted(tool: ToolName) -> ToolGrant {
    ToolGrant { tool, grant: "grant_1".into(), arguments: None, when: None, asked_by: None, expires_at: None }
}

pub(crate) fn asked(reason: &str) -> CallVerdict {
    CallVerdict::Ask {
        rule: Some("ask".into()),
        reason: reason.into(),
        policy: None,
        answer_timeout_s: None,
        on_timeout: OnTimeout::Expire,
        may_be_denied: false,
    }
}

/// An extension of a deadline by an hour.
pub(crate) fn extended(call: CallId, now: Timestamp) -> Event {
    let until = now.saturating_add(SignedDuration::from_hours(1)).unwrap();
    Event::Extended { call, until, by: "ada".into(), via: Channel::Library }
}

/// A drift event: the call's tool has changed, in words only or in its definition.
pub(crate) fn drifted(run: &Run, call: CallId) -> Event {
    let tool = run.call(&call).and_then(|call| call.tool.clone());
    let differences = vec![Difference::new("policy", "ask: because", "ask: because of something else")];
    Event::CallDrifted { call, differences, tool }
}

pub(crate) fn rejected(reason: Rejection) -> CallVerdict {
    CallVerdict::Rejected { reason, message: format!("refused: {}", reason.as_str()), problems: Vec::new() }
}

/// The ids of every call of a journal.
pub(crate) fn ids(journal: &[Event]) -> Vec<CallId> {
    let mut ids = Vec::new();
    for event in journal {
        if let Event::ModelReplied { reply } = event {
            ids.extend(reply.calls().map(|call| call.id));
        }
        if let Event::CompensationStarted { undo, .. } = event {
            ids.extend(undo.iter().map(|undo| undo.call.id.clone()));
        }
    }
    ids
}

/// A random report of a server about a call: mostly its end.
pub(crate) fn any_news(tape: &mut Tape, call: CallId) -> Event {
    match tape.below(12) {
        10 => Event::InputRequired { call, needed: Arc::new(any_questions(tape)), wire: None },
        11 => Event::TaskStarted {
            call,
            task: Arc::new(TaskHandle { id: "t1".into(), message: None, poll_ms: Some(5), ttl_ms: None }),
            wire: None,
        },
        _ => Event::CallCompleted { call, outcome: Arc::new(any_outcome(tape)), stderr: Vec::new(), wire: None },
    }
}

pub(crate) fn any_questions(tape: &mut Tape) -> ElicitationRequest {
    let schema = json!({"type": "object", "properties": {"size": {"type": "integer", "default": 3}}});
    let form = Question::Form { message: "how large?".into(), schema };
    let url = Question::Url { message: "sign here".into(), url: "https://sign.example/1".into() };
    let mut questions = BTreeMap::from([("a".to_owned(), form)]);
    if tape.once_in(3) {
        questions.insert("b".into(), url);
    }
    let state = tape.once_in(2).then(|| "opaque".to_owned());
    let restarts = tape.once_in(3);
    ElicitationRequest { questions, state, task: None, restarts, interrupted: restarts && tape.once_in(2) }
}

/// The start of a compensation: as the run expects it, or otherwise.
fn compensation(tape: &mut Tape, run: &Run) -> Event {
    let failed = Ending::Failed { error: Failure::new(ErrorCode::Internal, "wild") };
    let ending = tape
        .pick(&[
            failed,
            Ending::Cancelled { reason: Some("wild".into()), partial_reply: Some("Wi".into()) },
            Ending::Expired,
        ])
        .clone();
    match run.ending_event(ending) {
        Event::CompensationStarted { ending, mut undo } if tape.once_in(2) => {
            undo.reverse();
            Event::CompensationStarted { ending, undo }
        }
        Event::Ended { ending } => Event::CompensationStarted { ending, undo: Vec::new() },
        expected => expected,
    }
}

/// A random event of any kind, about current, past or unknown calls.
pub(crate) fn wild_event(tape: &mut Tape, run: &Run, journal: &[Event], now: Timestamp) -> Event {
    let mut known = ids(journal);
    known.extend(["c0".into(), "unknown".into()]);
    known.reverse();
    let some = |tape: &mut Tape| -> Vec<CallId> { known.iter().filter(|_| tape.once_in(2)).cloned().collect() };
    match tape.below(33) {
        29 => Event::Interrupted { alive_at: tape.once_in(2).then_some(now) },
        30 => {
            let error = tape.once_in(2).then(|| "it is away".to_owned());
            Event::Waited {
                waits: vec![ServerWait { server: "files".into(), since: now, ms: 40, connect_ms: Some(30), error }],
            }
        }
        31 => Event::Queued,
        32 => Event::Admitted,
        28 => compensation(tape, run),
        27 => Event::Paused { by: "ada".into(), via: Channel::Library, reason: None },
        26 if tape.once_in(3) => Event::ModelCallRefused {
            model: "first".into(),
            limit: *tape.pick(&[Limit::Cost, Limit::Governor]),
            reason: "too dear".into(),
            estimate: CallEstimate { input_tokens: 9, output_tokens: Some(9), cost_usd: Usd::try_from(0.5).ok() },
        },
        26 => Event::Unpaused {
            by: "ada".into(),
            via: Channel::Library,
            limits: tape.once_in(2).then(|| any_limits(tape).into()),
        },
        24 => Event::CompactionStarted {
            model: "first".into(),
            attempt: 1 + tape.below(2) as u32,
            replaces: tape.below(4) as u64,
            keeps: tape.below(6) as u64,
        },
        25 => match tape.below(3) {
            0 => Event::CompactionFailed { error: any_failure(tape), usage: Usage::default() },
            text => Event::CompactionCompleted {
                summary: [" ", "wild summary"][text - 1].into(),
                usage: Usage::default(),
                model: "first".into(),
            },
        },
        23 => extended(tape.pick(&known).clone(), now),
        22 => Event::InputRequested {
            call: tape.pick(&known).clone(),
            needed: Arc::new(any_questions(tape)),
            until: None,
        },
        19 => drifted(run, tape.pick(&known).clone()),
        20 => Event::Expired { call: tape.pick(&known).clone() },
        21 => Event::QuestionAnswered {
            call: tape.pick(&known).clone(),
            answer: HumanAnswer { choice: Choice::text("wild"), by: "ada".into(), via: Channel::Library },
        },
        0 => Event::Resumed { trace: trace(9), limits: None },
        1 => Event::ToolsListed { toolset: (*tape.pick(&[toolset, smaller_toolset, larger_toolset]))() },
        2 => {
            let names = ["mcp_files_ask_write", "mcp_web_ask_post", "mcp_none"];
            Event::ApprovalsResolved { granted: vec![granted(ToolName::parse(names[tape.below(3)]).unwrap())].into() }
        }
        3 => Event::ModelCalled {
            model: (*tape.pick(&["first", "second", "third", "unknown"])).into(),
            attempt: 1 + tape.below(4) as u32,
            tool_access: *tape.pick(&[ToolAccess::Enabled, ToolAccess::BudgetExhausted, ToolAccess::FinalAnswer]),
        },
        4 => {
            let reply = any_reply(tape, run.tools().unwrap_or(&toolset()), ToolAccess::Enabled);
            let reply = if tape.once_in(2) { run.with_unique_ids(reply) } else { reply };
            Event::ModelReplied { reply: Arc::new(reply) }
        }
        5 => match tape.below(3) {
            0 => Event::ModelFailed { error: any_failure(tape), usage: Usage::default(), cooldown_until: None },
            1 => Event::ModelFailed { error: any_failure(tape), usage: Usage::default(), cooldown_until: Some(now) },
            _ => run.model_failed(any_failure(tape), Usage::default(), now),
        },
        6 => Event::OutputValidated { verdict: OutputVerdict::Valid { value: None } },
        7 => Event::OutputValidated { verdict: OutputVerdict::Invalid { problems: vec![problem()] } },
        8 => {
            let (run, deferred) = (some(tape), some(tape));
            Event::TierSelected { priority: 0, run, deferred }
        }
        9 => Event::TierSelected { priority: 0, run: open(run, journal), deferred: Vec::new() },
        10 => {
            let verdict = match tape.below(9) {
                0 => CallVerdict::Run { by: Authorization::Grant { grant: "grant_1".into() } },
                1 => asked("wild"),
                8 => CallVerdict::Run { by: Authorization::HumanApproval },
                n => rejected(
                    [
                        Rejection::Unknown,
                        Rejection::InvalidArguments,
                        Rejection::Denied,
                        Rejection::Budget,
                        Rejection::Deferred,
                        Rejection::Expired,
                    ][n - 2],
                ),
            };
            Event::CallChecked { call: tape.pick(&known).clone(), verdict, advisory: Vec::new() }
        }
        11 => {
            let answer = *tape.pick(&[DecisionKind::Approve, DecisionKind::Deny]);
            let edited = tape.once_in(3).then(|| Arguments::from_value(json!({"wild": 1})));
            let decision = Decision { edited_arguments: edited, ..decision(answer) };
            Event::ApprovalDecided { call: tape.pick(&known).clone(), decision }
        }
        12 => Event::CallsStarted { calls: some(tape) },
        13 => Event::CallCompleted {
            call: tape.pick(&known).clone(),
            outcome: Arc::new(any_outcome(tape)),
            stderr: Vec::new(),
            wire: None,
        },
        14 => Event::MessageAdded {
            message: match tape.below(3) {
                0 => Message::user(format!("wild {}", journal.len())),
                1 => Message::assistant("I am the model"),
                _ => Message { content: Reply::empty().content, ..Message::user("") },
            },
        },
        15 => match journal.first() {
            Some(started) => started.clone(),
            None => Event::Resumed { trace: trace(9), limits: None },
        },
        16 => any_news(tape, known[0].clone()),
        17 => {
            let keys = ["a".to_owned(), "b".to_owned()].into_iter().take(1 + tape.below(2));
            let given = reactions(keys.map(|key| (key, ElicitationResponse::decline())));
            Event::InputGiven { call: tape.pick(&known).clone(), given }
        }
        _ if tape.once_in(4) => Event::Ended {
            ending: match tape.below(5) {
                0 => Ending::Completed {
                    output: toolgate_core::run::Output { text: "wild".into(), ..Default::default() },
                },
                1 => Ending::Expired,
                2 => Ending::Cancelled { reason: None, partial_reply: None },
                3 => Ending::Incomplete { limit: toolgate_core::run::Limit::Iterations, output: None },
                _ => Ending::Failed { error: Failure::new(ErrorCode::Internal, "wild") },
            },
        },
        _ => Event::CallsStarted { calls: open(run, journal) },
    }
}

/// The calls of the open turn that are not settled.
fn open(run: &Run, journal: &[Event]) -> Vec<CallId> {
    let is_open = |id: &CallId| run.call(id).is_some_and(|call| !matches!(call.state, CallState::Settled(_)));
    ids(journal).into_iter().filter(is_open).collect()
}
