//! Past calls of a tool, read from the newest runs of an agent, for a prompt that proposes conditions of a grant.

use std::time::{Duration, Instant};

use super::prompt::PastCalls;
use crate::core::id::RunId;
use crate::core::policy::analysis::{PastOutcome, past_calls};
use crate::core::run::PendingCall;
use crate::ports::RunFilter;
use crate::runner::{AgentRunner, RunnerError};

/// The most runs that are read.
const RUNS: usize = 200;
/// The time after which no further run is read.
const LONGEST: Duration = Duration::from_secs(2);

/// The calls of the same tool that a grant for this call would have concerned: of the same tenant, agent and principal.
/// Runs whose journals cannot be read do not count.
pub(super) async fn read_past_calls(
    runner: &AgentRunner,
    run: &RunId,
    call: &PendingCall<'_>,
) -> Result<PastCalls, RunnerError> {
    let began = Instant::now();
    let journal = runner.load(run).await?;
    let started = journal.started();
    let filter = RunFilter {
        tenant: Some(started.tenant.clone()),
        agent: Some(started.spec.agent.clone()),
        limit: RUNS,
        ..RunFilter::default()
    };
    let mut past = PastCalls { runs: 0, calls: Vec::new() };
    for row in runner.list(&filter).await? {
        if began.elapsed() > LONGEST {
            break;
        }
        let Ok(journal) = runner.journal(&row.id).await else { continue };
        let Ok(calls) = past_calls(&row.id, &journal) else { continue };
        past.runs += 1;
        past.calls.extend(calls.into_iter().filter(|other| {
            let is_itself = other.run == *run && other.call == *call.id;
            // Those of the same reply that wait are no past calls.
            let waits = other.run == *run && other.became == PastOutcome::Unanswered;
            !is_itself && !waits && other.tool.name == *call.name && other.principal == started.spec.principal
        }));
    }
    Ok(past)
}
