//! Results of calls: structured content, texts, media, size, and secrets.

use serde_json::Value;

use super::{media, secrets};
use crate::check::context::Context;
use crate::check::finding::{Finding, one_line};
use crate::check::revision::Revision;
use crate::check::rules::{Rule, calls as rules};
use crate::check::wire::answer::Answer;

/// A result above this has no use for a model, in bytes.
const LARGE: usize = 1 << 20;

/// Beginnings of texts that report a failure.
const FAILURES: [&str; 13] = [
    "error:",
    "error -",
    "error occurred",
    "an error occurred",
    "exception:",
    "traceback (most recent call last)",
    "fatal:",
    "fatal error",
    "internal server error",
    "database error",
    "unhandled",
    "{\"error\"",
    "unknown tool",
];

/// Whether a call succeeded, by what the server says.
pub(super) fn is_success(answer: &Answer) -> bool {
    !is_asking(answer) && answer.result().is_some_and(|result| result.get("isError") != Some(&Value::Bool(true)))
}

/// Whether the call is not complete: it asks for input, or runs on as a task.
pub(super) fn is_asking(answer: &Answer) -> bool {
    answer.result().and_then(|result| result.get("resultType")).is_some_and(|kind| kind != "complete")
}

/// The first text of a result, shortened.
pub(super) fn text(answer: &Answer) -> String {
    let result = answer.result().unwrap_or(&Value::Null);
    one_line(texts(result).next().unwrap_or_default(), 160)
}

/// The error or the text of a call that failed, shortened.
pub(super) fn error_text(answer: &Answer) -> String {
    match &answer.outcome {
        Ok(_) => text(answer),
        Err(error) => format!("error {}: {}", error.code, one_line(&error.message, 160)),
    }
}

/// Whether the text of a successful result says that the call failed.
pub(super) fn looks_failed(answer: &Answer) -> bool {
    let result = answer.result().unwrap_or(&Value::Null);
    let first = texts(result).next().unwrap_or_default().trim_start().to_lowercase();
    FAILURES.iter().any(|beginning| first.replace("{ \"", "{\"").starts_with(beginning))
}

fn texts(result: &Value) -> impl Iterator<Item = &str> {
    blocks(result).filter_map(|block| block.get("text")?.as_str())
}

fn blocks(result: &Value) -> impl Iterator<Item = &Value> {
    result.get("content").and_then(Value::as_array).into_iter().flatten()
}

/// Judges the result of a valid call.
pub(super) fn judge(context: &Context, revision: Revision, tool: &Value, name: &str, answer: &Answer) {
    let report = |rule: &'static Rule, pointer: String, text: String| {
        context.findings.add(Finding::new(rule, text).in_revision(rule, revision).tool(name).at(pointer));
    };
    if answer.size > LARGE {
        report(&rules::RESULT_TOO_LARGE, String::new(), format!("the result has {:.1} MB", answer.size as f64 / 1e6));
    }
    let Some(result) = answer.result() else { return };
    for (index, block) in blocks(result).enumerate() {
        if let Some((member, why)) = media::problem(block) {
            report(&rules::CONTENT_BROKEN, format!("/content/{index}{member}"), why);
        }
    }
    if let Some((kind, place)) = secrets::find(result, &context.target) {
        report(&rules::RESULT_SECRET, place, format!("the result has {kind}"));
    }
    if !is_success(answer) {
        return;
    }
    if looks_failed(answer) {
        report(
            &rules::ERROR_AS_SUCCESS,
            "/isError".into(),
            format!("the text says that the call failed, and isError is not set: {}", text(answer)),
        );
        return;
    }
    structured(tool, result, &report);
}

fn structured(tool: &Value, result: &Value, report: &dyn Fn(&'static Rule, String, String)) {
    let schema = tool.get("outputSchema").filter(|schema| !schema.is_null());
    let content = result.get("structuredContent");
    match (schema, content) {
        (Some(_), None) => report(
            &rules::STRUCTURED_MISSING,
            "/structuredContent".into(),
            "the tool has an outputSchema, and the result has no structuredContent".into(),
        ),
        (Some(schema), Some(content)) => {
            let validator = jsonschema::options().offline().build(schema);
            if let Ok(validator) = validator
                && let Err(error) = validator.validate(content)
            {
                let place = format!("/structuredContent{}", error.instance_path().as_str());
                report(
                    &rules::RESULT_SCHEMA_MISMATCH,
                    place,
                    format!("the structured content violates the outputSchema: {}", error.masked_with("the value")),
                );
            }
        }
        (None, _) => {}
    }
    let has_text = texts(result).any(|text| !text.trim().is_empty());
    if content.is_some() && !has_text && blocks(result).next().is_none() {
        report(
            &rules::TEXT_MIRROR_MISSING,
            "/content".into(),
            "the result has structured content, and its content is empty".into(),
        );
    } else if content.is_some() && !has_text {
        report(&rules::TEXT_MIRROR_MISSING, "/content".into(), "the result has structured content and no text".into());
    }
}
