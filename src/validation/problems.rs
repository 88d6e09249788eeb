//! Validation problems: turns the errors of the schema library into problems that a model can fix: location, rule,
//! message and received value.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, JsonTypeSet, ValidationError, Validator};
use serde_json::Value;
use toolgate_core::redact::SecretNames;
use toolgate_core::tool::{Problem, secret_names};

use super::weight::Weight;

const MAX_PROBLEMS: usize = 10;
/// The most work, as a schema's weight on a value, for which problems are collected.
const MAX_WORK: u64 = 2_000_000;
const MAX_RECEIVED_BYTES: usize = 200;
const MAX_MESSAGE_CHARS: usize = 400;
const MAX_BRANCHES: usize = 4;
const MAX_PER_BRANCH: usize = 2;

/// The first problems of the value; empty if it is valid. Values that the schema marks as secret, or whose name or form
/// is that of a secret, are not quoted.
pub(super) fn find(validator: &Validator, weight: Weight, schema: &Value, value: &Value) -> Vec<Problem> {
    if validator.is_valid(value) {
        return Vec::new();
    }
    // The schema library collects every problem before it returns the first one.
    if weight.on(value) > MAX_WORK {
        let message =
            "the value does not fit the schema, and both are too large to find out where; send a smaller value";
        return vec![Problem::whole("schema", message)];
    }
    let usual = SecretNames::usual();
    let secrets = usual.and(secret_names(schema)).unwrap_or(usual);
    validator.iter_errors(value).take(MAX_PROBLEMS).map(|error| problem(&error, &secrets)).collect()
}

/// The text, cut to a bounded length.
pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_MESSAGE_CHARS) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
    }
}

fn problem(error: &ValidationError<'_>, secrets: &SecretNames) -> Problem {
    let (path, received) = (error.instance_path().to_string(), error.instance().as_ref());
    let is_short = received.to_string().len() <= MAX_RECEIVED_BYTES;
    let is_secret = path.split('/').any(|name| secrets.contains(&name.replace("~1", "/").replace("~0", "~")));
    let quoted = (is_short && !is_secret).then(|| {
        let mut quoted = received.clone();
        secrets.redact(&mut quoted);
        quoted
    });
    Problem { path, rule: error.kind().keyword().to_owned(), message: shortened(&message(error)), received: quoted }
}

/// The message of a problem. It never quotes values, because they may be long; the model reads short ones in
/// `received`.
fn message(error: &ValidationError<'_>) -> String {
    let plain = || error.masked_with("the value").to_string();
    if let ValidationErrorKind::Type { kind } = error.kind() {
        return match sent_as_text(error.instance(), kind) {
            Some(what) => format!("{}: {what} was sent as a JSON string; send the {what} itself", plain()),
            None => plain(),
        };
    }
    if let ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } = error.kind() {
        return no_branch(context, error.instance_path().as_str());
    }
    if let ValidationErrorKind::OneOfMultipleValid { .. } = error.kind() {
        return "the value fits more than one of the alternatives; it has to fit exactly one".into();
    }
    if let ValidationErrorKind::BacktrackLimitExceeded { .. } = error.kind() {
        return "the value is too intricate for the pattern; send a shorter or simpler one".into();
    }
    if let ValidationErrorKind::FalseSchema = error.kind() {
        return "nothing is allowed here; leave it out".into();
    }
    if let ValidationErrorKind::PropertyNames { error } = error.kind() {
        return format!("a property name does not fit: {}", error.masked_with("it"));
    }
    plain()
}

/// The problems of each alternative, up to a limit.
fn no_branch(branches: &[Vec<ValidationError<'_>>], place: &str) -> String {
    let mut reasons: Vec<String> = Vec::new();
    for (index, errors) in branches.iter().enumerate().take(MAX_BRANCHES) {
        let errors: Vec<String> = errors.iter().take(MAX_PER_BRANCH).map(|error| in_words(error, place)).collect();
        reasons.push(format!("({}) {}", index + 1, errors.join(", ")));
    }
    let rest = branches.len().saturating_sub(MAX_BRANCHES);
    let more = if rest > 0 { format!("; and {rest} more") } else { String::new() };
    format!("the value fits none of the {} alternatives: {}{more}", branches.len(), reasons.join("; "))
}

fn in_words(error: &ValidationError<'_>, place: &str) -> String {
    match error.instance_path().as_str() {
        path if path == place => message(error),
        path => format!("{path}: {}", message(error)),
    }
}

/// The type of JSON inside a string, if the schema expects that type: models often send an object or array as a string.
fn sent_as_text(received: &Value, expected: &TypeKind) -> Option<&'static str> {
    let text = received.as_str()?;
    let wanted = match expected {
        TypeKind::Single(one) => JsonTypeSet::empty().insert(*one),
        TypeKind::Multiple(several) => *several,
    };
    match serde_json::from_str(text).ok()? {
        Value::Object(_) if wanted.contains(JsonType::Object) => Some("object"),
        Value::Array(_) if wanted.contains(JsonType::Array) => Some("array"),
        Value::Number(_) if wanted.contains(JsonType::Number) || wanted.contains(JsonType::Integer) => Some("number"),
        Value::Bool(_) if wanted.contains(JsonType::Boolean) => Some("boolean"),
        Value::Null if wanted.contains(JsonType::Null) => Some("null"),
        Value::Object(_) | Value::Array(_) | Value::Number(_) | Value::Bool(_) | Value::Null | Value::String(_) => None,
    }
}
