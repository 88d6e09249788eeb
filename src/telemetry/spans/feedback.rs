//! EVALUATOR spans: feedback on a run, as an OpenInference annotation and as the GenAI event of an evaluation.

use serde_json::json;
use toolgate_ports::{AnnotatorKind, Feedback};

use super::attributes::{Attributes, REDACTED, Value, without_nul};
use super::span::SpanEvent;
use super::{SpanContent, names};

/// The comment as spans show it. It may quote inputs and outputs.
fn comment(feedback: &Feedback, content: SpanContent) -> Option<String> {
    let is_hidden = content.hide_inputs || content.hide_outputs;
    let shown = |comment: &String| if is_hidden { REDACTED.to_owned() } else { without_nul(comment.clone()) };
    feedback.comment.as_ref().map(shown)
}

/// `judged` is the output of the judged span.
pub(super) fn attributes(feedback: &Feedback, judged: Option<&str>, content: SpanContent, to: &mut Attributes) {
    let comment = comment(feedback, content);
    to.word(names::SPAN_KIND, "EVALUATOR");
    if let Some(judged) = judged {
        to.input(judged, content.hide_outputs);
    }
    to.output(&json!({ "score": feedback.score, "label": feedback.label, "comment": comment }).to_string(), false);
    let kind = match feedback.annotator.kind {
        AnnotatorKind::Human => "HUMAN",
        AnnotatorKind::Llm => "LLM",
        AnnotatorKind::Code => "CODE",
    };
    to.text(names::ANNOTATION_NAME, &feedback.name);
    to.float(names::ANNOTATION_SCORE, feedback.score);
    to.text_if(names::ANNOTATION_LABEL, feedback.label.as_ref());
    to.text_if(names::ANNOTATION_EXPLANATION, comment.as_ref());
    to.text(names::ANNOTATOR_KIND, kind);
    to.text(names::ANNOTATION_IDENTIFIER, feedback.id.as_str());
    to.text_if(names::ANNOTATOR_ID, feedback.annotator.id.as_ref());
    to.text(names::FEEDBACK_AT, feedback.updated_at.to_string());
}

/// The event of the evaluation.
pub(super) fn result(feedback: &Feedback, content: SpanContent) -> SpanEvent {
    let text = |text: String| Value::Text(text.into());
    let members = [
        (names::EVALUATION_NAME, Some(text(feedback.name.clone()))),
        (names::EVALUATION_SCORE, feedback.score.map(Value::Float)),
        (names::EVALUATION_LABEL, feedback.label.clone().map(text)),
        (names::EVALUATION_EXPLANATION, comment(feedback, content).map(text)),
    ];
    let attributes = members.into_iter().filter_map(|(name, value)| Some((name.into(), value?))).collect();
    SpanEvent { name: names::EVALUATION_RESULT, at: feedback.updated_at, attributes }
}
