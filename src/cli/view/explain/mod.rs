//! Run explanation: for each turn, why each tool was available or not, and why each call ran or did not. It is built
//! from the journal and the grants. `draw` renders it as lines and serde as JSON.

mod draw;
mod step;

use std::collections::BTreeSet;

use serde::Serialize;

use crate::core::id::{AgentName, CallId, GrantId, RunId};
use crate::core::policy::Verdict;
use crate::core::run::{CallHistory, History, JournalEntry, Status, ToolAccess, ToolGrant, TurnHistory};
use crate::core::tool::{Arguments, LeftOut, Tool, ToolFilter, ToolName};
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
    /// The calls that undo others before the run ends.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    undos: Vec<Call>,
}

/// The tools that the model received in a turn, and the calls that it made.
#[derive(Debug, Serialize)]
struct Turn {
    turn: usize,
    /// The journal event of the model call.
    event: u64,
    tools: Vec<ToolState>,
    #[serde(rename = "skipped")]
    left_out: Vec<LeftOut>,
    calls: Vec<Call>,
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
    reason: String,
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
    original_arguments: Option<Arguments>,
    stand: CallStatus,
    steps: Vec<Step>,
}

/// The explanation for a tool whose calls require approval.
const ASKS: &str = "the policy requires approval";

impl Explanation {
    /// Explains a journal; `None` if it does not begin with `Started`.
    pub(in crate::cli) fn from_journal(journal: &[JournalEntry], report: &Report, grants: &Grants) -> Option<Self> {
        let History { started, turns, undos } = History::from_journal(journal)?;
        // A turn without a reply that a fork began again is shown once.
        let latest = turns.len().checked_sub(1);
        let shown = turns.iter().enumerate().filter(|(at, turn)| Some(*at) == latest || turn.reply().is_some());
        let mut turns: Vec<Turn> =
            shown.zip(1..).filter_map(|((_, turn), number)| Turn::new(turn, number, grants)).collect();
        look_back(&mut turns);
        let mut undos: Vec<Call> = undos.iter().map(|call| Call::new(call, grants)).collect();
        let is_pending = |call: &Call| report.pending.iter().any(|item| item.call_id() == Some(&call.call_id));
        let calls = turns.iter_mut().flat_map(|turn| &mut turn.calls).chain(&mut undos);
        for call in calls {
            if is_pending(call) {
                call.stand = CallStatus::Pending;
            } else if report.status.is_ended() {
                call.stand = call.stand.at_the_end();
            }
        }
        Some(Self {
            run_id: report.run_id.clone(),
            agent: started.spec.agent.clone(),
            status: report.status,
            filter: started.spec.tools.clone(),
            turns,
            undos,
        })
    }
}

/// Corrects the explanation of tools whose verdict depends on the arguments. Before a call is known, the verdict of
/// such a tool is `ask`; a call that the policy allowed shows that it depends on the arguments.
fn look_back(turns: &mut [Turn]) {
    let calls = turns.iter().flat_map(|turn| &turn.calls);
    let granted: BTreeSet<String> = calls.filter(|call| call.is_granted()).map(|call| call.tool.clone()).collect();
    for tool in turns.iter_mut().flat_map(|turn| &mut turn.tools) {
        if tool.verdict == Verdict::Ask && granted.contains(tool.tool.as_str()) {
            tool.reason =
                tool.reason.replacen(ASKS, "it depends on the arguments whether the policy requires approval", 1);
        }
    }
}

impl Turn {
    fn new(turn: &TurnHistory<'_>, number: usize, grants: &Grants) -> Option<Self> {
        let attempt = turn.attempts.last()?;
        let tools = turn.tools.iter().flat_map(|tools| tools.iter());
        Some(Self {
            turn: number,
            event: attempt.seq,
            tools: tools.map(|tool| tool_state(tool, attempt.tool_access, turn.granted, grants)).collect(),
            left_out: turn.tools.iter().flat_map(|tools| tools.left_out()).cloned().collect(),
            calls: turn.calls.iter().map(|call| Call::new(call, grants)).collect(),
        })
    }
}

impl Call {
    fn new(call: &CallHistory<'_>, grants: &Grants) -> Self {
        let steps = call.entries.iter().filter_map(|entry| step::explained(entry, &call.requested.id, grants));
        let (stands, steps): (Vec<CallStatus>, Vec<Step>) = steps.unzip();
        Self {
            call_id: call.requested.id.clone(),
            tool: call.requested.name.clone(),
            arguments: call.arguments().clone(),
            original_arguments: call.edit().map(|_| call.requested.arguments.clone()),
            stand: stands.last().copied().unwrap_or(CallStatus::Open),
            steps,
        }
    }

    /// Whether the policy itself allowed the call.
    fn is_granted(&self) -> bool {
        self.steps.iter().any(|step| step.is_granted)
    }
}

fn tool_state(tool: &Tool, tool_access: ToolAccess, granted: &[ToolGrant], grants: &Grants) -> ToolState {
    let covering: Vec<&ToolGrant> = granted.iter().filter(|granted| granted.tool == tool.name).collect();
    let mut reason = match (tool_access, tool.verdict) {
        (ToolAccess::BudgetExhausted, _) => "the tool budget is used up".to_owned(),
        (ToolAccess::Stopped, _) => "the agent's `stop_when` holds".to_owned(),
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
        reason.push_str("; its definition changed during the run");
    }
    ToolState {
        tool: tool.name.clone(),
        offered: tool_access == ToolAccess::Enabled,
        verdict: tool.verdict,
        grants: covering.into_iter().map(|granted| granted.grant.clone()).collect(),
        changed: tool.changed,
        reason,
    }
}
