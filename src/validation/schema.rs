//! Schema compiler: turns an untrusted schema into a validator, or into the reason why it is unusable.

use std::io;

use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;
use toolgate_core::json::{MAX_DEPTH, is_deeper_than};

use super::problems::shortened;
use super::weight::{self, Weight};

const MAX_BYTES: usize = 256 * 1024;
const MAX_WEIGHT: u64 = 200_000;
const BACKTRACK_LIMIT: usize = 50_000;
/// The memory limit of one compiled pattern, in bytes. A short pattern (`\pL{1000}`) uses as much as is allowed.
const PATTERN_SIZE_LIMIT: usize = 1 << 20;
/// The memory limit of all patterns of a schema: a schema has room for thousands of them.
const PATTERNS_SIZE_LIMIT: usize = 16 << 20;

/// Why a schema cannot be used. Worded to follow "its input schema".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The schema does not describe an object.
    #[error("{0}; it has to be a JSON Schema of type object")]
    NotAnObject(&'static str),
    /// The schema is too large.
    #[error("is larger than {} KiB; describe the arguments more briefly", limit / 1024)]
    TooLarge {
        /// The limit, in bytes of JSON.
        limit: usize,
    },
    /// The schema is nested too deeply.
    #[error("is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// The references of the schema multiply.
    #[error("refers to itself so often that one check would take more than {MAX_WEIGHT} steps")]
    TooHeavy,
    /// The schema is invalid in its dialect, or a reference has no target.
    #[error("is broken at `{at}`: {reason}")]
    Broken {
        /// JSON pointer into the schema; `#` is its root.
        at: String,
        /// The problem at that place.
        reason: String,
    },
}

#[derive(Debug)]
pub(super) struct CompiledSchema {
    pub(super) validator: Validator,
    pub(super) weight: Weight,
}

/// Compiles a schema in its own dialect: the one of `$schema`, or 2020-12 if that is missing or unknown. References are
/// resolved only inside the schema.
pub(super) fn compile(schema: &Value) -> Result<CompiledSchema, SchemaError> {
    if is_deeper_than(schema, MAX_DEPTH) {
        return Err(SchemaError::TooDeep);
    }
    if is_larger_than(schema, MAX_BYTES) {
        return Err(SchemaError::TooLarge { limit: MAX_BYTES });
    }
    let weight = weight::estimate(schema);
    if weight.nodes > MAX_WEIGHT {
        return Err(SchemaError::TooHeavy);
    }
    let validator = build(schema).or_else(|error| match without_dialect(schema) {
        Some(plain) => build(&plain).map_err(|_| broken(&error)),
        None => Err(broken(&error)),
    })?;
    Ok(CompiledSchema { validator, weight })
}

/// Checks that a schema can describe arguments, which always are an object.
pub(super) fn takes_an_object(schema: &Value) -> Result<(), SchemaError> {
    let is_object = |word: &Value| word == "object";
    match schema {
        Value::Object(members) => match members.get("type") {
            None => Ok(()),
            Some(Value::Array(words)) if words.iter().any(is_object) => Ok(()),
            Some(word) if is_object(word) => Ok(()),
            Some(_) => Err(SchemaError::NotAnObject("does not admit an object")),
        },
        Value::Null => Err(SchemaError::NotAnObject("is missing")),
        Value::Bool(_) => Err(SchemaError::NotAnObject("is a bare true or false")),
        Value::Number(_) | Value::String(_) | Value::Array(_) => Err(SchemaError::NotAnObject("is not a JSON object")),
    }
}

fn build(schema: &Value) -> Result<Validator, ValidationError<'static>> {
    let each = (PATTERNS_SIZE_LIMIT / patterns_in(schema).max(1)).min(PATTERN_SIZE_LIMIT);
    let patterns = PatternOptions::fancy_regex().backtrack_limit(BACKTRACK_LIMIT).size_limit(each);
    jsonschema::options().offline().should_validate_formats(true).with_pattern_options(patterns).build(schema)
}

/// The memory that the patterns of a schema may take when compiled.
pub(super) fn allowance(schema: &Value) -> usize {
    patterns_in(schema).saturating_mul(PATTERN_SIZE_LIMIT).min(PATTERNS_SIZE_LIMIT)
}

/// An upper bound on the patterns of a schema: patterns inside examples count as well.
fn patterns_in(schema: &Value) -> usize {
    match schema {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
        Value::Array(items) => items.iter().map(patterns_in).sum(),
        Value::Object(members) => members.iter().fold(0, |sum, (key, member)| {
            let own = match (key.as_str(), member) {
                ("pattern", Value::String(_)) => 1,
                ("patternProperties", Value::Object(patterns)) => patterns.len(),
                _ => 0,
            };
            sum + own + patterns_in(member)
        }),
    }
}

/// The schema without a `$schema` of an unknown dialect.
fn without_dialect(schema: &Value) -> Option<Value> {
    let dialect = schema.get("$schema")?.as_str()?;
    let known = ["json-schema.org/draft-04", "json-schema.org/draft-06", "json-schema.org/draft-07"];
    let newer = ["json-schema.org/draft/2019-09/schema", "json-schema.org/draft/2020-12/schema"];
    if known.iter().chain(&newer).any(|known| dialect.contains(known)) {
        return None;
    }
    let mut plain = schema.as_object()?.clone();
    plain.shift_remove("$schema");
    Some(Value::Object(plain))
}

fn broken(error: &ValidationError<'_>) -> SchemaError {
    let pointer = error.instance_path().as_str();
    let at = if pointer.is_empty() { "#".to_owned() } else { pointer.to_owned() };
    SchemaError::Broken { at, reason: shortened(&error.to_string()) }
}

fn is_larger_than(value: &Value, bytes: usize) -> bool {
    serde_json::to_writer(Allowance(bytes), value).is_err()
}

/// A writer that fails beyond that many bytes.
struct Allowance(usize);

impl io::Write for Allowance {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
