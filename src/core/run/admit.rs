//! Event validation: whether an event can be the next one of a journal. Reads the state, never changes it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::state::Phase;
use super::turn::{Call, CallState, Turn};
use super::{
    Authorization, CallVerdict, DecisionKind, Ending, Event, InvalidEvent, Rejection, Run, ToolAccess, Trigger,
};
use crate::chat::{Part, Reply, Role};
use crate::id::{CallId, ModelName};
use crate::tool::Tool;

impl Run {
    /// Whether the event can be the next one of the journal (law 1).
    pub fn admit(&self, event: &Event) -> Result<(), InvalidEvent> {
        let name = event.name();
        if matches!(self.phase, Phase::Ended(_)) {
            return Err(InvalidEvent::AfterTheEnding { event: name });
        }
        let out_of_place = || Err(InvalidEvent::OutOfPlace { event: name, phase: self.phase.describe() });
        let contradiction = |why| Err(InvalidEvent::Contradiction { event: name, why });
        // Refused here, no driver takes the step, also one that has not heard of the pause (decision 0040).
        if self.is_prevented_by_pause(event) {
            return contradiction("the run is paused");
        }
        if let Some(why) = self.contradicts_compensation(event) {
            return contradiction(why);
        }
        match (event, &self.phase) {
            (Event::Started(_), _) => Err(InvalidEvent::NotTheBeginning { event: name, seq: self.length }),
            (Event::Resumed { limits, .. }, _) => match (limits, &self.started.trigger) {
                (None, _) | (Some(_), Trigger::Fork { .. } | Trigger::Retry { .. }) => Ok(()),
                (Some(_), Trigger::Manual | Trigger::Api | Trigger::Schedule { .. } | Trigger::Compaction) => {
                    contradiction("only a fork or a retry starts a budget of its own")
                }
            },
            (Event::Queued | Event::Admitted | Event::Waited { .. } | Event::Interrupted { .. }, _) => Ok(()),
            (Event::ToolsListed { .. }, Phase::Ready { .. }) => Ok(()),
            (Event::ApprovalsResolved { granted }, Phase::Ready { .. }) => match &self.tools {
                Some(tools) if granted.iter().all(|granted| tools.get(granted.tool.as_str()).is_some()) => Ok(()),
                Some(_) => contradiction("it grants a tool that was not listed"),
                None => contradiction("no tools were listed yet"),
            },
            (Event::ModelCalled { model, attempt, tool_access }, phase) => {
                self.admit_model_call(model, *attempt, *tool_access, phase)
            }
            (Event::ModelCallRefused { .. }, _) => self.admit_refused_call(),
            (Event::ModelReplied { reply }, Phase::Asking(_)) => self.admit_reply(reply),
            (Event::ModelFailed { error, cooldown_until, .. }, Phase::Asking(_)) => {
                match (cooldown_until.is_some(), self.triggers_fallback(error)) {
                    (true, true) | (false, false) => Ok(()),
                    (true, false) => contradiction("a model cools down only when it is left for another one"),
                    (false, true) => contradiction("a model that is left for another one cools down"),
                }
            }
            (Event::OutputValidated { verdict }, Phase::Validating { tool_access, stop, .. }) => {
                let expected =
                    self.started.spec.rules.validate_output && !self.is_last_word(*tool_access) && stop.is_whole();
                if expected || self.is_about_empty_answer(verdict) {
                    return Ok(());
                }
                contradiction("this answer is not to be validated")
            }
            (Event::TierSelected { run, deferred, .. }, Phase::Working { turn, tool_access }) => {
                if *tool_access != ToolAccess::Enabled {
                    return contradiction("no tools were offered");
                }
                admit_tier(turn, run, deferred)
            }
            (Event::CallChecked { call, verdict, .. }, Phase::Working { turn, .. }) => {
                admit_verdict(turn.call(name, call)?, verdict)
            }
            (Event::ApprovalDecided { call, decision }, Phase::Working { turn, .. }) => {
                let call = turn.call(name, call)?;
                if decision.edited_arguments.is_some() && decision.answer == DecisionKind::Deny {
                    return contradiction("a denial cannot edit arguments");
                }
                if decision.edited_arguments.as_ref().is_some_and(|edited| !call.is_callable_with(edited)) {
                    return contradiction("edited arguments are a JSON object, and those of a question are one");
                }
                expect_state(name, call, matches!(call.state, CallState::Asked { .. }))
            }
            (Event::CallDrifted { call, differences, tool }, Phase::Working { turn, .. }) => {
                let call = turn.call(name, call)?;
                if differences.is_empty() {
                    return contradiction("nothing is different");
                }
                let same_origin = |now: &Arc<Tool>| call.tool.as_ref().is_some_and(|was| was.origin == now.origin);
                if tool.as_ref().is_some_and(|now| !same_origin(now)) {
                    return contradiction("another tool is not the same tool, changed");
                }
                let leaves = call.state == CallState::Authorized && call.is_sent_by_us();
                expect_state(name, call, leaves || call.is_approved() || call.is_repeated_freely())
            }
            (Event::Extended { call, .. } | Event::Expired { call }, Phase::Working { turn, .. }) => {
                let call = turn.call(name, call)?;
                expect_state(name, call, call.is_awaited())
            }
            (Event::QuestionAnswered { call, .. }, Phase::Working { turn, .. }) => {
                let call = turn.call(name, call)?;
                expect_state(name, call, call.is_answerable() && call.is_question())
            }
            (Event::CallsStarted { calls }, Phase::Working { turn, .. }) => admit_start(turn, calls),
            (Event::CallCompleted { call, .. }, Phase::Working { turn, .. }) => {
                let call = turn.call(name, call)?;
                let under_way = matches!(call.state, CallState::Started | CallState::Task(_));
                // A call that was sent before and is not sent again has an end, and is not reported as not run.
                let under_way = under_way || (call.state == CallState::Selected && call.sent);
                let open = under_way || (call.is_answerable() && !call.is_question());
                expect_state(name, call, open)
            }
            (Event::InputRequested { call, needed, .. }, Phase::Working { turn, .. }) => {
                if needed.questions.is_empty() {
                    return contradiction("it asks nothing");
                }
                let call = turn.call(name, call)?;
                expect_state(name, call, call.state == CallState::Started && !call.is_builtin())
            }
            (Event::InputRequired { call, needed, .. }, Phase::Working { turn, .. }) => {
                if needed.questions.is_empty() {
                    return contradiction("it asks nothing");
                }
                admit_news(name, turn.call(name, call)?)
            }
            (Event::TaskStarted { call, .. }, Phase::Working { turn, .. }) => admit_news(name, turn.call(name, call)?),
            (Event::InputGiven { call, given }, Phase::Working { turn, .. }) => {
                let call = turn.call(name, call)?;
                let Some(needed) = call.elicitation() else { return expect_state(name, call, false) };
                if !needed.questions.keys().eq(given.reactions.keys()) {
                    return contradiction("it does not answer the questions that were asked");
                }
                let is_sent_on = matches!(call.state, CallState::NeedsInput(_)) && given.accepts();
                if is_sent_on && call.needs_consent_to_repeat(needed) && !given.repeat {
                    return contradiction("a call that had begun is sent a second time only with an explicit yes");
                }
                Ok(())
            }
            (Event::MessageAdded { message }, _) => {
                let plain =
                    message.content.iter().all(|part| !matches!(part, Part::ToolUse { .. } | Part::ToolResult { .. }));
                if message.role == Role::User && plain && !message.is_blank() {
                    return Ok(());
                }
                contradiction("an added message is a user message with something in it, without tool calls or results")
            }
            (Event::Paused { .. }, _) => self.admit_pause(),
            (Event::Unpaused { .. }, _) => self.admit_unpause(),
            (Event::CompactionStarted { attempt, .. }, _) => self.admit_compaction(*attempt),
            (Event::CompactionCompleted { summary, .. }, Phase::Compacting(_)) => match summary.trim().is_empty() {
                true => contradiction("a summary has text"),
                false => Ok(()),
            },
            (Event::CompactionFailed { .. }, Phase::Compacting(_)) => Ok(()),
            (Event::CompensationStarted { ending, undo }, _) => self.admit_compensation(ending, undo),
            (Event::Ended { ending }, phase) => self.admit_ending(ending, phase),
            (
                Event::ToolsListed { .. }
                | Event::ApprovalsResolved { .. }
                | Event::ModelReplied { .. }
                | Event::ModelFailed { .. }
                | Event::OutputValidated { .. }
                | Event::CompactionCompleted { .. }
                | Event::CompactionFailed { .. }
                | Event::TierSelected { .. }
                | Event::CallChecked { .. }
                | Event::ApprovalDecided { .. }
                | Event::CallDrifted { .. }
                | Event::Extended { .. }
                | Event::Expired { .. }
                | Event::QuestionAnswered { .. }
                | Event::CallsStarted { .. }
                | Event::CallCompleted { .. }
                | Event::InputRequested { .. }
                | Event::InputRequired { .. }
                | Event::InputGiven { .. }
                | Event::TaskStarted { .. },
                _,
            ) => out_of_place(),
        }
    }

    fn admit_model_call(
        &self,
        model: &ModelName,
        attempt: u32,
        tool_access: ToolAccess,
        phase: &Phase,
    ) -> Result<(), InvalidEvent> {
        let event = "llm.call.started";
        let (expected, same_offer) = match phase {
            Phase::Ready { .. } if self.tools.is_none() => {
                return Err(InvalidEvent::Contradiction { event, why: "no tools were listed yet" });
            }
            Phase::Ready { .. } => (1, tool_access == self.tool_access()),
            Phase::Asking(attempts) | Phase::Retrying { attempts, .. } => {
                (attempts.count + 1, tool_access == attempts.tool_access)
            }
            Phase::Compacting(_)
            | Phase::Validating { .. }
            | Phase::Accepted { .. }
            | Phase::Working { .. }
            | Phase::Ended(_) => {
                return Err(InvalidEvent::OutOfPlace { event, phase: phase.describe() });
            }
        };
        let contradiction = |why| Err(InvalidEvent::Contradiction { event, why });
        match (attempt == expected, same_offer) {
            (false, _) => contradiction("attempts are counted from 1 without gaps"),
            (true, false) => contradiction("the budget says otherwise about tools"),
            (true, true) if !self.may_ask(model) => contradiction("it is not this model's turn"),
            (true, true) => Ok(()),
        }
    }

    fn admit_reply(&self, reply: &Reply) -> Result<(), InvalidEvent> {
        let mut ids = BTreeSet::new();
        for call in reply.calls() {
            if call.id.as_str().is_empty() || self.calls_seen.contains(&call.id) || !ids.insert(call.id) {
                return Err(InvalidEvent::Contradiction {
                    event: "llm.call.completed",
                    why: "call ids are unique in a run",
                });
            }
        }
        Ok(())
    }

    fn admit_ending(&self, ending: &Ending, phase: &Phase) -> Result<(), InvalidEvent> {
        let fits = match (ending, phase) {
            (Ending::Failed { .. } | Ending::Cancelled { .. }, _) => true,
            (Ending::Completed { .. }, Phase::Accepted { .. }) => true,
            (Ending::Completed { .. }, Phase::Ready { .. }) => self.is_compaction_alone(),
            (Ending::Completed { .. }, Phase::Validating { .. }) => !self.started.spec.rules.validate_output,
            (Ending::Incomplete { .. }, Phase::Validating { tool_access, .. }) => {
                *tool_access == ToolAccess::FinalAnswer
            }
            (Ending::Incomplete { .. }, Phase::Ready { .. }) => self.last_word.is_some() || self.limit_step().is_some(),
            (Ending::Incomplete { .. }, Phase::Retrying { .. }) => self.failed_last_word().is_some(),
            (Ending::Expired, Phase::Working { .. }) => true,
            (Ending::Expired, _) if self.pause().is_some() => true,
            (
                Ending::Completed { .. } | Ending::Incomplete { .. } | Ending::Expired,
                Phase::Ready { .. }
                | Phase::Asking(_)
                | Phase::Compacting(_)
                | Phase::Retrying { .. }
                | Phase::Validating { .. }
                | Phase::Accepted { .. }
                | Phase::Working { .. }
                | Phase::Ended(_),
            ) => false,
        };
        if fits { Ok(()) } else { Err(InvalidEvent::OutOfPlace { event: "execution.ended", phase: phase.describe() }) }
    }
}

fn expect_state(event: &'static str, call: &Call, fits: bool) -> Result<(), InvalidEvent> {
    let wrong =
        || InvalidEvent::WrongCallState { event, call: call.requested.id.clone(), state: call.state.describe() };
    if fits { Ok(()) } else { Err(wrong()) }
}

/// Whether a server can have reported something about a call: the call was sent, or is a task at the server.
fn admit_news(event: &'static str, call: &Call) -> Result<(), InvalidEvent> {
    expect_state(event, call, matches!(call.state, CallState::Started | CallState::Task(_)))
}

fn admit_tier(turn: &Turn, run: &[CallId], deferred: &[CallId]) -> Result<(), InvalidEvent> {
    let event = "tool.tier.selected";
    let mut named = BTreeSet::new();
    for id in run.iter().chain(deferred) {
        let call = turn.call(event, id)?;
        expect_state(event, call, call.state == CallState::New && call.tool.is_some())?;
        if !named.insert(id) {
            return Err(InvalidEvent::Contradiction { event, why: "it names a call twice" });
        }
    }
    let open = |call: &&Call| !call.is_settled() && call.tool.is_some();
    let complete = turn.calls.iter().filter(open).all(|call| named.contains(&call.requested.id));
    match (run.is_empty(), complete) {
        (false, true) => Ok(()),
        (true, _) => Err(InvalidEvent::Contradiction { event, why: "a tier has at least one call" }),
        (false, false) => Err(InvalidEvent::Contradiction { event, why: "it leaves calls of the turn out" }),
    }
}

fn admit_verdict(call: &Call, verdict: &CallVerdict) -> Result<(), InvalidEvent> {
    let callable = call.is_callable_with(call.arguments());
    let fits = match verdict {
        CallVerdict::Run { .. } | CallVerdict::Ask { .. } if !callable => {
            let why = "arguments that are no JSON object, or no question, never run";
            return Err(InvalidEvent::Contradiction { event: "tool.checked", why });
        }
        CallVerdict::Run { by: Authorization::HumanApproval } => call.is_approved(),
        // A call that was sent is sent again only with a person's approval.
        CallVerdict::Run { by: Authorization::Policy { .. } | Authorization::Grant { .. } } => {
            call.state == CallState::Selected && !call.sent
        }
        CallVerdict::Ask { .. } => call.state == CallState::Selected || call.is_doubtful(),
        CallVerdict::Rejected { reason, .. } => match reason {
            Rejection::Unknown => {
                let is_gone = call.state == CallState::Selected && !call.is_sent_by_us();
                is_gone || (call.state == CallState::New && call.tool.is_none())
            }
            Rejection::Budget => {
                call.state == CallState::New
                    || (call.state == CallState::Authorized && call.is_sent_by_us() && !call.sent)
            }
            Rejection::InvalidArguments | Rejection::Denied => call.state == CallState::Selected && !call.sent,
            Rejection::Deferred | Rejection::Expired => false,
        },
    };
    expect_state("tool.checked", call, fits)
}

fn admit_start(turn: &Turn, calls: &[CallId]) -> Result<(), InvalidEvent> {
    let event = "tool.started";
    let mut named = BTreeSet::new();
    for id in calls {
        let call = turn.call(event, id)?;
        let may = call.state == CallState::Authorized || call.is_repeated_freely();
        expect_state(event, call, may && call.is_sent_by_us())?;
        if !named.insert(id) {
            return Err(InvalidEvent::Contradiction { event, why: "it starts a call twice" });
        }
    }
    if calls.is_empty() {
        return Err(InvalidEvent::Contradiction { event, why: "it starts nothing" });
    }
    Ok(())
}
