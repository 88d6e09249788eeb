//! A single tool call without a model: a run whose scripted model requests exactly that call and then reports its
//! result.
//!
//! It is a run like any other: arguments are validated, the policy is evaluated, approval may be required, the call is
//! journaled before it is sent, and spans are recorded. The model's replies follow from the transcript alone, so any
//! process can resume the run.

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use serde_json::{Map, Value};
use toolgate_core::chat::{Message, Part, Reply, Role};
use toolgate_core::error::{ErrorCode, Failure};
use toolgate_core::id::ModelName;
use toolgate_core::pattern::{NamePattern, Pattern};
use toolgate_core::run::{
    CallVerdict, DIRECT_CALL_MODEL, DecisionKind, Event, JournalEntry, Rejection, RunRules, Spec,
};
use toolgate_core::tool::{Origin, Outcome, Problem, Tool, ToolCall, ToolFilter};
use toolgate_ports::{Conversation, DeltaSink, Model, ModelFailure, ModelIdentity, ModelRequest};

use super::{Agent, AgentRunner, Execution, Request, RunnerError};

/// The id of the call in its run.
const CALL: &str = "call_1";

/// The state of the call of such a run.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolCallState {
    /// The call is pending or in progress.
    Open,
    /// The call was not sent.
    Rejected {
        /// The reason as a code.
        reason: Rejection,
        /// The reason as text.
        message: String,
        /// The validation problems, if the arguments are invalid.
        problems: Vec<Problem>,
    },
    /// The call was sent. The outcome may be unknown.
    Ended(Arc<Outcome>),
    /// The run ended for this reason before the call was sent.
    Abandoned(Failure),
}

impl AgentRunner {
    /// Calls a tool as an agent's model would, with the same checks. The run completes with the result; until then it
    /// may be pending like any other. The input of the request is ignored.
    pub async fn call_tool(
        &self,
        request: Request,
        tool: &str,
        arguments: &Map<String, Value>,
    ) -> Result<Execution, RunnerError> {
        let agent = self.agent(&request.agent)?;
        let tools = self.tools(&agent.name, None).await?;
        let Some(tool) = tools.get(tool) else {
            return Err(RunnerError::NoSuchTool { agent: request.agent, tool: tool.to_owned() });
        };
        match tool.origin {
            Origin::Mcp { .. } => {}
            Origin::External { .. } | Origin::Builtin { .. } => {
                return Err(RunnerError::NotOfAServer(tool.name.to_string()));
            }
        }
        let request = Request { input: asking(tool, arguments), tools: alone(&agent, tool), ..request };
        self.launch_request(Arc::new(caller(&agent)), request).await
    }

    /// The agent for a run with this specification.
    pub(super) fn agent_of(&self, spec: &Spec) -> Result<Arc<Agent>, RunnerError> {
        let agent = self.agent(&spec.agent)?;
        if spec.is_direct_call() { Ok(Arc::new(caller(&agent))) } else { with_model_options(agent, spec) }
    }
}

/// The agent with the model options of a run.
pub(super) fn with_model_options(agent: Arc<Agent>, spec: &Spec) -> Result<Arc<Agent>, RunnerError> {
    if spec.model_options.is_empty() {
        return Ok(agent);
    }
    agent.with_options(spec).map(Arc::new).map_err(|(model, why)| {
        let only = |options| Spec { model_options: options, ..spec.clone() };
        let option = spec.model_options.each().find(|(_, option)| agent.with_options(&only(option.clone())).is_err());
        RunnerError::UnusableModelOptions { model, option: option.map(|(name, _)| name), why }
    })
}

/// The state of the call, from the journal of its run. A recorded outcome counts however the run ends. A call that was
/// sent without one has an unknown outcome: it may have had an effect, whatever later events say about the run or about a
/// second attempt.
pub fn called(journal: &[JournalEntry]) -> ToolCallState {
    let facts = || journal.iter().rev().map(|recorded| &recorded.event);
    if let Some(outcome) = facts().find_map(end_of_call) {
        return ToolCallState::Ended(outcome.clone());
    }
    let was_sent = facts().any(|event| matches!(event, Event::CallsStarted { .. }));
    match facts().find_map(call_state) {
        Some(ToolCallState::Rejected { .. } | ToolCallState::Abandoned(_)) if was_sent => {
            ToolCallState::Ended(Outcome::Unknown.into())
        }
        Some(called) => called,
        None => ToolCallState::Open,
    }
}

fn end_of_call(event: &Event) -> Option<&Arc<Outcome>> {
    if let Event::CallCompleted { outcome, .. } = event { Some(outcome) } else { None }
}

/// The state after an event about a call that was not sent.
fn call_state(event: &Event) -> Option<ToolCallState> {
    let rejected = |reason, message: &str| {
        Some(ToolCallState::Rejected { reason, message: message.to_owned(), problems: Vec::new() })
    };
    if let Event::CallChecked { verdict: CallVerdict::Rejected { reason, message, problems }, .. } = event {
        return Some(ToolCallState::Rejected { reason: *reason, message: message.clone(), problems: problems.clone() });
    }
    if let Event::ApprovalDecided { decision, .. } = event
        && decision.answer == DecisionKind::Deny
    {
        let why = decision.reason.as_deref().unwrap_or("no reason was given");
        return rejected(Rejection::Denied, &format!("denied by {}: {why}", decision.by));
    }
    if let Event::Expired { .. } = event {
        return rejected(Rejection::Expired, "no answer arrived in time; the call was not made");
    }
    let Event::Ended { ending } = event else { return None };
    ending.failure().map(ToolCallState::Abandoned)
}

/// The agent with a scripted model that requests one call. It keeps the agent's servers, policy and limits, and drops
/// its instructions.
fn caller(agent: &Agent) -> Agent {
    Agent {
        model_name: ModelName::from(DIRECT_CALL_MODEL),
        model: Arc::new(SingleCallModel),
        fallback: Vec::new(),
        instructions: String::new(),
        required: Vec::new(),
        external_tools: Vec::new(),
        rules: RunRules {
            on_unknown_outcome: agent.rules.on_unknown_outcome,
            on_exceed: agent.rules.on_exceed,
            ..RunRules::default()
        },
        ..agent.clone()
    }
}

/// A filter for this tool alone, so that the journal does not contain the others. A tool that was renamed because of a
/// name conflict has its name only among the others.
fn alone(agent: &Agent, tool: &Tool) -> ToolFilter {
    if tool.own_name.is_some() || agent.pass_through {
        return ToolFilter::default();
    }
    let pattern = Pattern::exactly(tool.name.as_str());
    ToolFilter { allow: vec![NamePattern::from(pattern)], ..ToolFilter::default() }
}

/// The first message of such a run.
fn asking(tool: &Tool, arguments: &Map<String, Value>) -> Message {
    Message::user(format!("{} {}", tool.name, Value::Object(arguments.clone())))
}

/// Requests the call in the first message, then reports its result.
struct SingleCallModel;

impl Model for SingleCallModel {
    fn identity(&self) -> &ModelIdentity {
        static IDENTITY: LazyLock<ModelIdentity> = LazyLock::new(|| ModelIdentity {
            system: "toolgate".into(),
            provider: "toolgate".into(),
            model: DIRECT_CALL_MODEL.into(),
            settings: Value::Object(Map::new()),
        });
        &IDENTITY
    }

    fn converse(&self) -> Box<dyn Conversation> {
        Box::new(Self)
    }
}

#[async_trait]
impl Conversation for SingleCallModel {
    async fn reply(&mut self, request: &ModelRequest<'_>, _deltas: DeltaSink<'_>) -> Result<Reply, ModelFailure> {
        let has_called = request.messages.iter().any(|message| message.role == Role::Assistant);
        if has_called {
            return Ok(Reply::text(result_in(request.messages)));
        }
        let text = request.messages.first().map(|message| message.text()).unwrap_or_default();
        let call = text
            .split_once(' ')
            .and_then(|(name, arguments)| Some(ToolCall::new(CALL, name, serde_json::from_str(arguments).ok()?)));
        let unreadable = || Failure::new(ErrorCode::JournalCorrupt, "the run names no call to be made").into();
        call.map(|call| Reply::calling([call])).ok_or_else(unreadable)
    }
}

/// The text of the result in the messages.
fn result_in(messages: &[Arc<Message>]) -> String {
    let latest = messages.iter().rev().flat_map(|message| message.content.iter().rev());
    let result = latest.filter_map(Part::tool_result).next();
    result.map(|(_, content, _)| content.iter().filter_map(Part::as_text).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use toolgate_core::run::{Decision, Ending};

    fn journal(events: Vec<Event>) -> Vec<JournalEntry> {
        let record = |(seq, event)| JournalEntry { seq, at: Timestamp::UNIX_EPOCH, event };
        (0..).zip(events).map(record).collect()
    }

    fn sent() -> Event {
        Event::CallsStarted { calls: vec![CALL.into()] }
    }

    fn completed(outcome: &Arc<Outcome>) -> Event {
        Event::CallCompleted { call: CALL.into(), outcome: outcome.clone(), stderr: Vec::new(), wire: None }
    }

    fn cancelled() -> Event {
        Event::Ended { ending: Ending::Cancelled { reason: None, partial_reply: None } }
    }

    fn denied() -> Event {
        Event::ApprovalDecided { call: CALL.into(), decision: Decision::new(DecisionKind::Deny, "ann") }
    }

    #[test]
    fn a_call_that_has_its_end_has_it_however_the_run_ends() {
        let done = Arc::new(Outcome::failed(toolgate_core::tool::FailureKind::Timeout, "too slow"));
        assert_eq!(called(&journal(vec![sent(), completed(&done), cancelled()])), ToolCallState::Ended(done));
    }

    #[test]
    fn a_sent_call_without_an_end_has_an_unknown_outcome() {
        let unknown = ToolCallState::Ended(Outcome::Unknown.into());
        let expired = Event::Expired { call: CALL.into() };
        for settled in [cancelled(), denied(), expired] {
            assert_eq!(called(&journal(vec![sent(), settled.clone()])), unknown, "{settled:?}");
        }
        assert_eq!(called(&journal(vec![sent()])), ToolCallState::Open, "it is at work");
    }

    #[test]
    fn a_call_that_was_not_sent_was_not_made() {
        assert!(matches!(called(&journal(vec![cancelled()])), ToolCallState::Abandoned(_)));
        let ToolCallState::Rejected { reason, .. } = called(&journal(vec![denied()])) else { panic!("it was denied") };
        assert_eq!(reason, Rejection::Denied);
    }
}
