//! Approvals of one tenant. The index has the runs that require approval; the request and its outcome are in the run's
//! journal, at the position in the approval's id.

use jiff::Timestamp;

use super::{ApprovalId, TenantRun, TenantRunner};
use crate::core::error::ErrorCode;
use crate::core::id::CallId;
use crate::core::run::{
    Answer, CallVerdict, Channel, Decision, Ending, Event, JournalEntry, PendingItem, Resume, ResumeError, Run, Status,
};
use crate::core::trace::Trace;
use crate::gateway::problem::Problem;
use crate::ports::{PendingKind, RunFilter};

/// An approval: the question whether one call may run.
pub(in crate::gateway) struct Approval {
    /// The run.
    pub(in crate::gateway) of: TenantRun,
    /// The run's status.
    pub(in crate::gateway) status: Status,
    /// The run as it was while the approval was pending.
    pub(in crate::gateway) run: Run,
    /// The pending item.
    pub(in crate::gateway) item: PendingItem,
    /// The outcome.
    pub(in crate::gateway) fate: ApprovalState,
}

/// The outcome of an approval.
pub(in crate::gateway) enum ApprovalState {
    /// Not decided yet.
    Pending,
    /// Decided.
    Decided {
        /// The decision.
        decision: Decision,
        /// When it was made.
        at: Timestamp,
    },
    /// The deadline passed without a decision.
    Expired,
    /// Not required any more: the run ended, or requires another approval.
    Withdrawn,
}

impl TenantRunner {
    /// The approval with that id.
    pub(in crate::gateway) async fn approval(&self, id: &str) -> Result<Approval, Problem> {
        let missing = || Problem::not_found("approval", id);
        let place = ApprovalId::parse(id).ok_or_else(missing)?;
        let of = self.run(place.run.as_str()).await.map_err(|problem| {
            let is_unknown = problem.code() == ErrorCode::NotFound;
            if is_unknown { missing() } else { problem }
        })?;
        let (run, journal) = self.runner.at_now(of.id()).await?;
        told(of, &run, &journal, place.event).ok_or_else(missing)
    }

    /// Approvals of pending runs, newest run first, up to a limit. Those of one run are in the order in which they were
    /// requested. `after`: only those after this one.
    pub(in crate::gateway) async fn pending_approvals(
        &self,
        filter: RunFilter,
        after: Option<ApprovalId>,
        most: usize,
    ) -> Result<Vec<Approval>, Problem> {
        let mut filter = RunFilter { pending_kind: Some(PendingKind::Approval), limit: most, ..filter };
        let mut found = Vec::new();
        if let Some(ApprovalId { run, event }) = after {
            // The previous page may have ended among those of one run.
            let rest = self.list(RunFilter { run: Some(run.clone()), ..filter.clone() }).await?;
            for row in rest {
                found.extend(self.asked_by(self.found(row)).await?.into_iter().filter(|asked| asked.event() > event));
            }
            filter.before = Some(run);
        }
        while found.len() < most {
            let rows = self.list(filter.clone()).await?;
            let is_last = rows.len() < filter.limit;
            filter.before = rows.last().map(|row| row.id.clone());
            for row in rows {
                if found.len() < most {
                    found.extend(self.asked_by(self.found(row)).await?);
                }
            }
            if is_last {
                break;
            }
        }
        Ok(found)
    }

    /// The pending approvals of a run. A corrupt journal hides only the approvals of its own run.
    async fn asked_by(&self, of: TenantRun) -> Result<Vec<Approval>, Problem> {
        let run = match of.load().await {
            Ok(run) => run,
            Err(problem) if problem.code() == ErrorCode::JournalCorrupt => {
                tracing::warn!(run = %of.id(), reason = problem.detail(), "failed to read pending approvals of run");
                return Ok(Vec::new());
            }
            Err(problem) => return Err(problem),
        };
        let now = self.now();
        let is_late = |item: &PendingItem| item.until().is_some_and(|until| until <= now);
        let asked = run.pending_items().into_iter().filter(|item| item.binding().is_some()).map(|item| Approval {
            of: of.clone(),
            status: run.status(),
            run: run.clone(),
            fate: if is_late(&item) { ApprovalState::Expired } else { ApprovalState::Pending },
            item,
        });
        let mut asked: Vec<Approval> = asked.collect();
        asked.sort_by_key(Approval::event);
        Ok(asked)
    }
}

impl Approval {
    /// The approval's id.
    pub(in crate::gateway) fn place(&self) -> ApprovalId {
        ApprovalId { run: self.of.id().clone(), event: self.event() }
    }

    /// The call to decide about.
    pub(in crate::gateway) fn call(&self) -> &CallId {
        self.item.call_id()
    }

    /// The digest that a decision has to match.
    pub(in crate::gateway) fn digest(&self) -> Option<String> {
        self.item.binding().map(|binding| binding.digest(self.of.id(), self.call()))
    }

    /// Records a decision, and resumes the run.
    pub(in crate::gateway) async fn decide(&self, decision: Decision, trace: Option<Trace>) -> Result<(), Problem> {
        let call = self.call().clone();
        let answer = Answer::Decision { decision: Box::new(decision), seen: self.digest() };
        let resume = Resume::default().with(call, answer).partial();
        // The run resumes in the background; the request does not wait for it.
        let place = |refusal: &ResumeError| {
            let is_expiry = matches!(refusal, ResumeError::InThePast { .. });
            if is_expiry { "/expires_at".to_owned() } else { String::new() }
        };
        let placed = |error| Problem::placed(error, place);
        self.of.resume(resume, trace, placed).await.map(drop)
    }

    /// Extends the deadline.
    pub(in crate::gateway) async fn extend(&self, until: Timestamp) -> Result<(), Problem> {
        let TenantRun { runner, caller, .. } = &self.of;
        let given = runner.extend(self.of.id(), self.call().clone(), until, caller.name.as_ref(), Channel::Api).await;
        Ok(given.map(drop)?)
    }

    fn event(&self) -> u64 {
        self.item.binding().map(|binding| binding.event).unwrap_or_default()
    }
}

/// The approval that the fact at a position requested, and its outcome.
fn told(of: TenantRun, by_now: &Run, journal: &[JournalEntry], event: u64) -> Option<Approval> {
    let status = by_now.status();
    if let Some(item) = asked_at(by_now, event) {
        return Some(Approval { of, status, run: by_now.clone(), item, fate: ApprovalState::Pending });
    }
    let asks = journal.iter().find(|recorded| recorded.seq == event)?;
    let Event::CallChecked { call, verdict: CallVerdict::Ask { .. } } = &asks.event else { return None };
    let settling =
        journal.iter().filter(|recorded| recorded.seq > event).find(|recorded| settles(&recorded.event, call));
    // An expiry that only the clock shows is not in the journal.
    let until = settling.map_or(journal.len() as u64, |settling| settling.seq);
    let before = Run::replay_recorded(journal.iter().take_while(|recorded| recorded.seq < until)).ok()??;
    let item = asked_at(&before, event)?;
    let fate = match settling {
        Some(JournalEntry { event: Event::ApprovalDecided { decision, .. }, at, .. }) => {
            ApprovalState::Decided { decision: decision.clone(), at: *at }
        }
        Some(JournalEntry { event: Event::Expired { .. } | Event::Ended { ending: Ending::Expired }, .. }) | None => {
            ApprovalState::Expired
        }
        Some(_) => ApprovalState::Withdrawn,
    };
    Some(Approval { of, status, run: before, item, fate })
}

fn asked_at(run: &Run, event: u64) -> Option<PendingItem> {
    run.pending_items().into_iter().find(|item| item.binding().is_some_and(|binding| binding.event == event))
}

/// Whether a call no longer waits for the same decision once this event is written.
fn settles(event: &Event, call: &CallId) -> bool {
    match event {
        Event::ApprovalDecided { call: of, .. }
        | Event::Expired { call: of }
        | Event::CallChecked { call: of, .. }
        | Event::CallCompleted { call: of, .. }
        | Event::CallDrifted { call: of, .. } => of == call,
        Event::Ended { .. } => true,
        Event::Started(_)
        | Event::Resumed { .. }
        | Event::ToolsListed { .. }
        | Event::ApprovalsResolved { .. }
        | Event::ModelCalled { .. }
        | Event::ModelReplied { .. }
        | Event::ModelFailed { .. }
        | Event::OutputValidated { .. }
        | Event::TierSelected { .. }
        | Event::Extended { .. }
        | Event::QuestionAnswered { .. }
        | Event::CallsStarted { .. }
        | Event::InputRequested { .. }
        | Event::InputRequired { .. }
        | Event::InputGiven { .. }
        | Event::TaskStarted { .. }
        | Event::MessageAdded { .. } => false,
    }
}
