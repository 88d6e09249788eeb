//! Pending approvals and questions of the runs in the store.

use serde::Serialize;
use toolgate_core::error::{ErrorCode, Failure};
use toolgate_core::id::{AgentName, CallId, RunId, SessionId};
use toolgate_core::run::{AnswerForm, PendingItem, Status};
use toolgate_ports::{RunFilter, RunRow};
use toolgate_runner::RunnerError;

use super::CallContext;
use crate::decisions::binding_digest;
use crate::operator::Operator;

/// A pending item that a person has to decide or answer. Serialized as one flat object with the fields of the item.
#[derive(Clone, Debug, Serialize)]
pub struct InboxItem {
    /// The run with the pending item.
    pub run_id: RunId,
    pub agent: AgentName,
    pub session_id: SessionId,
    /// The length of the run's journal.
    pub version: u64,
    /// The digest of the pending call. A decision that names it is refused once the pending call differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    #[serde(flatten)]
    pub context: CallContext,
    #[serde(flatten)]
    pub item: PendingItem,
    /// The call of the pending item.
    #[serde(skip)]
    call: CallId,
}

/// Filters of the listing.
#[derive(Clone, Debug, Default)]
pub struct InboxFilter {
    /// Only items of runs of this agent.
    pub agent: Option<AgentName>,
    /// Only items of runs of this session.
    pub session: Option<SessionId>,
}

/// A run whose pending items cannot be read, for example a run written by a newer toolgate.
#[derive(Debug, Serialize)]
pub struct UnreadableRun {
    /// Always `unreadable`.
    r#type: &'static str,
    pub run_id: RunId,
    /// The error of the read.
    pub error: Failure,
}

/// The pending items, oldest run first, and the runs that cannot be read.
#[derive(Debug, Default)]
pub struct Inbox {
    /// The items that wait for a person.
    pub waiting: Vec<InboxItem>,
    /// The external calls, which an application answers with their results.
    pub external: Vec<InboxItem>,
    /// The runs that cannot be read.
    pub unreadable: Vec<UnreadableRun>,
}

impl Operator {
    /// All items that wait for a person or an application. An unreadable journal hides only the pending items of its own
    /// run.
    pub async fn inbox(&self, filter: &InboxFilter) -> Result<Inbox, RunnerError> {
        let pending = self.rows(filter, Status::Pending).await?.into_iter();
        // The index decides, so that runs that wait for something else are not read.
        let pending = pending.filter(|row| row.pending_counts.results > 0 || row.pending_counts.may_wait_for_people());
        let mut runs: Vec<RunId> = pending.map(|row| row.id).collect();
        // A running run may already wait for an approval while other calls execute; the index does not show that yet.
        runs.extend(self.rows(filter, Status::Running).await?.into_iter().map(|row| row.id));
        runs.sort();
        runs.dedup();
        let mut found = Inbox::default();
        for run_id in runs {
            match self.inbox_of(&run_id).await {
                Ok(Inbox { waiting, external, .. }) => {
                    found.waiting.extend(waiting);
                    found.external.extend(external);
                }
                Err(error) if error.code() == ErrorCode::JournalCorrupt => {
                    let error = Failure::new(error.code(), error.to_string()).retryable(error.is_retryable());
                    found.unreadable.push(UnreadableRun { r#type: "unreadable", run_id, error });
                }
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// The items of this run that wait for a person or an application, in the order of its calls.
    pub async fn inbox_of(&self, id: &RunId) -> Result<Inbox, RunnerError> {
        let run = self.runner.load(id).await?;
        let started = run.started();
        let is_external = |item: &PendingItem| matches!(item.form(), AnswerForm::Result { .. });
        let items = run.pending_items().into_iter();
        let items = items.filter(|item| item.form().is_for_people() || is_external(item));
        let listed = |item: PendingItem| {
            let call = item.call_id()?.clone();
            Some(InboxItem {
                run_id: id.clone(),
                agent: started.spec.agent.clone(),
                session_id: started.session.clone(),
                version: run.length(),
                digest: binding_digest(id, &item),
                context: CallContext::new(&run, &call),
                item,
                call,
            })
        };
        let (external, waiting) = items.filter_map(listed).partition(|listed| is_external(&listed.item));
        Ok(Inbox { waiting, external, unreadable: Vec::new() })
    }

    async fn rows(&self, filter: &InboxFilter, status: Status) -> Result<Vec<RunRow>, RunnerError> {
        let (agent, session) = (filter.agent.clone(), filter.session.clone());
        self.runs(RunFilter { statuses: vec![status], agent, session, ..RunFilter::default() }).await
    }
}

impl InboxItem {
    /// The call of the pending item.
    pub fn call(&self) -> &CallId {
        &self.call
    }

    /// Whether the item is a pending approval.
    pub fn is_approval(&self) -> bool {
        matches!(self.item.form(), AnswerForm::Decision(_))
    }
}
