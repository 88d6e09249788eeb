//! Approvals of one tenant: listing, reading, deciding and extending them. The index has the runs that require approval;
//! the request and its outcome are in the run's journal, at the position in the approval's id.

use jiff::Timestamp;
use toolgate_core::error::ErrorCode;
use toolgate_core::id::CallId;
use toolgate_core::run::{
    Answer, CallVerdict, Decision, Ending, Event, JournalEntry, PendingItem, Resume, ResumeError, Run, Status,
};
use toolgate_core::trace::Trace;
use toolgate_ports::{PendingKind, RunFilter};

use crate::answers::NewDecision;
use crate::approval_id::ApprovalId;
use crate::decisions::binding_digest;
use crate::error::ServiceError;
use crate::error_reason::ErrorReason;
use crate::runs::{TenantRun, TenantRunner};

/// An approval: the question whether one call may run.
pub struct Approval {
    pub of: TenantRun,
    /// The run's status.
    pub status: Status,
    /// The run as it was while the approval was pending.
    pub run: Run,
    pub item: PendingItem,
    /// The call to decide about.
    call: CallId,
    pub state: ApprovalState,
}

/// The outcome of an approval.
pub enum ApprovalState {
    /// Not decided yet.
    Pending,
    Decided {
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
    pub async fn approval(&self, id: &str) -> Result<Approval, ServiceError> {
        let missing = || ServiceError::not_found("approval", id);
        let place = ApprovalId::parse(id).ok_or_else(missing)?;
        let of = self.run(place.run.as_str()).await.map_err(|error| {
            let is_unknown = error.code == ErrorCode::NotFound;
            if is_unknown { missing() } else { error }
        })?;
        let (run, journal) = self.runner.at_now(of.id()).await?;
        approval_at(of, &run, &journal, place.event).ok_or_else(missing)
    }

    /// Decides an approval in the caller's name, and resumes the run in the background. Repeating the same decision has no
    /// further effect.
    pub async fn decide(
        &self,
        id: &str,
        decision: NewDecision,
        trace: Option<Trace>,
    ) -> Result<Approval, ServiceError> {
        let approval = self.approval(id).await?;
        let decided = self.decide_on(&approval, id, decision, trace).await;
        approval.of.with_current(decided).await
    }

    async fn decide_on(
        &self,
        approval: &Approval,
        id: &str,
        decision: NewDecision,
        trace: Option<Trace>,
    ) -> Result<Approval, ServiceError> {
        if decision.digest().is_some_and(|digest| approval.digest().as_deref() != Some(digest)) {
            let detail = "this is not the call that you saw (`digest`); read the approval again and decide again";
            return Err(ServiceError::lasting_conflict(detail).with(ErrorReason::CallChanged));
        }
        let decision = decision.decision(&self.caller.name, self.via);
        if approval.is_open_for(&decision)?
            && let Err(error) = approval.decide(decision.clone(), trace).await
        {
            // Another approver may have been quicker; that decision counts then.
            if self.approval(id).await?.is_open_for(&decision)? {
                return Err(error);
            }
        }
        self.approval(id).await
    }

    /// Extends the deadline of a pending approval.
    pub async fn extend(&self, id: &str, until: Timestamp) -> Result<Approval, ServiceError> {
        let approval = self.approval(id).await?;
        let extended = match approval.state.closed() {
            Some(closed) => Err(closed),
            None => approval.extend(until).await,
        };
        approval.of.with_current(extended).await?;
        self.approval(id).await
    }

    /// Approvals of pending runs, newest run first, up to a limit. Those of one run are in the order in which they were
    /// requested. `after`: only those after this one.
    pub async fn pending_approvals(
        &self,
        filter: RunFilter,
        after: Option<ApprovalId>,
        most: usize,
    ) -> Result<Vec<Approval>, ServiceError> {
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
    async fn asked_by(&self, of: TenantRun) -> Result<Vec<Approval>, ServiceError> {
        let run = match of.load().await {
            Ok(run) => run,
            Err(error) if error.code == ErrorCode::JournalCorrupt => {
                tracing::warn!(run = %of.id(), reason = error.detail, "failed to read pending approvals of run");
                return Ok(Vec::new());
            }
            Err(error) => return Err(error),
        };
        let now = self.now();
        let is_late = |item: &PendingItem| item.expires_at().is_some_and(|until| until <= now);
        let asked = run.pending_items().into_iter().filter(|item| item.binding().is_some()).filter_map(|item| {
            Some(Approval {
                of: of.clone(),
                status: run.status(),
                run: run.clone(),
                call: item.call_id()?.clone(),
                state: if is_late(&item) { ApprovalState::overdue(&run, &item) } else { ApprovalState::Pending },
                item,
            })
        });
        let mut asked: Vec<Approval> = asked.collect();
        asked.sort_by_key(Approval::event);
        Ok(asked)
    }
}

impl Approval {
    /// The approval's id.
    pub fn id(&self) -> ApprovalId {
        ApprovalId { run: self.of.id().clone(), event: self.event() }
    }

    /// The call to decide about.
    pub fn call(&self) -> &CallId {
        &self.call
    }

    /// The digest that a decision has to match.
    fn digest(&self) -> Option<String> {
        binding_digest(self.of.id(), &self.item)
    }

    /// Whether a decision is still missing. The error says why the approval is closed, unless this very decision was
    /// made.
    fn is_open_for(&self, decision: &Decision) -> Result<bool, ServiceError> {
        match &self.state {
            ApprovalState::Decided { decision: made, .. } if made.is_repeated_by(decision) => Ok(false),
            ApprovalState::Decided { decision: made, .. } => {
                let detail = format!("`{}` has already made another decision about this", made.by);
                Err(ServiceError::lasting_conflict(detail).with(ErrorReason::AlreadyDecided))
            }
            state @ (ApprovalState::Pending | ApprovalState::Expired | ApprovalState::Withdrawn) => {
                state.closed().map_or(Ok(true), Err)
            }
        }
    }

    /// Records a decision, and resumes the run.
    async fn decide(&self, decision: Decision, trace: Option<Trace>) -> Result<(), ServiceError> {
        let call = self.call().clone();
        let answer = Answer::Decision { decision: Box::new(decision), digest: self.digest() };
        let resume = Resume::default().with(call, answer).partial();
        // The run resumes in the background; the request does not wait for it.
        let place = |refusal: &ResumeError| {
            let is_expiry = matches!(refusal, ResumeError::InThePast { .. });
            if is_expiry { "/expires_at".to_owned() } else { String::new() }
        };
        let to_error = |error| ServiceError::at_fields(error, place);
        self.of.resume(resume, trace, to_error).await.map(drop)
    }

    /// Extends the deadline.
    async fn extend(&self, until: Timestamp) -> Result<(), ServiceError> {
        let TenantRun { runner, caller, via, .. } = &self.of;
        let given = runner.extend(self.of.id(), self.call().clone(), until, caller.name.as_ref(), *via).await;
        Ok(given.map(drop)?)
    }

    fn event(&self) -> u64 {
        self.item.binding().map(|binding| binding.event).unwrap_or_default()
    }
}

impl ApprovalState {
    /// The outcome of an approval whose deadline has passed, before its run records it.
    fn overdue(run: &Run, item: &PendingItem) -> Self {
        let decided = item.expires_at().and_then(|at| {
            run.overdue(at).into_iter().find_map(|event| {
                let Event::ApprovalDecided { call, decision } = event else { return None };
                (item.call_id() == Some(&call)).then_some((decision, at))
            })
        });
        decided.map_or(Self::Expired, |(decision, at)| Self::Decided { decision, at })
    }

    /// Why the approval accepts no decision; `None` while it does.
    fn closed(&self) -> Option<ServiceError> {
        let gone = |reason, detail: &str| ServiceError::new(ErrorCode::Gone, detail).with(reason);
        Some(match self {
            Self::Pending => return None,
            Self::Decided { decision, .. } => {
                ServiceError::lasting_conflict(format!("`{}` has already decided this", decision.by))
                    .with(ErrorReason::AlreadyDecided)
            }
            Self::Expired => gone(ErrorReason::TooLate, "this approval expired before a decision was made"),
            Self::Withdrawn => {
                gone(ErrorReason::Withdrawn, "this approval was withdrawn: its run has ended, or requires another one")
            }
        })
    }
}

/// The approval that the fact at a position requested, and its outcome.
fn approval_at(of: TenantRun, by_now: &Run, journal: &[JournalEntry], event: u64) -> Option<Approval> {
    let status = by_now.status();
    if let Some(item) = asked_at(by_now, event) {
        let call = item.call_id()?.clone();
        return Some(Approval { of, status, run: by_now.clone(), item, call, state: ApprovalState::Pending });
    }
    let asks = journal.iter().find(|recorded| recorded.seq == event)?;
    let Event::CallChecked { call, verdict: CallVerdict::Ask { .. }, .. } = &asks.event else { return None };
    let settling =
        journal.iter().filter(|recorded| recorded.seq > event).find(|recorded| settles(&recorded.event, call));
    // An expiry that only the clock shows is not in the journal.
    let until = settling.map_or(journal.len() as u64, |settling| settling.seq);
    let before = Run::replay_recorded(journal.iter().take_while(|recorded| recorded.seq < until)).ok()??;
    let item = asked_at(&before, event)?;
    let state = match settling {
        Some(JournalEntry { event: Event::ApprovalDecided { decision, .. }, at, .. }) => {
            ApprovalState::Decided { decision: decision.clone(), at: *at }
        }
        Some(JournalEntry { event: Event::Expired { .. } | Event::Ended { ending: Ending::Expired }, .. }) => {
            ApprovalState::Expired
        }
        None if by_now.ending().is_some() => ApprovalState::Expired,
        None => ApprovalState::overdue(&before, &item),
        Some(_) => ApprovalState::Withdrawn,
    };
    Some(Approval { of, status, run: before, item, call: call.clone(), state })
}

fn asked_at(run: &Run, event: u64) -> Option<PendingItem> {
    run.pending_items().into_iter().find(|item| item.binding().is_some_and(|binding| binding.event == event))
}

/// Whether a call no longer waits for the same decision once this event is written.
fn settles(event: &Event, call: &CallId) -> bool {
    let is_about_call = event.calls().any(|of| of == call) && !matches!(event, Event::Extended { .. });
    is_about_call || matches!(event, Event::Ended { .. } | Event::CompensationStarted { .. })
}
