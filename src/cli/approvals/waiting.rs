//! What waits for a person, found in the runs of the store.

use serde::Serialize;

use crate::app::App;
use crate::cli::error::CliError;
use crate::core::chat::Role;
use crate::core::error::{ErrorCode, Failure};
use crate::core::id::{AgentName, CallId, RunId, SessionId};
use crate::core::run::{Debt, Owes, Run, Status};
use crate::core::tool::Arguments;
use crate::ports::{RunFilter, RunRow};

/// How many rows of the index are read at a time.
const PAGE: usize = 500;

/// One thing that a person has to decide or to answer. In JSON one flat object, with the fields of the debt.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Waiting {
    /// The run that waits.
    pub(super) run_id: RunId,
    /// Its agent.
    pub(super) agent: AgentName,
    /// Its conversation.
    pub(super) session_id: SessionId,
    /// The length of its journal.
    pub(super) version: u64,
    /// What a decision would be about; sent back with `--seen`, it is refused once something else waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) seen: Option<String>,
    /// What it came out of.
    #[serde(flatten)]
    pub(super) context: Context,
    /// What it is.
    #[serde(flatten)]
    pub(super) debt: Debt,
}

/// What led to a call: without it nobody can tell whether the call is what was wanted.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Context {
    /// What the run was told to do.
    pub(super) task: String,
    /// What the model said beside the calls of its turn.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) said: String,
    /// What the tool does, in the words of whoever offers it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<String>,
    /// The arguments as the model wrote them, when a person put others in their place.
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

/// Which of it is wanted.
#[derive(Clone, Debug, Default)]
pub(super) struct Wanted {
    pub(super) agent: Option<AgentName>,
    pub(super) session: Option<SessionId>,
}

/// A run of which nobody here can say what waits, for example one of a newer toolgate.
#[derive(Debug, Serialize)]
pub(super) struct Unreadable {
    kind: &'static str,
    /// The run.
    pub(super) run_id: RunId,
    /// Why.
    pub(super) error: Failure,
}

/// What was found: what waits, that of the oldest run first, and where one cannot look.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) waiting: Vec<Waiting>,
    pub(super) unreadable: Vec<Unreadable>,
}

/// Everything that waits for a person. A journal that cannot be read hides what waits in its own run, and in no other.
pub(super) async fn everywhere(app: &App, wanted: &Wanted) -> Result<Found, CliError> {
    let pending = rows(app, wanted, Status::Pending).await?.into_iter().filter(|row| waits_for_people(&row.owes));
    let mut runs: Vec<RunId> = pending.map(|row| row.id).collect();
    // A run that is driven may have put a call to somebody while others are under way; the index says nothing of that yet.
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

/// By the index, so that a run that waits for something else is not read. A row that says of nothing what its run waits for
/// is older than that.
fn waits_for_people(owes: &Owes) -> bool {
    owes.approvals > 0 || owes.answers > 0 || (owes.results == 0 && owes.tasks == 0)
}

/// What of this run waits for a person, in the order of its calls.
pub(super) async fn of_run(app: &App, id: &RunId) -> Result<Vec<Waiting>, CliError> {
    let run = app.runner.load(id).await?;
    let started = run.started();
    let waiting = run.debts().into_iter().filter(is_for_people).map(|debt| Waiting {
        run_id: id.clone(),
        agent: started.spec.agent.clone(),
        session_id: started.session.clone(),
        version: run.length(),
        seen: debt.binding().map(|binding| binding.digest(id, debt.call_id())),
        context: Context::of(&run, debt.call_id()),
        debt,
    });
    Ok(waiting.collect())
}

/// Whether one of these calls waits for a decision again, because something became different.
pub(in crate::cli) async fn asked_again(app: &App, run: &RunId, calls: &[CallId]) -> Result<bool, CliError> {
    Ok(of_run(app, run).await?.iter().any(|waiting| match &waiting.debt {
        Debt::Approval { call_id, differences, .. } => calls.contains(call_id) && !differences.is_empty(),
        Debt::ExternalResult { .. } | Debt::Question { .. } | Debt::Input { .. } | Debt::Task { .. } => false,
    }))
}

fn is_for_people(debt: &Debt) -> bool {
    match debt {
        Debt::Approval { .. } | Debt::Question { .. } | Debt::Input { .. } => true,
        Debt::ExternalResult { .. } | Debt::Task { .. } => false,
    }
}

impl Waiting {
    /// The call it belongs to.
    pub(super) fn call(&self) -> &CallId {
        self.debt.call_id()
    }

    /// Whether it waits for a yes or a no.
    pub(super) fn is_approval(&self) -> bool {
        matches!(self.debt, Debt::Approval { .. })
    }
}
