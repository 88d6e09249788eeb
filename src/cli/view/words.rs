//! Things a server, a tool or a check said, put in a line for people.

use crate::cli::text::{one_line, size};
use crate::core::chat::{Media, Part};
use crate::core::tool::{Kept, KeptForm, LeftOut, Problem, visible};
use crate::ports::Progress;

/// Why a call was rejected, in a line. What the model reads is a headline and the findings as JSON; a person reads the
/// findings.
pub(super) fn why_rejected(message: &str, room: usize) -> String {
    one_line(findings(message).as_deref().unwrap_or(message), room)
}

/// The findings at the end of what a model or a program is told; `None` where there are none.
pub(in crate::cli) fn findings(message: &str) -> Option<String> {
    let json = message.get(message.find("{\"problems\":")?..)?;
    let findings = serde_json::from_str::<Findings>(json).ok().filter(|findings| !findings.problems.is_empty())?;
    let told = findings.problems.iter().map(|problem| {
        let place = if problem.path.is_empty() { String::new() } else { format!("{}: ", problem.path) };
        format!("{place}{}", problem.message)
    });
    Some(told.collect::<Vec<_>>().join("; "))
}

#[derive(serde::Deserialize)]
struct Findings {
    problems: Vec<Problem>,
}

/// Something that is not offered, in a line.
pub(in crate::cli) fn left_out_line(left: &LeftOut) -> String {
    let what = match (&left.server, &left.tool) {
        // Most reasons of a whole server begin with its name.
        (Some(server), None) if left.reason.contains(&format!("`{server}`")) => {
            return visible(&format!("left out: {}", left.reason));
        }
        (Some(server), Some(tool)) => format!("{server}/{tool}"),
        (Some(server), None) => format!("server {server}"),
        (None, Some(tool)) => tool.clone(),
        (None, None) => "a tool".into(),
    };
    visible(&format!("left out: {what}: {}", left.reason))
}

/// How far a call is, in words.
pub(in crate::cli) fn in_words(progress: &Progress) -> String {
    let of = progress.total.map(|total| format!("/{total}")).unwrap_or_default();
    let message = progress.message.as_deref().map(|message| format!(" {}", one_line(message, 80))).unwrap_or_default();
    format!("{}{of}{message}", progress.progress)
}

/// A medium, in a line: what it is, how many bytes it has where that is known, and where it is.
pub(in crate::cli) fn media_line(media: &Media, bytes: Option<u64>) -> String {
    let place = match (&media.url, &media.data) {
        (Some(url), _) => url,
        (None, Some(_)) => "in the journal",
        (None, None) => "nowhere",
    };
    let large = bytes.map(|bytes| format!(", {}", size(bytes))).unwrap_or_default();
    one_line(&format!("{}{large}: {place}", media.media_type), LONGEST_LINE)
}

/// What of a result is kept outside the journal, in a line.
pub(super) fn kept_line(kept: &Kept) -> String {
    let what = match kept.form {
        KeptForm::Text | KeptForm::Both | KeptForm::Same | KeptForm::Wrapped => "kept whole",
        KeptForm::Structured => "structured form",
        KeptForm::Media => "kept",
    };
    one_line(&format!("{what}: {}, {}: {}", kept.media_type, size(kept.bytes), kept.handle), LONGEST_LINE)
}

/// Handles are whole in a line, and addresses of some length.
const LONGEST_LINE: usize = 300;

/// What a message carries besides its words, in a line each.
pub(super) fn attachments(parts: &[Part]) -> impl Iterator<Item = String> {
    let attached = parts.iter().filter_map(|part| match part {
        Part::Image(media) | Part::Audio(media) => Some(media.media_type.clone()),
        Part::Resource { uri, name, .. } => Some(name.as_ref().unwrap_or(uri).clone()),
        Part::Text { .. } | Part::Reasoning { .. } | Part::ToolUse { .. } | Part::ToolResult { .. } => None,
    });
    attached.map(|what| format!("attached: {}", one_line(&what, 120)))
}
