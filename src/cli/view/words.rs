//! Things a server, a tool or a check said, put in a line for people.

use crate::cli::text::one_line;
use crate::core::tool::{LeftOut, Problem};
use crate::ports::Progress;

/// Why a call was rejected, in a line. What the model reads is a headline and the findings as JSON; a person reads the
/// findings.
pub(super) fn why_rejected(message: &str, room: usize) -> String {
    let findings = message.split_once('\n').and_then(|(_, json)| serde_json::from_str::<Findings>(json).ok());
    let Some(findings) = findings.filter(|findings| !findings.problems.is_empty()) else {
        return one_line(message, room);
    };
    let told = findings.problems.iter().map(|problem| {
        let place = if problem.path.is_empty() { String::new() } else { format!("{}: ", problem.path) };
        format!("{place}{}", problem.message)
    });
    one_line(&told.collect::<Vec<_>>().join("; "), room)
}

#[derive(serde::Deserialize)]
struct Findings {
    problems: Vec<Problem>,
}

/// Something that is not offered, in a line.
pub(in crate::cli) fn left_out_line(left: &LeftOut) -> String {
    let what = match (&left.server, &left.tool) {
        (Some(server), Some(tool)) => format!("{server}/{tool}"),
        (Some(server), None) => format!("server {server}"),
        (None, Some(tool)) => tool.clone(),
        (None, None) => "a tool".into(),
    };
    format!("left out: {what}: {}", left.reason)
}

/// How far a call is, in words.
pub(super) fn in_words(progress: &Progress) -> String {
    let of = progress.total.map(|total| format!("/{total}")).unwrap_or_default();
    let message = progress.message.as_deref().map(|message| format!(" {}", one_line(message, 80))).unwrap_or_default();
    format!("{}{of}{message}", progress.progress)
}
