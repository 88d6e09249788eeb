//! `/v1/runs/{run}/feedback`: judgements on a run.

use axum::Json;
use axum::http::StatusCode;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use toolgate_core::id::FeedbackId;
use toolgate_core::timestamp::millis;
use toolgate_core::trace::SpanId;
use toolgate_ports::{Annotator, AnnotatorKind, Feedback};
use toolgate_runner::NewFeedback;
use toolgate_service::TenantRunner;
use utoipa::ToSchema;

use crate::access::Admitted;
use crate::body::{Body, Path};
use crate::closed_sets::AnnotatorKindView;
use crate::pagination::{Page, PageResult};
use crate::problem::Problem;

/// Feedback to give: a score, a label or a comment, or several of them.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewFeedback)]
pub(super) struct NewFeedbackBody {
    /// The criterion.
    #[schema(example = "quality", min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9_.-]+$")]
    name: String,
    /// A number, whose range and direction you choose.
    #[schema(example = 0.8)]
    score: Option<f64>,
    /// A category, of at most 256 bytes.
    #[schema(example = "good")]
    label: Option<String>,
    /// The reason in words, of at most 8 KiB.
    comment: Option<String>,
    /// The author of the judgement. Default: a person without a name.
    annotator: Option<NewAnnotator>,
    /// The judged span of the run: 16 lower-case hex digits. Default: the run as a whole.
    #[schema(value_type = Option<String>, example = "00f067aa0ba902b7")]
    span_id: Option<SpanId>,
}

/// The author of a judgement.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewAnnotator {
    /// The kind of author.
    #[schema(value_type = AnnotatorKindView)]
    kind: AnnotatorKind,
    /// The name of the person, the model or the program, of at most 256 bytes: each replaces only its own judgements.
    #[schema(example = "ann")]
    id: Option<String>,
}

/// Give feedback on a run
///
/// Stores a judgement of a person, a model or a program, at any time until the run is deleted. It replaces the one that the same
/// annotator gave by the same name on the same span, so that a repetition does not count twice. A run has at most 100 judgements.
/// If the run is traced, the judgement is exported as a span of its trace.
#[utoipa::path(
    post, path = "/v1/runs/{run}/feedback", tag = "runs", operation_id = "addFeedback", request_body = NewFeedbackBody,
    responses((status = 201, description = "The feedback, which is stored", body = FeedbackView)),
)]
pub(super) async fn add(
    runner: TenantRunner,
    Path(run): Path<String>,
    Body(body): Body<NewFeedbackBody>,
) -> Result<(StatusCode, Json<FeedbackView>), Problem> {
    let NewFeedbackBody { name, score, label, comment, annotator, span_id: span } = body;
    let annotator = annotator
        .map_or(Annotator { kind: AnnotatorKind::Human, id: None }, |NewAnnotator { kind, id }| Annotator { kind, id });
    let new = NewFeedback { name, score, label, comment, annotator, span, by: None };
    let feedback = runner.run(&run).await?.add_feedback(new).await?;
    Ok((StatusCode::CREATED, Json(FeedbackView::new(feedback))))
}

/// List the feedback on a run
///
/// Returns all judgements, oldest first.
#[utoipa::path(
    get, path = "/v1/runs/{run}/feedback", tag = "runs", operation_id = "listFeedback",
    responses((status = 200, description = "The feedback on the run", body = Page<FeedbackView>)),
)]
pub(super) async fn list(Path(run): Path<String>, runner: Admitted<TenantRunner>) -> PageResult<FeedbackView> {
    let found = runner.run(&run).await?.feedback().await?;
    Ok(Json(Page::whole(found, |feedback| feedback.id.to_string(), FeedbackView::new)))
}

/// Delete feedback
///
/// Deletes a judgement on a run. Spans that were exported are not deleted.
#[utoipa::path(
    delete, path = "/v1/runs/{run}/feedback/{feedback}", tag = "runs", operation_id = "deleteFeedback",
    responses((status = 204, description = "The feedback is deleted")),
)]
pub(super) async fn delete(
    runner: TenantRunner,
    Path((run, feedback)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    runner.run(&run).await?.delete_feedback(FeedbackId::from(feedback)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A judgement on a run.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Feedback)]
pub(super) struct FeedbackView {
    /// The feedback's id. A judgement that replaces another one has its id.
    #[schema(example = "feedback_5f0c2a7be81d4c6f9a3e7d1b2c4f6a80")]
    id: String,
    /// Always `feedback`.
    object: &'static str,
    /// The criterion.
    name: String,
    /// The score.
    score: Option<f64>,
    /// The category.
    label: Option<String>,
    /// The reason in words.
    comment: Option<String>,
    /// The author of the judgement.
    annotator: AnnotatorView,
    /// The judged span; null for the run as a whole.
    span_id: Option<String>,
    /// When the judgement was first given.
    #[serde(serialize_with = "millis")]
    created_at: Timestamp,
    /// When it was last replaced.
    #[serde(serialize_with = "millis")]
    updated_at: Timestamp,
    /// The caller who gave it.
    created_by: Option<String>,
}

/// The author of a judgement.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Annotator)]
struct AnnotatorView {
    /// The kind of author.
    #[schema(value_type = AnnotatorKindView)]
    kind: AnnotatorKind,
    /// The name of the person, the model or the program.
    id: Option<String>,
}

impl FeedbackView {
    fn new(feedback: Feedback) -> Self {
        let Annotator { kind, id } = feedback.annotator;
        Self {
            id: feedback.id.to_string(),
            object: "feedback",
            name: feedback.name,
            score: feedback.score,
            label: feedback.label,
            comment: feedback.comment,
            annotator: AnnotatorView { kind, id },
            span_id: feedback.span.map(|span| span.to_string()),
            created_at: feedback.created_at,
            updated_at: feedback.updated_at,
            created_by: feedback.created_by,
        }
    }
}
