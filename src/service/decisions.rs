//! Input of an operator for runs: decisions, answers and results, with the rules that bind them to what was shown.

use jiff::Timestamp;
use toolgate_core::id::{CallId, GrantId, RunId};
use toolgate_core::run::{Answer, AnswerForm, Input, PendingItem, Resume, ResumeError, Run};
use toolgate_core::trace::Trace;
use toolgate_ports::Grant;
use toolgate_runner::envelope::Envelope;
use toolgate_runner::{Execution, ExpiredRun, Report, RunnerError};

use super::operator::Operator;

/// The digest with which a decision names the call that was shown, so that the decision cannot apply to a changed call.
/// `None` if the item is not a pending approval.
pub fn binding_digest(run: &RunId, item: &PendingItem) -> Option<String> {
    Some(item.binding()?.digest(run, item.call_id()?))
}

impl Operator {
    /// Submits input and resumes the run. A digest in it may be the beginning of the one of a pending item.
    pub async fn resume(&self, run: &RunId, mut input: Input, trace: Option<Trace>) -> Result<Execution, RunnerError> {
        if let Input::Resume(resume) = &mut input {
            self.complete_digests(run, resume).await?;
        }
        self.runner.resume_run(run, input, trace).await
    }

    /// Submits input to the run in a signed envelope and resumes the run.
    pub async fn resume_envelope(
        &self,
        envelope: &Envelope,
        mut resume: Resume,
        trace: Option<Trace>,
    ) -> Result<Execution, RunnerError> {
        if let Some(run) = Run::replay_recorded(&self.runner.journal_in(envelope)?).ok().flatten() {
            complete(&mut resume, &envelope.run_id, &run.pending_items());
        }
        self.runner.resume_run_from(envelope, resume, trace).await
    }

    /// Stores input and leaves the execution to the process that executes the run now, or to recovery.
    pub async fn record(&self, run: &RunId, mut resume: Resume) -> Result<Report, RunnerError> {
        self.complete_digests(run, &mut resume).await?;
        self.runner.record(run, resume).await
    }

    /// Stores answers to items as they were shown. Another process may write to the run in the meantime, as long as the
    /// items stay the same.
    pub async fn record_as_shown(
        &self,
        run: &RunId,
        resume: Resume,
        shown: &[PendingItem],
    ) -> Result<Report, RunnerError> {
        loop {
            let state = self.runner.load(run).await?;
            let still_asked = shown.iter().all(|item| state.pending_items().contains(item));
            let expected_version = if still_asked { Some(state.length()) } else { resume.expected_version };
            match self.record(run, Resume { expected_version, ..resume.clone() }).await {
                Err(error) if still_asked && is_version_conflict(&error) => {}
                recorded => return recorded,
            }
        }
    }

    /// Extends the deadline of a pending item.
    pub async fn extend(
        &self,
        run: &RunId,
        call: CallId,
        until: Timestamp,
        by: impl Into<String>,
    ) -> Result<Report, RunnerError> {
        self.runner.extend(run, call, until, by, self.via).await
    }

    /// Resumes every pending run with overdue items.
    pub async fn expire_due(&self) -> Result<Vec<ExpiredRun>, RunnerError> {
        self.runner.expire_due().await
    }

    /// Revokes grants, in order. Returns those that exist.
    pub async fn revoke(&self, grants: Vec<GrantId>, by: &str) -> Result<Vec<Grant>, RunnerError> {
        let mut revoked = Vec::new();
        for grant in grants {
            revoked.extend(self.runner.revoke(&grant, by).await?);
        }
        Ok(revoked)
    }

    /// Whether one of these calls requires approval again: it changed after a decision about it, which therefore has no
    /// effect.
    pub async fn requires_approval_again(&self, run: &RunId, calls: &[CallId]) -> Result<bool, RunnerError> {
        let items = self.runner.load(run).await?.pending_items();
        Ok(items.iter().any(|item| match item.form() {
            AnswerForm::Decision(review) => {
                item.call_id().is_some_and(|call| calls.contains(call)) && !review.differences.is_empty()
            }
            AnswerForm::Result { .. }
            | AnswerForm::Choice(_)
            | AnswerForm::Elicitation { .. }
            | AnswerForm::Background(_)
            | AnswerForm::Continue { .. } => false,
        }))
    }

    async fn complete_digests(&self, run: &RunId, resume: &mut Resume) -> Result<(), RunnerError> {
        let has_digest = |(_, answer): &(CallId, Answer)| matches!(answer, Answer::Decision { digest: Some(_), .. });
        if resume.answers.iter().any(has_digest) {
            complete(resume, run, &self.runner.load(run).await?.pending_items());
        }
        Ok(())
    }
}

/// Completes digests that are the beginning of the one of a pending item. It keeps others, which the runner rejects.
fn complete(resume: &mut Resume, run: &RunId, pending: &[PendingItem]) {
    for (call, answer) in &mut resume.answers {
        let Answer::Decision { digest: Some(digest), .. } = answer else { continue };
        let item = pending.iter().find(|item| item.call_id() == Some(call));
        let in_force = item.and_then(|item| binding_digest(run, item));
        if let Some(whole) = in_force.filter(|whole| whole.starts_with(digest.as_str())) {
            *digest = whole;
        }
    }
}

fn is_version_conflict(error: &RunnerError) -> bool {
    let RunnerError::Refused(refusals) = error else { return false };
    refusals.iter().all(|refusal| matches!(refusal, ResumeError::VersionConflict { .. }))
}
