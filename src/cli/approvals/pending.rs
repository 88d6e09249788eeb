//! Pending approvals and questions of the runs in the store.

use serde::Serialize;

use crate::app::App;
use crate::cli::error::CliError;
use crate::core::chat::Role;
use crate::core::error::{ErrorCode, Failure};
use crate::core::id::{AgentName, CallId, RunId, SessionId};
use crate::core::run::{PendingCounts, PendingItem, Run, Status};
use crate::core::tool::Arguments;
use crate::ports::{RunFilter, RunRow};

/// Rows of the index in one read.
const PAGE: usize = 500;

/// A pending item that a person has to decide or answer. Serialized as one flat object with the fields of the item.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Waiting {
    /// The run with the pending item.
    pub(super) run_id: RunId,
    /// The agent of the run.
    pub(super) agent: AgentName,
    /// The session of the run.
    pub(super) session_id: SessionId,
    /// The length of the run's journal.
    pub(super) version: u64,
    /// The digest of the pending call. A decision with `--seen` is rejected once the pending call differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) seen: Option<String>,
    /// The context of the call.
    #[serde(flatten)]
    pub(super) context: Context,
    /// The pending item.
    #[serde(flatten)]
    pub(super) item: PendingItem,
}

/// The context of a call, which a user needs to judge whether the call is wanted.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Context {
    /// The input of the run.
    pub(super) task: String,
    /// The model's text beside the calls of its turn.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) said: String,
    /// The tool's description, written by its provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<String>,
    /// The model's original arguments, if a person edited them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) written: Option<Arguments>,
}

impl Context {
    fn of(run: &Run, call: &CallId) -> Self {
        let call = run.call(call);
        let messages = run.messages();
        let said = messages.iter().rfind(|message| message.role == Role::Assistant);
        Self {
            task: run.started().input.text(),
            said: said.map(|message| message.text()).unwrap_or_default(),
            description: call.and_then(|call| call.tool.as_ref()).map(|tool| tool.description.clone()),
            written: call.filter(|call| call.edited.is_some()).map(|call| call.asked.arguments.clone()),
        }
    }
}

/// Filters of the listing.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    pub(super) agent: Option<AgentName>,
    pub(super) session: Option<SessionId>,
}

/// A run whose pending items cannot be read, for example a run written by a newer toolgate.
#[derive(Debug, Serialize)]
pub(super) struct Unreadable {
    kind: &'static str,
    /// The run.
    pub(super) run_id: RunId,
    /// The error of the read.
    pub(super) error: Failure,
}

/// The pending items, oldest run first, and the runs that cannot be read.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) waiting: Vec<Waiting>,
    pub(super) unreadable: Vec<Unreadable>,
}

/// All items that wait for a person. An unreadable journal hides only the pending items of its own run.
pub(super) async fn everywhere(app: &App, wanted: &Wanted) -> Result<Found, CliError> {
    let pending =
        rows(app, wanted, Status::Pending).await?.into_iter().filter(|row| waits_for_people(&row.pending_counts));
    let mut runs: Vec<RunId> = pending.map(|row| row.id).collect();
    // A running run may already wait for an approval while other calls execute; the index does not show that yet.
    runs.extend(rows(app, wanted, Status::Running).await?.into_iter().map(|row| row.id));
    runs.sort();
    runs.dedup();
    let mut found = Found::default();
    for run_id in runs {
        match of_run(app, &run_id).await {
            Ok(waiting) => found.waiting.extend(waiting),
            Err(error) if error.code() == ErrorCode::JournalCorrupt => {
                found.unreadable.push(Unreadable { kind: "unreadable", run_id, error: error.failure() });
            }
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

async fn rows(app: &App, wanted: &Wanted, status: Status) -> Result<Vec<RunRow>, CliError> {
    let (agent, session) = (wanted.agent.clone(), wanted.session.clone());
    let mut filter = RunFilter { status: Some(status), agent, session, limit: PAGE, ..RunFilter::default() };
    let mut rows: Vec<RunRow> = Vec::new();
    loop {
        let page = app.runner.list(&filter).await?;
        let is_last = page.len() < PAGE;
        rows.extend(page);
        filter.before = rows.last().map(|row| row.id.clone());
        if is_last {
            return Ok(rows);
        }
    }
}

/// Decides by the index, so that runs that wait for something else are not read. A row without any count is older than
/// the counts.
fn waits_for_people(pending_counts: &PendingCounts) -> bool {
    pending_counts.approvals > 0
        || pending_counts.answers > 0
        || (pending_counts.results == 0 && pending_counts.tasks == 0)
}

/// The items of this run that wait for a person, in the order of its calls.
pub(super) async fn of_run(app: &App, id: &RunId) -> Result<Vec<Waiting>, CliError> {
    let run = app.runner.load(id).await?;
    let started = run.started();
    let waiting = run.pending_items().into_iter().filter(is_for_people).map(|item| Waiting {
        run_id: id.clone(),
        agent: started.spec.agent.clone(),
        session_id: started.session.clone(),
        version: run.length(),
        seen: item.binding().map(|binding| binding.digest(id, item.call_id())),
        context: Context::of(&run, item.call_id()),
        item,
    });
    Ok(waiting.collect())
}

/// Whether one of these calls requires approval again because something changed.
pub(in crate::cli) async fn asked_again(app: &App, run: &RunId, calls: &[CallId]) -> Result<bool, CliError> {
    Ok(of_run(app, run).await?.iter().any(|waiting| match &waiting.item {
        PendingItem::Approval { call_id, differences, .. } => calls.contains(call_id) && !differences.is_empty(),
        PendingItem::ExternalResult { .. }
        | PendingItem::Question { .. }
        | PendingItem::Input { .. }
        | PendingItem::Task { .. } => false,
    }))
}

fn is_for_people(item: &PendingItem) -> bool {
    match item {
        PendingItem::Approval { .. } | PendingItem::Question { .. } | PendingItem::Input { .. } => true,
        PendingItem::ExternalResult { .. } | PendingItem::Task { .. } => false,
    }
}

impl Waiting {
    /// The call of the pending item.
    pub(super) fn call(&self) -> &CallId {
        self.item.call_id()
    }

    /// Whether the item is a pending approval.
    pub(super) fn is_approval(&self) -> bool {
        matches!(self.item, PendingItem::Approval { .. })
    }
}
