//! Run explanation: for each turn, why each tool was available or not, and why each call ran or did not. It is built
//! from the journal and the grants. `draw` renders it as lines and serde as JSON.

mod draw;
mod step;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Serialize;

use crate::core::id::{AgentName, CallId, GrantId, RunId};
use crate::core::policy::Verdict;
use crate::core::run::{Event, JournalEntry, Status, ToolAccess, ToolGrant};
use crate::core::tool::{Arguments, LeftOut, Tool, ToolCall, ToolFilter, ToolName, Toolset};
use crate::runner::Report;
pub(in crate::cli) use step::Grants;
use step::{CallStatus, Step};

/// The explanation of a run.
#[derive(Debug, Serialize)]
pub(in crate::cli) struct Explanation {
    run_id: RunId,
    agent: AgentName,
    status: Status,
    /// The run's filter on its agent's tools. The journal does not name the tools that the filter hides.
    filter: ToolFilter,
    turns: Vec<Turn>,
}

/// The tools that the model received in a turn, and the calls that it made.
#[derive(Debug, Serialize)]
struct Turn {
    turn: usize,
    /// The journal event of the model call.
    event: u64,
    tools: Vec<ToolState>,
    left_out: Vec<LeftOut>,
    calls: Vec<Call>,
    #[serde(skip)]
    is_answered: bool,
}

/// The state of a tool in a turn.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct ToolState {
    tool: ToolName,
    offered: bool,
    /// The policy's verdict before the arguments of a call are known.
    verdict: Verdict,
    /// The grants that covered calls of the tool.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    grants: Vec<GrantId>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    changed: bool,
    why: String,
}

/// A call and its steps in order.
#[derive(Debug, Serialize)]
struct Call {
    call_id: CallId,
    tool: String,
    /// The arguments with which the call was, or would be, sent.
    arguments: Arguments,
    /// The model's original arguments, if a person edited them.
    #[serde(skip_serializing_if = "Option::is_none")]
    written: Option<Arguments>,
    stand: CallStatus,
    steps: Vec<Step>,
}

/// The explanation for a tool whose calls require approval.
const ASKS: &str = "the policy requires approval";

/// State while a journal is read.
#[derive(Default)]
struct JournalReader {
    tools: Option<Arc<Toolset>>,
    granted: Vec<ToolGrant>,
    turns: Vec<Turn>,
}

impl Explanation {
    /// Explains a journal; `None` if it does not begin with `Started`.
    pub(in crate::cli) fn of(journal: &[JournalEntry], report: &Report, grants: &Grants) -> Option<Self> {
        let Event::Started(started) = &journal.first()?.event else { return None };
        let mut reading = JournalReader::default();
        journal.iter().for_each(|recorded| reading.add(recorded, grants));
        reading.look_back();
        for item in &report.pending {
            reading
                .calls()
                .filter(|call| call.call_id == *item.call_id())
                .for_each(|call| call.stand = CallStatus::Pending);
        }
        Some(Self {
            run_id: report.run_id.clone(),
            agent: started.spec.agent.clone(),
            status: report.status,
            filter: started.spec.tools.clone(),
            turns: reading.turns,
        })
    }
}

impl JournalReader {
    fn add(&mut self, recorded: &JournalEntry, grants: &Grants) {
        let event = &recorded.event;
        if let Event::ToolsListed { toolset } = event {
            self.tools = Some(toolset.clone());
            self.granted.clear();
        }
        if let Event::ApprovalsResolved { granted } = event {
            self.granted.clone_from(granted);
        }
        if let Event::ModelCalled { tool_access, .. } = event {
            self.model_called(*tool_access, recorded.seq, grants);
        }
        if let Event::ModelReplied { reply } = event
            && let Some(turn) = self.turns.last_mut()
        {
            turn.is_answered = true;
            let made = reply.calls();
            turn.calls = made.map(Call::new).collect();
        }
        if let Event::ApprovalDecided { call, decision } = event
            && let Some(edited) = &decision.edited_arguments
        {
            self.calls().filter(|found| found.call_id == *call).for_each(|found| found.edited(edited));
        }
        for (call, stand, step) in step::of(recorded, grants) {
            for found in self.calls().filter(|found| found.call_id == call) {
                found.stand = stand;
                found.steps.push(step.clone());
            }
        }
    }

    /// Corrects the explanation of tools whose verdict depends on the arguments. Before a call is known, the verdict of
    /// such a tool is `ask`; a call that the policy allowed shows that it depends on the arguments.
    fn look_back(&mut self) {
        let spared: BTreeSet<String> =
            self.calls().filter(|call| call.is_spared()).map(|call| call.tool.clone()).collect();
        for tool in self.turns.iter_mut().flat_map(|turn| turn.tools.iter_mut()) {
            if tool.verdict == Verdict::Ask && spared.contains(tool.tool.as_str()) {
                tool.why =
                    tool.why.replacen(ASKS, "it depends on the arguments whether the policy requires approval", 1);
            }
        }
    }

    fn model_called(&mut self, tool_access: ToolAccess, event: u64, grants: &Grants) {
        // This is another attempt at the same turn.
        self.turns.pop_if(|turn| !turn.is_answered);
        let tools = self.tools.iter().flat_map(|tools| tools.iter());
        let tools = tools.map(|tool| tool_state(tool, tool_access, &self.granted, grants)).collect();
        let left_out = self.tools.iter().flat_map(|tools| tools.left_out()).cloned().collect();
        let turn = self.turns.len() + 1;
        self.turns.push(Turn { turn, event, tools, left_out, calls: Vec::new(), is_answered: false });
    }

    fn calls(&mut self) -> impl Iterator<Item = &mut Call> {
        self.turns.iter_mut().flat_map(|turn| turn.calls.iter_mut())
    }
}

impl Call {
    fn new(made: ToolCall) -> Self {
        let ToolCall { id, name, arguments } = made;
        Self { call_id: id, tool: name, arguments, written: None, stand: CallStatus::Open, steps: Vec::new() }
    }

    /// Whether the policy itself allowed the call.
    fn is_spared(&self) -> bool {
        self.steps.iter().any(|step| step.is_spared)
    }

    fn edited(&mut self, arguments: &Arguments) {
        let before = std::mem::replace(&mut self.arguments, arguments.clone());
        self.written.get_or_insert(before);
    }
}

fn tool_state(tool: &Tool, tool_access: ToolAccess, granted: &[ToolGrant], grants: &Grants) -> ToolState {
    let covering: Vec<&ToolGrant> = granted.iter().filter(|granted| granted.tool == tool.name).collect();
    let mut why = match (tool_access, tool.verdict) {
        (ToolAccess::BudgetExhausted, _) => "the tool budget is used up".to_owned(),
        (ToolAccess::FinalAnswer, _) => "a hard limit was reached, and the model gave its final answer".to_owned(),
        (ToolAccess::Enabled, Verdict::Allow) => "the policy allows it".to_owned(),
        (ToolAccess::Enabled, Verdict::Deny) => "the policy denies its calls".to_owned(),
        (ToolAccess::Enabled, Verdict::Ask) if covering.is_empty() => ASKS.to_owned(),
        (ToolAccess::Enabled, Verdict::Ask) => {
            let covered = covering.iter().map(|granted| step::grant(&granted.grant, grants));
            let covered = covered.collect::<Vec<_>>().join("; ");
            match covering.iter().any(|granted| granted.arguments.is_none()) {
                true => format!("the policy requires approval, auto-approved: {covered}"),
                false => format!("{ASKS}, except for auto-approved calls: {covered}"),
            }
        }
    };
    if tool.changed {
        why.push_str("; its definition changed during the run");
    }
    ToolState {
        tool: tool.name.clone(),
        offered: tool_access == ToolAccess::Enabled,
        verdict: tool.verdict,
        grants: covering.into_iter().map(|granted| granted.grant.clone()).collect(),
        changed: tool.changed,
        why,
    }
}
