//! Feedback on runs of one tenant. A caller with a principal judges only the runs of that principal, as it changes only these.

use toolgate_core::id::FeedbackId;
use toolgate_ports::Feedback;
use toolgate_runner::NewFeedback;

use super::error::ServiceError;
use super::runs::TenantRun;

impl TenantRun {
    /// Stores feedback on the run, in the name of the caller.
    pub async fn add_feedback(&self, new: NewFeedback) -> Result<Feedback, ServiceError> {
        self.require_same_principal().await?;
        let by = Some(self.caller.name.as_ref().to_owned());
        Ok(self.runner.add_feedback(self.id(), NewFeedback { by, ..new }).await?)
    }

    /// The feedback on the run, oldest first.
    pub async fn feedback(&self) -> Result<Vec<Feedback>, ServiceError> {
        Ok(self.runner.feedback(self.id()).await?)
    }

    /// Deletes feedback on the run.
    pub async fn delete_feedback(&self, id: FeedbackId) -> Result<(), ServiceError> {
        self.require_same_principal().await?;
        Ok(self.runner.delete_feedback(self.id(), &id).await?)
    }
}
