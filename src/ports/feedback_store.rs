//! Feedback store: judgements on runs by people, models and programs. Most come after the end of the run, which closes its
//! journal, so they are rows beside the journal (decision 0060). They are deleted with the content of the run.

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use toolgate_core::id::{FeedbackId, RunId};
use toolgate_core::trace::SpanId;

use super::StoreError;

/// The most feedback on one run.
pub const MAX_FEEDBACK: usize = 100;

/// A judgement on a run, or on a span of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Feedback {
    /// Derived from the run, the name, the annotator and the span: the same annotator replaces its own judgement.
    pub id: FeedbackId,
    /// The criterion, such as `quality`.
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    pub annotator: Annotator,
    /// The judged span; `None` for the run as a whole.
    #[serde(default, rename = "span_id", skip_serializing_if = "Option::is_none")]
    pub span: Option<SpanId>,
    pub created_at: Timestamp,
    /// When it was last replaced.
    pub updated_at: Timestamp,
    /// The caller who gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
}

/// The author of a judgement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Annotator {
    pub kind: AnnotatorKind,
    /// The name of the person, the model or the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// The kinds of annotators that OpenInference knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnnotatorKind {
    Human,
    Llm,
    Code,
}

/// The feedback on all runs.
#[async_trait]
pub trait FeedbackStore: Send + Sync {
    /// Stores feedback on a run, in place of that with its id. Returns `false` and stores nothing if there is no such run, if
    /// its content was deleted, or if the run has [`MAX_FEEDBACK`] others.
    async fn put_feedback(&self, run: &RunId, feedback: &Feedback) -> Result<bool, StoreError>;

    /// The feedback on a run, oldest first.
    async fn feedback(&self, run: &RunId) -> Result<Vec<Feedback>, StoreError>;

    /// Deletes feedback on a run, and the stored responses that quote it. `false` if there is no feedback with this id.
    async fn delete_feedback(&self, run: &RunId, id: &FeedbackId) -> Result<bool, StoreError>;
}
