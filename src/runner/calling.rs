//! One call of one tool, without a model: a run whose model asks for exactly that call, and then says what came of it.
//!
//! It is a run like any other: its arguments are validated, the policy is asked, a person may be asked, the call is in the
//! journal before it is sent, and there are spans of it. What the model says follows from the transcript alone, so that
//! another process goes on with the run as this one would.

use std::sync::{Arc, LazyLock};

use async_trait::async_trait;
use serde_json::{Map, Value};

use super::{Agent, AgentRunner, Execution, Request, RunnerError};
use crate::core::chat::{Message, Part, Reply, Role};
use crate::core::error::{ErrorCode, Failure};
use crate::core::id::ModelName;
use crate::core::pattern::{NamePattern, Pattern};
use crate::core::run::{Answer, CallVerdict, Event, OnDeny, Recorded, Rejection, Spec};
use crate::core::tool::{Origin, Outcome, Problem, Tool, ToolCall, ToolFilter};
use crate::ports::{Conversation, DeltaSink, Model, ModelFailure, ModelIdentity, ModelRequest};

/// What runs of one call name as their model. No configured model can be called so.
const MODEL: &str = "toolgate/call";

/// The id of the call in its run.
const CALL: &str = "call_1";

/// What has become of the call of a run that is one.
#[derive(Clone, Debug, PartialEq)]
pub enum Called {
    /// Nothing yet: it is under way, or waits for somebody.
    Open,
    /// It was not made.
    Rejected {
        /// Why, for machines.
        reason: Rejection,
        /// Why, for people.
        message: String,
        /// What is wrong with the arguments, problem by problem, when they do not fit.
        problems: Vec<Problem>,
    },
    /// It was made; with an unknown outcome where nobody knows what came of it.
    Ended(Arc<Outcome>),
    /// The run ended, for this reason, before it was made.
    Abandoned(Failure),
}

impl AgentRunner {
    /// Calls a tool as the model of an agent would, with everything an agent's call is subject to. The run completes with the
    /// result; until then it may be pending, as any other. What the request says is to be done is not looked at.
    pub async fn call_tool(
        &self,
        request: Request,
        tool: &str,
        arguments: &Map<String, Value>,
    ) -> Result<Execution, RunnerError> {
        let agent = self.agent(&request.agent)?;
        let tools = self.tools(&agent.name).await?;
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
        self.start_as(Arc::new(caller(&agent)), request).await
    }

    /// The agent as a run with this specification needs it.
    pub(super) fn agent_of(&self, spec: &Spec) -> Result<Arc<Agent>, RunnerError> {
        let agent = self.agent(&spec.agent)?;
        Ok(if spec.model.as_str() == MODEL { Arc::new(caller(&agent)) } else { agent })
    }
}

/// What has become of the call, by the journal of its run. However the run ends, a call that has its end has it; and what was
/// sent may have taken effect, whatever is said afterwards of the run or of a second time.
pub fn called(journal: &[Recorded]) -> Called {
    let facts = || journal.iter().rev().map(|recorded| &recorded.event);
    if let Some(outcome) = facts().find_map(end_of_call) {
        return Called::Ended(outcome.clone());
    }
    let was_sent = facts().any(|event| matches!(event, Event::CallsStarted { .. }));
    match facts().find_map(came_of) {
        Some(Called::Rejected { .. } | Called::Abandoned(_)) if was_sent => Called::Ended(Outcome::Unknown.into()),
        Some(called) => called,
        None => Called::Open,
    }
}

fn end_of_call(event: &Event) -> Option<&Arc<Outcome>> {
    if let Event::CallCompleted { outcome, .. } = event { Some(outcome) } else { None }
}

/// What a fact says of a call that is not sent.
fn came_of(event: &Event) -> Option<Called> {
    let rejected =
        |reason, message: &str| Some(Called::Rejected { reason, message: message.to_owned(), problems: Vec::new() });
    match event {
        Event::CallChecked { verdict: CallVerdict::Rejected { reason, message, problems }, .. } => {
            Some(Called::Rejected { reason: *reason, message: message.clone(), problems: problems.clone() })
        }
        Event::ApprovalDecided { decision, .. } if decision.answer == Answer::Deny => {
            let why = decision.reason.as_deref().unwrap_or("no reason was given");
            rejected(Rejection::Denied, &format!("denied by {}: {why}", decision.by))
        }
        Event::Expired { .. } => rejected(Rejection::Expired, "nobody answered in time; the call was not made"),
        Event::Ended { ending } => ending.failure().map(Called::Abandoned),
        Event::Started(_)
        | Event::Resumed { .. }
        | Event::ToolsListed { .. }
        | Event::ApprovalsResolved { .. }
        | Event::ModelCalled { .. }
        | Event::ModelReplied { .. }
        | Event::ModelFailed { .. }
        | Event::OutputValidated { .. }
        | Event::TierSelected { .. }
        | Event::CallChecked { .. }
        | Event::ApprovalDecided { .. }
        | Event::CallDrifted { .. }
        | Event::Extended { .. }
        | Event::QuestionAnswered { .. }
        | Event::CallsStarted { .. }
        | Event::CallCompleted { .. }
        | Event::InputRequested { .. }
        | Event::InputRequired { .. }
        | Event::InputGiven { .. }
        | Event::TaskStarted { .. }
        | Event::MessageAdded { .. } => None,
    }
}

/// The agent with what asks for one call in the place of its model: its servers, its policy and its limits, and nothing of
/// what it would say.
fn caller(agent: &Agent) -> Agent {
    Agent {
        model_name: ModelName::from(MODEL),
        model: Arc::new(OneCall),
        fallback: Vec::new(),
        instructions: String::new(),
        external_tools: Vec::new(),
        ask_human: None,
        on_deny: OnDeny::Tell,
        output_schema: None,
        validate_output: false,
        ..agent.clone()
    }
}

/// Of the agent's tools only this one, so that the journal need not hold the others. A tool whose name is taken has its name
/// only among the others.
fn alone(agent: &Agent, tool: &Tool) -> ToolFilter {
    if tool.own_name.is_some() || agent.pass_through {
        return ToolFilter::default();
    }
    let pattern = Pattern::exactly(tool.name.as_str());
    ToolFilter { allow: vec![NamePattern::from(pattern)], ..ToolFilter::default() }
}

/// The message that such a run begins with.
fn asking(tool: &Tool, arguments: &Map<String, Value>) -> Message {
    Message::user(format!("{} {}", tool.name, Value::Object(arguments.clone())))
}

/// Asks for the call that the first message names, and then says its result.
struct OneCall;

impl Model for OneCall {
    fn identity(&self) -> &ModelIdentity {
        static IDENTITY: LazyLock<ModelIdentity> = LazyLock::new(|| ModelIdentity {
            system: "toolgate".into(),
            provider: "toolgate".into(),
            model: MODEL.into(),
            settings: Value::Object(Map::new()),
        });
        &IDENTITY
    }

    fn converse(&self) -> Box<dyn Conversation> {
        Box::new(Self)
    }
}

#[async_trait]
impl Conversation for OneCall {
    async fn reply(&mut self, request: &ModelRequest<'_>, _deltas: DeltaSink<'_>) -> Result<Reply, ModelFailure> {
        let has_called = request.messages.iter().any(|message| message.role == Role::Assistant);
        if has_called {
            return Ok(Reply::text(result_in(request.messages)));
        }
        let asked = request.messages.first().map(|message| message.text()).unwrap_or_default();
        let call = asked
            .split_once(' ')
            .and_then(|(name, arguments)| Some(ToolCall::new(CALL, name, serde_json::from_str(arguments).ok()?)));
        let unreadable = || Failure::new(ErrorCode::JournalCorrupt, "the run names no call to be made").into();
        call.map(|call| Reply::calling([call])).ok_or_else(unreadable)
    }
}

/// The text of the result that is there.
fn result_in(messages: &[Arc<Message>]) -> String {
    let latest = messages.iter().rev().flat_map(|message| message.content.iter().rev());
    let mut results = latest.filter_map(|part| match part {
        Part::ToolResult { content, .. } => Some(content.iter().filter_map(Part::as_text).collect::<String>()),
        Part::Text { .. }
        | Part::Image(_)
        | Part::Audio(_)
        | Part::Resource { .. }
        | Part::Reasoning { .. }
        | Part::ToolUse { .. } => None,
    });
    results.next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::core::run::{Decision, Ending};

    fn journal(events: Vec<Event>) -> Vec<Recorded> {
        let record = |(seq, event)| Recorded { seq, at: Timestamp::UNIX_EPOCH, event };
        (0..).zip(events).map(record).collect()
    }

    fn sent() -> Event {
        Event::CallsStarted { calls: vec![CALL.into()] }
    }

    fn completed(outcome: &Arc<Outcome>) -> Event {
        Event::CallCompleted { call: CALL.into(), outcome: outcome.clone(), stderr: Vec::new(), wire: None }
    }

    fn cancelled() -> Event {
        Event::Ended { ending: Ending::Cancelled { reason: None } }
    }

    fn denied() -> Event {
        Event::ApprovalDecided { call: CALL.into(), decision: Decision::new(Answer::Deny, "ann") }
    }

    #[test]
    fn a_call_that_has_its_end_has_it_however_the_run_ends() {
        let done = Arc::new(Outcome::failed(crate::core::tool::FailureKind::Timeout, "too slow"));
        assert_eq!(called(&journal(vec![sent(), completed(&done), cancelled()])), Called::Ended(done));
    }

    #[test]
    fn of_a_call_that_was_sent_and_has_no_end_nobody_knows_whether_it_took_effect() {
        let unknown = Called::Ended(Outcome::Unknown.into());
        let expired = Event::Expired { call: CALL.into() };
        for said in [cancelled(), denied(), expired] {
            assert_eq!(called(&journal(vec![sent(), said.clone()])), unknown, "{said:?}");
        }
        assert_eq!(called(&journal(vec![sent()])), Called::Open, "it is at work");
    }

    #[test]
    fn a_call_that_was_not_sent_was_not_made() {
        assert!(matches!(called(&journal(vec![cancelled()])), Called::Abandoned(_)));
        let Called::Rejected { reason, .. } = called(&journal(vec![denied()])) else { panic!("it was denied") };
        assert_eq!(reason, Rejection::Denied);
    }
}
