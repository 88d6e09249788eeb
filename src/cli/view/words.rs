//! One-line forms of messages from servers, tools and validation.

use crate::cli::text::{block, one_line, size};
use crate::core::chat::{Media, Part};
use crate::core::tool::{LeftOut, Problem, Progress, StoredContent, StoredForm};

/// The reason of a rejection in one line. The model receives a headline and the problems as JSON; the user sees only
/// the problems.
pub(super) fn why_rejected(message: &str, room: usize) -> String {
    one_line(findings(message).as_deref().unwrap_or(message), room)
}

/// The problems at the end of a message for a model or a program, as text; `None` if there are no problems.
pub(in crate::cli) fn findings(message: &str) -> Option<String> {
    let json = message.get(message.find("{\"problems\":")?..)?;
    let findings = serde_json::from_str::<Findings>(json).ok().filter(|findings| !findings.problems.is_empty())?;
    let problems = findings.problems.iter().map(|problem| {
        let place = if problem.path.is_empty() { String::new() } else { format!("{}: ", problem.path) };
        format!("{place}{}", problem.message)
    });
    Some(problems.collect::<Vec<_>>().join("; "))
}

#[derive(serde::Deserialize)]
struct Findings {
    problems: Vec<Problem>,
}

/// The lines about omitted tools and servers. Tools of one server with one reason share a line.
pub(in crate::cli) fn left_out_lines(left_out: &[LeftOut]) -> Vec<String> {
    let mut groups: Vec<(&LeftOut, Vec<&str>)> = Vec::new();
    for left in left_out {
        let alike = |(first, _): &&mut (&LeftOut, Vec<&str>)| {
            (&first.server, &first.reason) == (&left.server, &left.reason)
                && first.tool.is_some()
                && left.tool.is_some()
        };
        match groups.iter_mut().find(alike) {
            Some((_, tools)) => tools.extend(left.tool.as_deref()),
            None => groups.push((left, left.tool.as_deref().into_iter().collect())),
        }
    }
    let lines = groups.iter().map(|(first, tools)| left_out_line(first, tools));
    lines.flat_map(|lines| lines.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

fn left_out_line(left: &LeftOut, tools: &[&str]) -> String {
    let what = match (&left.server, tools) {
        // The reason already names the server.
        (Some(server), []) if left.reason.contains(&format!("`{server}`")) => {
            return block(&format!("left out: {}", left.reason));
        }
        (Some(server), [tool]) => format!("{server}/{tool}"),
        (Some(server), []) => format!("server {server}"),
        (None, [tool]) => (*tool).to_owned(),
        (None, []) => "a tool".into(),
        (Some(server), tools) => format!("{} tools of {server} ({})", tools.len(), tools.join(", ")),
        (None, tools) => format!("{} tools ({})", tools.len(), tools.join(", ")),
    };
    block(&format!("left out: {what}: {}", left.reason))
}

/// The progress of a call as text.
pub(in crate::cli) fn in_words(progress: &Progress) -> String {
    let of = progress.total.map(|total| format!("/{total}")).unwrap_or_default();
    let message = progress.message.as_deref().map(|message| format!(" {}", one_line(message, 80))).unwrap_or_default();
    format!("{}{of}{message}", progress.progress)
}

/// A medium in one line: its type, its size if known, and its location.
pub(in crate::cli) fn media_line(media: &Media, bytes: Option<u64>) -> String {
    let place = match (&media.url, &media.data) {
        (Some(url), _) => url,
        (None, Some(_)) => "in the journal",
        (None, None) => "nowhere",
    };
    let large = bytes.map(|bytes| format!(", {}", size(bytes))).unwrap_or_default();
    one_line(&format!("{}{large}: {place}", media.media_type), LONGEST_LINE)
}

/// A part of a result that is stored outside the journal, in one line.
pub(super) fn kept_line(kept: &StoredContent) -> String {
    let what = match kept.form {
        StoredForm::Text | StoredForm::Both | StoredForm::Same | StoredForm::Wrapped => "kept whole",
        StoredForm::Structured => "structured form",
        StoredForm::Media => "kept",
    };
    one_line(&format!("{what}: {}, {}: {}", kept.media_type, size(kept.bytes), kept.handle), LONGEST_LINE)
}

/// The maximum length of a line. Handles always fit; long URLs are shortened.
const LONGEST_LINE: usize = 300;

/// The attachments of a message, one line each.
pub(super) fn attachments(parts: &[Part]) -> impl Iterator<Item = String> {
    let attached = parts.iter().filter_map(|part| match part {
        Part::Image(media) | Part::Audio(media) => Some(media.media_type.clone()),
        Part::Resource { uri, name, .. } => Some(name.as_ref().unwrap_or(uri).clone()),
        Part::Text { .. } | Part::Reasoning { .. } | Part::ToolUse { .. } | Part::ToolResult { .. } => None,
    });
    attached.map(|what| format!("attached: {}", one_line(&what, 120)))
}
