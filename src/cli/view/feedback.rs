//! Feedback on a run as lines.

use super::DisplaySettings;
use crate::cli::text::{gutter, one_line};
use crate::ports::{Annotator, AnnotatorKind, Feedback};

/// A line for each judgement, and its comment below it.
pub(in crate::cli) fn feedback_lines(feedback: &[Feedback], look: DisplaySettings) -> Vec<String> {
    let lines = feedback.iter().flat_map(|feedback| {
        let Feedback { name, score, label, comment, annotator, span, .. } = feedback;
        let result =
            score.map(|score| score.to_string()).into_iter().chain(label.iter().map(|label| one_line(label, 60)));
        let result: Vec<String> = result.collect();
        let span = span.map(|span| format!(", on span {span}")).unwrap_or_default();
        let about = look.paint.dim(format!("by {}{span}", author(annotator)));
        let head = format!("  {}", [name.clone(), result.join(", "), about].join("  "));
        let comment = comment.iter().flat_map(|comment| gutter(comment)).map(|line| format!("    {line}"));
        std::iter::once(head).chain(comment)
    });
    lines.collect()
}

fn author(annotator: &Annotator) -> String {
    let kind = match annotator.kind {
        AnnotatorKind::Human => "a person",
        AnnotatorKind::Llm => "a model",
        AnnotatorKind::Code => "a program",
    };
    annotator.id.as_ref().map_or_else(|| kind.to_owned(), |id| format!("{} ({kind})", one_line(id, 60)))
}
