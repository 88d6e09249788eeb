//! The runner, limited to one caller. Resources of other tenants are out of reach, so that no handler can forget to
//! check the tenant.

mod approval_id;
mod approvals;
mod four_eyes;
mod grants;
mod principal;
mod tools;

pub(super) use approval_id::ApprovalId;
pub(super) use approvals::{Approval, ApprovalState};

use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::OnceCell;

use super::access::Caller;
use super::problem::Problem;
use super::runs::view::RunView;
use crate::core::blob::BlobHandle;
use crate::core::error::ErrorCode;
use crate::core::id::{AgentName, RunId};
use crate::core::run::{Input, JournalEntry, Resume, Run, Started};
use crate::core::trace::Trace;
use crate::ports::{Blob, RunFilter, RunRow};
use crate::runner::{AgentRunner, Execution, Fork, Report, Request, RunSubscription, RunnerError};

/// A runner that is limited to the runs of one tenant.
pub(super) struct TenantRunner {
    runner: AgentRunner,
    caller: Caller,
    /// Whether the caller who started a run may not approve its calls.
    four_eyes: bool,
}

/// A run of the caller's tenant: to hold one means that the caller may find it.
#[derive(Clone)]
pub(super) struct TenantRun {
    runner: AgentRunner,
    caller: Caller,
    four_eyes: bool,
    /// The parameters that the run was started with, once they were read: they never change.
    started: OnceCell<Arc<Started>>,
    /// The run's index row at the time of the lookup.
    pub(super) row: RunRow,
}

impl TenantRunner {
    pub(super) fn new(runner: AgentRunner, caller: Caller, four_eyes: bool) -> Self {
        Self { runner, caller, four_eyes }
    }

    /// Starts a run for the tenant, in the name of the caller.
    pub(super) async fn start(&self, request: Request) -> Result<Execution, Problem> {
        self.runner.start(self.theirs(request)?).await.map_err(Problem::of_named_agent)
    }

    /// The request for the tenant, in the name of the caller.
    fn theirs(&self, request: Request) -> Result<Request, Problem> {
        if let (Some(own), Some(other)) = (&self.caller.principal, &request.principal)
            && own != other
        {
            let detail = format!("these credentials can only act for `{own}`");
            return Err(Problem::new(ErrorCode::Forbidden, detail));
        }
        let principal = self.caller.principal.clone().or(request.principal);
        let (tenant, by) = (self.caller.tenant.clone(), Some(self.caller.name.as_ref().to_owned()));
        Ok(Request { tenant, by, principal, ..request })
    }

    /// The default agent: the only one, or `assistant`.
    pub(super) fn usual_agent(&self) -> Result<AgentName, Problem> {
        let names: Vec<&AgentName> = self.runner.agents().map(|agent| &agent.name).collect();
        match names.as_slice() {
            [only] => Ok((*only).clone()),
            several => {
                several.iter().find(|name| name.as_str() == "assistant").map(|name| (*name).clone()).ok_or_else(|| {
                    let names: Vec<&str> = several.iter().map(|name| name.as_str()).collect();
                    Problem::invalid("/agent", format!("name an agent: {}", names.join(", ")))
                })
            }
        }
    }

    /// Whether an agent of that name is configured here.
    pub(super) fn has_agent(&self, name: &AgentName) -> bool {
        self.runner.agents().any(|agent| agent.name == *name)
    }

    /// Runs of the tenant, newest first.
    pub(super) async fn list(&self, filter: RunFilter) -> Result<Vec<RunRow>, Problem> {
        let tenant = Some(self.caller.tenant.clone());
        Ok(self.runner.list(&RunFilter { tenant, ..filter }).await?)
    }

    /// A run of the tenant.
    pub(super) async fn run(&self, id: &str) -> Result<TenantRun, Problem> {
        let run = self.run_or_what_is_left(id).await?;
        match run.row.purged_at {
            None => Ok(run),
            Some(at) => Err(Problem::new(ErrorCode::Gone, format!("run `{id}` was deleted at {at}"))),
        }
    }

    /// A run of the tenant, or the row of one that was deleted.
    pub(super) async fn run_or_what_is_left(&self, id: &str) -> Result<TenantRun, Problem> {
        let row = self.row(id).await?.ok_or_else(|| Problem::not_found("run", id))?;
        Ok(self.found(row))
    }

    /// The row of a run of the tenant, even if the run was deleted.
    pub(super) async fn row(&self, id: &str) -> Result<Option<RunRow>, Problem> {
        let filter = RunFilter { run: Some(id.into()), purged: true, limit: 1, ..RunFilter::default() };
        Ok(self.list(filter).await?.pop())
    }

    /// A new run id.
    pub(super) fn fresh_id(&self) -> RunId {
        self.runner.fresh_id()
    }

    /// The time that deadlines are compared with.
    pub(super) fn now(&self) -> Timestamp {
        self.runner.now()
    }

    fn found(&self, row: RunRow) -> TenantRun {
        TenantRun {
            runner: self.runner.clone(),
            caller: self.caller.clone(),
            four_eyes: self.four_eyes,
            started: OnceCell::new(),
            row,
        }
    }
}

impl TenantRun {
    /// The run's id.
    pub(super) fn id(&self) -> &RunId {
        &self.row.id
    }

    /// The parameters that the run was started with.
    async fn started(&self) -> Result<&Started, Problem> {
        let started = self.started.get_or_try_init(|| async { Ok(self.load().await?.started().clone()) });
        started.await.map(Arc::as_ref)
    }

    /// The API view of the run.
    pub(super) async fn view(&self) -> Result<RunView, Problem> {
        let run = self.load().await?;
        Ok(RunView::of(&self.row, &run, self.runner.blocked(self.id(), &run)))
    }

    /// The run, folded from its journal.
    pub(super) async fn load(&self) -> Result<Run, Problem> {
        Ok(self.runner.load(self.id()).await?)
    }

    /// Submits input and resumes the run. `placed` maps the runner's errors to places in the request.
    pub(super) async fn resume(
        &self,
        resume: Resume,
        trace: Option<Trace>,
        placed: impl FnOnce(RunnerError) -> Problem,
    ) -> Result<Execution, Problem> {
        if resume.answers.iter().any(|(_, answer)| answer.decision().is_none()) {
            self.require_may_steer().await?;
        }
        self.require_other_eyes(&resume).await?;
        self.runner.resume_run(self.id(), Input::Resume(resume), trace).await.map_err(placed)
    }

    /// Refuses messages, results and answers from a caller who may not steer the run.
    async fn require_may_steer(&self) -> Result<(), Problem> {
        self.require_same_principal().await?;
        self.require_no_decider().await
    }

    /// Cancels the run, if it is at the version that the client saw, where one is given. `placed` maps the runner's
    /// errors to problems.
    pub(super) async fn cancel(
        &self,
        reason: Option<String>,
        seen: Option<u64>,
        placed: impl FnOnce(RunnerError) -> Problem,
    ) -> Result<Report, Problem> {
        self.require_same_principal().await?;
        let cancelled = match seen {
            Some(version) => self.runner.cancel_as_seen(self.id(), reason, version).await,
            None => self.runner.cancel(self.id(), reason).await,
        };
        cancelled.map_err(placed)
    }

    /// Adds a message.
    pub(super) async fn say(&self, text: &str) -> Result<Report, Problem> {
        self.require_may_steer().await?;
        Ok(self.runner.message(self.id(), text).await?)
    }

    /// A fork of the run, in the same tenant and in the name of the caller.
    pub(super) async fn fork(&self, fork: Fork) -> Result<Execution, Problem> {
        self.require_same_principal().await?;
        let by = Some(self.caller.name.as_ref().to_owned());
        Ok(self.runner.fork(self.id(), Fork { by, ..fork }).await?)
    }

    /// Deletes the run's data.
    pub(super) async fn purge(&self) -> Result<(), Problem> {
        self.require_same_principal().await?;
        Ok(self.runner.purge(self.id()).await?)
    }

    /// The entries of the journal, in order.
    pub(super) async fn facts(&self) -> Result<Vec<JournalEntry>, Problem> {
        Ok(self.runner.journal(self.id()).await?)
    }

    /// A subscription to the run.
    pub(super) fn subscription(&self) -> RunSubscription {
        self.runner.subscription(self.id())
    }

    /// A blob of the run's own, which is stored outside its journal: no other blob is returned, whatever the handle
    /// names.
    pub(super) async fn blob(&self, handle: &BlobHandle) -> Result<Option<Blob>, Problem> {
        let Some(blobs) = self.runner.blobs() else { return Ok(None) };
        if !self.load().await?.blobs().contains(handle) {
            return Ok(None);
        }
        Ok(blobs.get(handle).await?)
    }
}
