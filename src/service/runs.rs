//! Runs of one tenant: the runner, limited to one caller. Resources of other tenants are out of reach, so that no
//! surface can forget to check the tenant.

use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::OnceCell;
use toolgate_core::address::AllowedClasses;
use toolgate_core::blob::{Blob, BlobHandle};
use toolgate_core::chat::Message;
use toolgate_core::error::ErrorCode;
use toolgate_core::id::{AgentName, RunId};
use toolgate_core::run::{Answerable, Channel, Input, JournalEntry, Resume, Run, Started};
use toolgate_core::trace::Trace;
use toolgate_ports::{RunFilter, RunRow};
use toolgate_runner::{AgentRunner, Execution, Fork, Report, Request, Retry, RunSubscription, RunnerError};

use super::answers::Answers;
use super::authorize::{Caller, Scope};
use super::error::CurrentState;
use super::error::ServiceError;
use super::error_reason::ErrorReason;
use super::file_config::FileConfig;
use super::new_run;
use super::webhooks::WebhookConfig;

/// A runner that is limited to the runs of one tenant.
pub struct TenantRunner {
    pub(crate) runner: AgentRunner,
    pub(crate) caller: Caller,
    /// Where the caller's decisions are made, for the journal.
    pub(crate) via: Channel,
    /// Whether the caller who started a run may not approve its calls.
    pub(crate) four_eyes: bool,
    /// The addresses that media URLs may lead to.
    pub(crate) media_hosts: AllowedClasses,
    /// The webhook delivery, if there is one.
    pub(crate) webhooks: Option<Arc<WebhookConfig>>,
    /// The store of files, if there is one.
    pub(crate) files: Option<Arc<FileConfig>>,
}

/// A run of the caller's tenant: to hold one means that the caller may find it.
#[derive(Clone)]
pub struct TenantRun {
    pub(crate) runner: AgentRunner,
    pub(crate) caller: Caller,
    pub(crate) via: Channel,
    pub(crate) four_eyes: bool,
    /// The parameters that the run was started with, once they were read: they never change.
    started: OnceCell<Arc<Started>>,
    /// The run's index row at the time of the lookup.
    pub row: RunRow,
}

impl TenantRunner {
    /// The caller, whose tenant it is limited to.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Starts a run for the tenant, in the name of the caller.
    pub async fn start(&self, request: Request) -> Result<Execution, ServiceError> {
        let request = new_run::for_caller(request, &self.caller, self.media_hosts)?;
        let planned = request.id.clone();
        let started = self.runner.start(request).await.map_err(ServiceError::of_named_agent);
        match planned {
            Some(run) => with_current(&self.runner, &self.caller, &run, started).await,
            None => started,
        }
    }

    /// The default agent: the only one, or `assistant`.
    pub fn default_agent(&self) -> Result<AgentName, ServiceError> {
        let names: Vec<&AgentName> = self.runner.agents().map(|agent| &agent.name).collect();
        match names.as_slice() {
            [only] => Ok((*only).clone()),
            several => {
                several.iter().find(|name| name.as_str() == "assistant").map(|name| (*name).clone()).ok_or_else(|| {
                    let names: Vec<&str> = several.iter().map(|name| name.as_str()).collect();
                    ServiceError::invalid("/agent", format!("name an agent: {}", names.join(", ")))
                })
            }
        }
    }

    /// Whether an agent of that name or alias is configured here.
    pub fn has_agent(&self, name: &AgentName) -> bool {
        self.runner.agent(name).is_ok()
    }

    /// Runs of the tenant, newest first.
    pub async fn list(&self, filter: RunFilter) -> Result<Vec<RunRow>, ServiceError> {
        let tenant = Some(self.caller.tenant.clone());
        Ok(self.runner.list(&RunFilter { tenant, ..filter }).await?)
    }

    /// A run of the tenant.
    pub async fn run(&self, id: &str) -> Result<TenantRun, ServiceError> {
        let run = self.run_even_if_deleted(id).await?;
        match run.row.purged_at {
            None => Ok(run),
            Some(at) => {
                let detail = format!("run `{id}` was deleted at {at}");
                Err(ServiceError::new(ErrorCode::Gone, detail).with(ErrorReason::Deleted))
            }
        }
    }

    /// A run of the tenant, or the row of one that was deleted.
    pub async fn run_even_if_deleted(&self, id: &str) -> Result<TenantRun, ServiceError> {
        let row = self.row(id).await?.ok_or_else(|| ServiceError::not_found("run", id))?;
        Ok(self.found(row))
    }

    /// The row of a run of the tenant, even if the run was deleted.
    pub async fn row(&self, id: &str) -> Result<Option<RunRow>, ServiceError> {
        let filter = RunFilter { run: Some(id.into()), purged: true, limit: 1, ..RunFilter::default() };
        Ok(self.list(filter).await?.pop())
    }

    /// A new run id.
    pub fn fresh_id(&self) -> RunId {
        self.runner.fresh_id()
    }

    /// The time that deadlines are compared with.
    pub fn now(&self) -> Timestamp {
        self.runner.now()
    }

    pub(crate) fn found(&self, row: RunRow) -> TenantRun {
        TenantRun {
            runner: self.runner.clone(),
            caller: self.caller.clone(),
            via: self.via,
            four_eyes: self.four_eyes,
            started: OnceCell::new(),
            row,
        }
    }
}

impl TenantRun {
    /// The run's id.
    pub fn id(&self) -> &RunId {
        &self.row.id
    }

    /// The parameters that the run was started with.
    pub(crate) async fn started(&self) -> Result<&Started, ServiceError> {
        let started = self.started.get_or_try_init(|| async { Ok(self.load().await?.started().clone()) });
        started.await.map(Arc::as_ref)
    }

    /// Why this process cannot continue the run.
    pub fn blocked(&self, run: &Run) -> Option<RunnerError> {
        self.runner.blocked(self.id(), run)
    }

    /// The run, folded from its journal.
    pub async fn load(&self) -> Result<Run, ServiceError> {
        Ok(self.runner.load(self.id()).await?)
    }

    /// The same, with the conversation before the run.
    pub async fn load_with_conversation(&self) -> Result<Run, ServiceError> {
        Ok(self.runner.load_with_conversation(self.id()).await?)
    }

    /// The input that these answers are, in the caller's name.
    pub fn input_of(&self, answers: Answers) -> Result<Resume, ServiceError> {
        answers.resume(|_| self.caller.name.to_string(), self.via)
    }

    /// Submits input and resumes the run. `to_error` adds the places in the request to the runner's errors.
    pub async fn resume(
        &self,
        resume: Resume,
        trace: Option<Trace>,
        to_error: impl FnOnce(RunnerError) -> ServiceError,
    ) -> Result<Execution, ServiceError> {
        if resume.answers.iter().any(|(_, answer)| answer.decision().is_none()) {
            self.require_may_steer().await?;
        }
        let resume = Resume { answerable: self.answerable(&resume).await?, ..resume };
        if resume.unpause.is_some() {
            self.require_same_principal().await?;
        }
        self.require_four_eyes(&resume).await?;
        let resumed = self.runner.resume_run(self.id(), Input::Resume(resume), trace).await;
        self.with_current(resumed.map_err(to_error)).await
    }

    /// The items that the caller may answer, so that a resume may leave those of others pending.
    async fn answerable(&self, resume: &Resume) -> Result<Answerable, ServiceError> {
        if !self.caller.scopes.contains(Scope::ApprovalsDecide) {
            return Ok(Answerable::WithoutApprovals);
        }
        if self.four_eyes && self.caller.is_author_of(self.started().await?) {
            // They may deny, and nothing more.
            return Ok(if resume.decisions().next().is_none() {
                Answerable::WithoutApprovals
            } else {
                Answerable::All
            });
        }
        if resume.partial || resume.decisions().next().is_none() {
            return Ok(Answerable::All);
        }
        match self.require_may_steer().await {
            Ok(()) => Ok(Answerable::All),
            Err(error) if error.code == ErrorCode::Forbidden => Ok(Answerable::Approvals),
            Err(error) => Err(error),
        }
    }

    /// Refuses messages, results and answers from a caller who may not steer the run.
    async fn require_may_steer(&self) -> Result<(), ServiceError> {
        self.require_same_principal().await?;
        self.require_no_decider().await
    }

    /// Cancels the run, if it is at the version that the client saw, where one is given. `to_error`
    /// adds the places in the request to the runner's errors.
    pub async fn cancel(
        &self,
        reason: Option<String>,
        seen: Option<u64>,
        to_error: impl FnOnce(RunnerError) -> ServiceError,
    ) -> Result<Report, ServiceError> {
        self.require_same_principal().await?;
        let cancelled = self.runner.cancel(self.id(), reason, seen).await;
        self.with_current(cancelled.map_err(to_error)).await
    }

    /// Pauses the run in the caller's name, if it is at the version that the client saw, where one is given. `to_error`
    /// adds the places in the request to the runner's errors.
    pub async fn pause(
        &self,
        reason: Option<String>,
        seen: Option<u64>,
        to_error: impl FnOnce(RunnerError) -> ServiceError,
    ) -> Result<Report, ServiceError> {
        self.require_same_principal().await?;
        let by = self.caller.name.as_ref();
        let paused = self.runner.pause(self.id(), reason, by, self.via, seen).await;
        self.with_current(paused.map_err(to_error)).await
    }

    /// Adds a message.
    pub async fn add_message(&self, text: &str) -> Result<Report, ServiceError> {
        self.require_may_steer().await?;
        self.with_current(self.runner.message(self.id(), Message::user(text)).await.map_err(ServiceError::from)).await
    }

    /// A fork of the run, in the same tenant and in the name of the caller. `to_error` adds the places in the request to
    /// the runner's errors.
    pub async fn fork(
        &self,
        fork: Fork,
        to_error: impl FnOnce(RunnerError) -> ServiceError,
    ) -> Result<Execution, ServiceError> {
        self.require_same_principal().await?;
        let by = Some(self.caller.name.as_ref().to_owned());
        self.with_current(self.runner.fork(self.id(), Fork { by, ..fork }).await.map_err(to_error)).await
    }

    /// A retry of the run, in its session and in the name of the caller. `to_error` as for a fork.
    pub async fn retry(
        &self,
        retry: Retry,
        to_error: impl FnOnce(RunnerError) -> ServiceError,
    ) -> Result<Execution, ServiceError> {
        self.require_same_principal().await?;
        let by = Some(self.caller.name.as_ref().to_owned());
        self.with_current(self.runner.retry(self.id(), Retry { by, ..retry }).await.map_err(to_error)).await
    }

    /// Deletes the run's data, if the run is at the version that the client saw, where one is given. The version of a run
    /// that has ended never changes.
    pub async fn purge(&self, seen: Option<u64>) -> Result<(), ServiceError> {
        self.require_same_principal().await?;
        let is_live = self.row.purged_at.is_none() && !self.row.status.is_ended();
        let purged = match seen.is_some() && is_live {
            true => Err(RunnerError::NotOver { run: self.id().clone(), status: self.row.status }),
            false => self.runner.purge(self.id()).await,
        };
        self.with_current(purged.map_err(ServiceError::from)).await
    }

    /// Adds the run's current state to a conflict about it.
    pub(crate) async fn with_current<T>(&self, result: Result<T, ServiceError>) -> Result<T, ServiceError> {
        with_current(&self.runner, &self.caller, self.id(), result).await
    }

    /// The entries of the journal, in order.
    pub async fn facts(&self) -> Result<Vec<JournalEntry>, ServiceError> {
        Ok(self.runner.journal(self.id()).await?)
    }

    /// A subscription to the run.
    pub(crate) fn subscription(&self) -> RunSubscription {
        self.runner.subscription(self.id())
    }

    /// A blob of the run's own, which is stored outside its journal: no other blob is returned, whatever the handle
    /// names.
    pub async fn blob(&self, handle: &BlobHandle) -> Result<Option<Blob>, ServiceError> {
        let Some(blobs) = self.runner.blobs() else { return Ok(None) };
        if !self.load_with_conversation().await?.blobs().contains(handle) {
            return Ok(None);
        }
        Ok(blobs.get(handle).await?)
    }
}

/// Adds the current state of a run of the caller's tenant to a conflict about it.
async fn with_current<T>(
    runner: &AgentRunner,
    caller: &Caller,
    run: &RunId,
    result: Result<T, ServiceError>,
) -> Result<T, ServiceError> {
    match result {
        Err(error) if is_conflict(&error) && error.current.is_none() => {
            let tenant = Some(caller.tenant.clone());
            let filter = RunFilter { tenant, run: Some(run.clone()), limit: 1, ..RunFilter::default() };
            // The request is refused for the same reason whether or not the state can be read.
            let row = runner.list(&filter).await.ok().and_then(|mut rows| rows.pop());
            Err(ServiceError { current: row.map(|row| Box::new(CurrentState::of_run(&row))), ..error })
        }
        result => result,
    }
}

fn is_conflict(error: &ServiceError) -> bool {
    matches!(error.code, ErrorCode::Conflict | ErrorCode::PreconditionFailed)
}
