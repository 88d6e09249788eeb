//! Expected JSON values: a value of a recording or a scenario, in which matchers may stand in the place of values.
//!
//! A matcher is an object whose keys all begin with `$`, such as `{ $pattern: "^A-[0-9]+$" }`. A literal object of that
//! form is written as `{ $equals: … }`, so that every JSON value can be recorded.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::{Map, Value};

use super::difference::Difference;
use super::json_path::JsonPath;
use super::matcher::{DifferenceCollector, Form, Members, looks_like_a_matcher};

/// A JSON value with matchers.
#[derive(Clone, Debug)]
pub struct Expected {
    written: Value,
    form: Form,
}

impl Expected {
    /// Exactly this value. Objects that look like matchers are taken literally.
    pub fn literal(value: Value) -> Self {
        let written = escaped(value);
        let form = Form::parse(&written).unwrap_or_else(|_| Form::literal(written.clone()));
        Self { written, form }
    }

    /// Reads a value with matchers; the error names the mistake and the remedy.
    pub fn parse(written: Value) -> Result<Self, String> {
        Ok(Self { form: Form::parse(&written)?, written })
    }

    /// The value as it is written in files.
    pub fn written(&self) -> &Value {
        &self.written
    }

    /// Whether it has a matcher, and not only literal values.
    pub fn has_matchers(&self) -> bool {
        self.form.has_matchers()
    }

    /// A value that fits: the literal values, and the `$example` of each matcher. The error is the matcher without one.
    pub fn example(&self) -> Result<Value, String> {
        self.form.example()
    }

    /// The differences, in the order of the expected value. Ignored paths are not compared.
    pub fn differences(
        &self,
        actual: &Value,
        members: Members,
        ignored: &dyn Fn(&JsonPath) -> bool,
    ) -> Vec<Difference> {
        let mut collector = DifferenceCollector::new(members, ignored);
        collector.compare(&self.form, Some(actual), &JsonPath::default());
        collector.into_differences()
    }
}

/// The value with `$equals` around each object that looks like a matcher.
fn escaped(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(escaped).collect(),
        Value::Object(members) if looks_like_a_matcher(&members) => {
            Value::Object(Map::from_iter([("$equals".to_owned(), Value::Object(members))]))
        }
        Value::Object(members) => members.into_iter().map(|(name, member)| (name, escaped(member))).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

impl PartialEq for Expected {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

impl Serialize for Expected {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.written.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Expected {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(Value::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}
