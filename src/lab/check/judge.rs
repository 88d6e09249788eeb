//! Judgement of single messages: against the official schema of their revision, and against the declared capabilities.

use serde_json::{Value, json};

use super::finding::{Finding, Findings, one_line};
use super::official::{Official, Violation};
use super::revision::Revision;
use super::rules::{calls, protocol};

/// Content blocks, by their `type`.
const BLOCKS: [(&str, &str); 5] = [
    ("text", "TextContent"),
    ("image", "ImageContent"),
    ("audio", "AudioContent"),
    ("resource", "EmbeddedResource"),
    ("resource_link", "ResourceLink"),
];

/// Notifications that need a capability, and its place.
const ANNOUNCED: [(&str, &str); 3] = [
    ("notifications/tools/list_changed", "/tools/listChanged"),
    ("notifications/prompts/list_changed", "/prompts/listChanged"),
    ("notifications/resources/list_changed", "/resources/listChanged"),
];

/// Judges a request or a notification of the server.
pub(super) fn server_message(findings: &Findings, revision: Option<Revision>, message: &Value) {
    let Some(revision) = revision else { return };
    let (official, method) =
        (Official::of(revision), message.get("method").and_then(Value::as_str).unwrap_or_default());
    match official.type_of_method(method) {
        Some(definition) => report(findings, revision, method, &official.violations(definition, message)),
        None => {
            let rule = &protocol::NOTIFICATION_UNKNOWN;
            let text = format!("{revision} has no `{}`", one_line(method, 80));
            findings.add(Finding::new(rule, text).in_revision(rule, revision));
        }
    }
}

/// Judges whether a notification was announced by a capability.
pub(super) fn announced(findings: &Findings, revision: Option<Revision>, capabilities: &Value, method: &str) {
    let Some(revision) = revision else { return };
    let is_declared = |place: &str| capabilities.pointer(place) == Some(&Value::Bool(true));
    if let Some((_, place)) = ANNOUNCED.iter().find(|(known, place)| *known == method && !is_declared(place)) {
        let rule = &protocol::LIST_CHANGED_UNDECLARED;
        let text = format!("the server sent `{method}`, and `{place}` of its capabilities is not true");
        findings.add(Finding::new(rule, text).in_revision(rule, revision));
    }
    if method == "notifications/message" && capabilities.get("logging").is_none() && !revision.is_modern() {
        let rule = &protocol::LOG_UNDECLARED;
        findings.add(
            Finding::new(rule, "the server sent a log message, and its capabilities lack `logging`")
                .in_revision(rule, revision),
        );
    }
}

/// Judges an error answer.
pub(super) fn error(findings: &Findings, revision: Option<Revision>, method: &str, message: &Value) {
    let revision = revision.unwrap_or(Revision::LAST_LEGACY);
    let official = Official::of(revision);
    let definition = if official.has("JSONRPCErrorResponse") { "JSONRPCErrorResponse" } else { "JSONRPCError" };
    let mut message = message.clone();
    if let Some(members) = message.as_object_mut() {
        // The inbox judges ids, and errors without one are allowed where a request has none.
        members.insert("id".into(), json!(1));
        members.remove("result");
    }
    report(findings, revision, method, &official.violations(definition, &message));
}

/// Judges the result of a request.
pub(super) fn result(findings: &Findings, agreed: Option<Revision>, method: &str, result: &Value) {
    let selected = result.get("protocolVersion").and_then(Value::as_str).and_then(Revision::parse);
    let own = match method {
        "initialize" => selected.or(Some(Revision::LAST_LEGACY)),
        "server/discover" => Some(Revision::V2026July),
        _ => agreed,
    };
    let Some(revision) = own else { return };
    let official = Official::of(revision);
    let definition = match result.get("resultType").and_then(Value::as_str) {
        Some("input_required") => "InputRequiredResult",
        // Tasks are an extension, whose schema is not part of the revision.
        Some("task") => return,
        Some(_) | None => Official::type_of_result(method),
    };
    let is_task = result.get("task").is_some() && method == "tools/call";
    let definition = if is_task && official.has("CreateTaskResult") { "CreateTaskResult" } else { definition };
    report(findings, revision, method, &official.violations(definition, &without_parts(result)));
    if definition == "CallToolResult" {
        content(findings, revision, result);
    }
}

/// The result without its tools and its content, which are judged one by one.
fn without_parts(result: &Value) -> Value {
    let mut whole = result.clone();
    for part in ["tools", "content"] {
        if let Some(Value::Array(parts)) = whole.get_mut(part) {
            parts.clear();
        }
    }
    whole
}

/// Judges the content of a call's result.
fn content(findings: &Findings, revision: Revision, result: &Value) {
    let official = Official::of(revision);
    for (index, block) in result.get("content").and_then(Value::as_array).into_iter().flatten().enumerate() {
        let kind = block.get("type").and_then(Value::as_str);
        let definition = BLOCKS.iter().find(|(name, _)| Some(*name) == kind).map(|(_, definition)| *definition);
        match definition.filter(|definition| official.has(definition)) {
            Some(definition) => {
                let found = official.violations(definition, block).into_iter();
                let found: Vec<Violation> = found
                    .map(|violation| Violation {
                        pointer: format!("/content/{index}{}", violation.pointer),
                        ..violation
                    })
                    .collect();
                report(findings, revision, "tools/call", &found);
            }
            None => {
                let rule = &calls::CONTENT_TYPE_UNKNOWN;
                let text = match kind {
                    Some(kind) => format!("{revision} has no content of the type `{}`", one_line(kind, 60)),
                    None => format!("a content block has no type: {}", one_line(&block.to_string(), 120)),
                };
                findings.add(Finding::new(rule, text).in_revision(rule, revision).at(format!("/content/{index}/type")));
            }
        }
    }
}

fn report(findings: &Findings, revision: Revision, method: &str, violations: &[Violation]) {
    for Violation { pointer, message } in violations {
        let rule = &protocol::MESSAGE_INVALID;
        let place = if pointer.is_empty() { String::new() } else { format!(" at `{}`", one_line(pointer, 120)) };
        let text = format!("{}{place} of {revision}: {message}", one_line(method, 80));
        findings.add(Finding::new(rule, text).in_revision(rule, revision).at(format!("{method}#{pointer}")));
    }
}
