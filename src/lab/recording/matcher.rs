//! Matchers: parsed forms of expected values, and their comparison with actual values.

use regex::Regex;
use serde_json::{Map, Value};

use super::difference::Difference;
use super::json_path::JsonPath;
use super::normalise::REDACTED;

/// The most differences of one comparison. A report shows the first ones.
const MOST_DIFFERENCES: usize = 20;

/// The keys of matchers, for error messages.
const KEYS: &str =
    "`$any`, `$pattern`, `$range`, `$one_of`, `$contains`, `$has`, `$type`, `$json`, `$absent`, `$equals`";

/// Whether the objects of an expected value may have further members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Members {
    /// An object has exactly the expected members.
    Exact,
    /// An object has the expected members, and may have others.
    Open,
}

/// A parsed expected value.
#[derive(Clone, Debug)]
pub(super) enum Form {
    Scalar(Value),
    List(Vec<Form>),
    Object(Vec<(String, Form)>),
    Matcher { written: Value, test: Box<Test>, example: Option<Value> },
}

/// The condition of a matcher.
#[derive(Clone, Debug)]
pub(super) enum Test {
    Any,
    Absent,
    Pattern(Regex),
    Range { least: Option<f64>, most: Option<f64> },
    OneOf(Vec<Form>),
    Contains(Form),
    Has(Form),
    Type(String),
    Json(Form),
    Equals(Value),
}

/// Whether an object is read as a matcher: all its keys begin with `$`.
pub(super) fn looks_like_a_matcher(members: &Map<String, Value>) -> bool {
    !members.is_empty() && members.keys().all(|name| name.starts_with('$'))
}

impl Form {
    /// Parses a value with matchers; the error names the mistake and the remedy.
    pub(super) fn parse(value: &Value) -> Result<Self, String> {
        Ok(match value {
            Value::Array(items) => Self::List(items.iter().map(Self::parse).collect::<Result<_, _>>()?),
            Value::Object(members) if looks_like_a_matcher(members) => Self::matcher(value, members)?,
            Value::Object(members) => {
                let parsed = |(name, member): (&String, &Value)| Ok((name.clone(), Self::parse(member)?));
                Self::Object(members.iter().map(parsed).collect::<Result<_, String>>()?)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Self::Scalar(value.clone()),
        })
    }

    fn matcher(value: &Value, members: &Map<String, Value>) -> Result<Self, String> {
        let conditions: Vec<(&String, &Value)> = members.iter().filter(|(name, _)| *name != "$example").collect();
        let [(name, argument)] = conditions.as_slice() else {
            return Err(format!("a matcher has one condition, and may have an `$example`; conditions are {KEYS}"));
        };
        let test = Box::new(Test::parse(name, argument)?);
        Ok(Self::Matcher { written: value.clone(), test, example: members.get("$example").cloned() })
    }

    /// Exactly this value.
    pub(super) fn literal(value: Value) -> Self {
        Self::Matcher { written: value.clone(), test: Box::new(Test::Equals(value)), example: None }
    }

    pub(super) fn has_matchers(&self) -> bool {
        match self {
            Self::Scalar(_) => false,
            Self::List(items) => items.iter().any(Self::has_matchers),
            Self::Object(members) => members.iter().any(|(_, member)| member.has_matchers()),
            Self::Matcher { test, .. } => !matches!(**test, Test::Equals(_)),
        }
    }

    /// A value that fits; the error names the matcher that has no `$example`.
    pub(super) fn example(&self) -> Result<Value, String> {
        Ok(match self {
            Self::Scalar(value) => value.clone(),
            Self::List(items) => items.iter().map(Self::example).collect::<Result<_, _>>()?,
            Self::Object(members) => {
                let present = members.iter().filter(|(_, member)| !member.is_absent());
                let examples = present.map(|(name, member)| Ok((name.clone(), member.example()?)));
                Value::Object(examples.collect::<Result<_, String>>()?)
            }
            Self::Matcher { example: Some(example), .. } => example.clone(),
            Self::Matcher { test, written, example: None } => match &**test {
                Test::Equals(value) => value.clone(),
                Test::OneOf(forms) => forms.first().ok_or("`$one_of` is empty")?.example()?,
                Test::Has(form) => form.example()?,
                Test::Json(form) => Value::String(form.example()?.to_string()),
                Test::Any
                | Test::Absent
                | Test::Pattern(_)
                | Test::Range { .. }
                | Test::Contains(_)
                | Test::Type(_) => {
                    return Err(format!("the matcher `{written}` has no `$example`; add the value that is played"));
                }
            },
        })
    }

    fn is_absent(&self) -> bool {
        matches!(self, Self::Matcher { test, .. } if matches!(**test, Test::Absent))
    }

    /// The value as it is written in a file.
    fn written(&self) -> Value {
        match self {
            Self::Scalar(value) | Self::Matcher { written: value, .. } => value.clone(),
            Self::List(items) => items.iter().map(Self::written).collect(),
            Self::Object(members) => members.iter().map(|(name, member)| (name.clone(), member.written())).collect(),
        }
    }
}

impl Test {
    fn parse(name: &str, argument: &Value) -> Result<Self, String> {
        let text = || argument.as_str().ok_or_else(|| format!("`{name}` takes a text"));
        Ok(match name {
            "$any" | "$absent" if *argument != Value::Bool(true) => {
                return Err(format!("`{name}` takes `true`"));
            }
            "$any" => Self::Any,
            "$absent" => Self::Absent,
            "$equals" => Self::Equals(argument.clone()),
            "$pattern" => {
                let pattern = text()?;
                let failed = |error: regex::Error| {
                    let reason = error.to_string().lines().last().unwrap_or_default().trim().to_owned();
                    format!("`{pattern}` is not a regular expression: {reason}; check its brackets and backslashes")
                };
                Self::Pattern(Regex::new(pattern).map_err(failed)?)
            }
            "$range" => Self::range(argument)?,
            "$one_of" => match argument.as_array().filter(|items| !items.is_empty()) {
                Some(items) => Self::OneOf(items.iter().map(Form::parse).collect::<Result<_, _>>()?),
                None => return Err("`$one_of` takes a list of values, such as `{ $one_of: [paid, late] }`".into()),
            },
            "$contains" => Self::Contains(Form::parse(argument)?),
            "$has" => match argument {
                Value::Object(_) => Self::Has(Form::parse(argument)?),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                    return Err("`$has` takes an object, such as `{ $has: { status: paid } }`".into());
                }
            },
            "$type" => Self::Type(known_type(text()?)?),
            "$json" => Self::Json(Form::parse(argument)?),
            unknown => {
                return Err(format!(
                    "unknown matcher `{unknown}`; expected one of {KEYS}; for an object with this key write \
                     `{{ $equals: {{ {unknown}: … }} }}`"
                ));
            }
        })
    }

    fn range(argument: &Value) -> Result<Self, String> {
        let usage = || {
            "`$range` takes the least and the greatest number, such as `{ $range: [1, 10] }`; `null` is open".to_owned()
        };
        let Some([least, most]) = argument.as_array().map(Vec::as_slice) else { return Err(usage()) };
        let bound = |value: &Value| if value.is_null() { Ok(None) } else { value.as_f64().map(Some).ok_or_else(usage) };
        let (least, most) = (bound(least)?, bound(most)?);
        match (least, most) {
            (Some(least), Some(most)) if least > most => Err(usage()),
            _ => Ok(Self::Range { least, most }),
        }
    }
}

fn known_type(name: &str) -> Result<String, String> {
    match name {
        "text" | "string" => Ok("string".into()),
        "number" | "integer" | "boolean" | "object" | "array" | "null" => Ok(name.to_owned()),
        "list" => Ok("array".into()),
        _ => Err(format!(
            "`{name}` is not a type; expected one of `string`, `number`, `integer`, `boolean`, `object`, `array`, `null`"
        )),
    }
}

/// A comparison in progress.
pub(super) struct DifferenceCollector<'a> {
    members: Members,
    ignored: &'a dyn Fn(&JsonPath) -> bool,
    found: Vec<Difference>,
}

impl<'a> DifferenceCollector<'a> {
    pub(super) fn new(members: Members, ignored: &'a dyn Fn(&JsonPath) -> bool) -> Self {
        Self { members, ignored, found: Vec::new() }
    }

    pub(super) fn into_differences(self) -> Vec<Difference> {
        self.found
    }

    /// Compares a value, and notes each difference. `actual` is `None` where there is no value.
    pub(super) fn compare(&mut self, expected: &Form, actual: Option<&Value>, path: &JsonPath) {
        if self.found.len() >= MOST_DIFFERENCES || (self.ignored)(path) {
            return;
        }
        match (expected, actual) {
            (Form::Matcher { test, .. }, actual) => self.test(expected, test, actual, path),
            (Form::Scalar(value), Some(actual)) if are_equal(value, actual) || value == REDACTED => {}
            (Form::Scalar(Value::String(text)), Some(Value::String(other))) => self.texts(text, other, path),
            (Form::List(items), Some(Value::Array(actual))) => self.lists(items, actual, path),
            (Form::Object(members), Some(Value::Object(actual))) => self.objects(members, actual, path),
            (Form::Scalar(_) | Form::List(_) | Form::Object(_), _) => self.differs(expected, actual, path),
        }
    }

    fn test(&mut self, expected: &Form, test: &Test, actual: Option<&Value>, path: &JsonPath) {
        let holds = match (test, actual) {
            (Test::Absent, actual) => actual.is_none(),
            (_, None) => false,
            (Test::Any, Some(_)) => true,
            (Test::Pattern(pattern), Some(actual)) => actual.as_str().is_some_and(|text| pattern.is_match(text)),
            (Test::Range { least, most }, Some(actual)) => actual.as_f64().is_some_and(|number| {
                least.is_none_or(|least| number >= least) && most.is_none_or(|most| number <= most)
            }),
            (Test::OneOf(forms), Some(actual)) => forms.iter().any(|form| self.fits(form, actual, path)),
            (Test::Contains(form), Some(actual)) => self.contains(form, actual, path),
            (Test::Type(name), Some(actual)) => has_type(actual, name),
            (Test::Equals(value), Some(actual)) => {
                let members = std::mem::replace(&mut self.members, Members::Exact);
                self.compare(&Form::plain(value), Some(actual), path);
                self.members = members;
                return;
            }
            (Test::Has(form), Some(actual)) => {
                let members = std::mem::replace(&mut self.members, Members::Open);
                self.compare(form, Some(actual), path);
                self.members = members;
                return;
            }
            (Test::Json(form), Some(actual)) => {
                match actual.as_str().and_then(|text| serde_json::from_str(text).ok()) {
                    Some(parsed) => return self.compare(form, Some(&parsed), path),
                    None => false,
                }
            }
        };
        if !holds {
            self.differs(expected, actual, path);
        }
    }

    fn fits(&self, form: &Form, actual: &Value, path: &JsonPath) -> bool {
        let mut inner = DifferenceCollector::new(self.members, self.ignored);
        inner.compare(form, Some(actual), path);
        inner.found.is_empty()
    }

    fn contains(&self, form: &Form, actual: &Value, path: &JsonPath) -> bool {
        match (form, actual) {
            (Form::Scalar(Value::String(part)), Value::String(text)) => text.contains(part.as_str()),
            (form, Value::Array(items)) => items.iter().any(|item| self.fits(form, item, path)),
            (_, Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_)) => false,
        }
    }

    /// Texts that are JSON are compared as JSON, so that a difference has its path, and layout does not count.
    fn texts(&mut self, expected: &str, actual: &str, path: &JsonPath) {
        match (structured(expected), structured(actual)) {
            (Some(expected), Some(actual)) => {
                let form = Form::plain(&expected);
                self.compare(&form, Some(&actual), path);
            }
            _ if is_redacted_form(expected, actual) => {}
            _ => self.differs(&Form::Scalar(expected.into()), Some(&actual.into()), path),
        }
    }

    fn lists(&mut self, expected: &[Form], actual: &[Value], path: &JsonPath) {
        for (index, form) in expected.iter().enumerate() {
            self.compare(form, actual.get(index), &path.item(index));
        }
        for (index, value) in actual.iter().enumerate().skip(expected.len()) {
            self.unexpected(value, &path.item(index));
        }
    }

    fn objects(&mut self, expected: &[(String, Form)], actual: &Map<String, Value>, path: &JsonPath) {
        for (name, form) in expected {
            self.compare(form, actual.get(name), &path.member(name));
        }
        let is_known = |name: &String| expected.iter().any(|(known, _)| known == name);
        let further = actual.iter().filter(|(name, _)| !is_known(name));
        if self.members == Members::Exact {
            further.for_each(|(name, value)| self.unexpected(value, &path.member(name)));
        }
    }

    fn unexpected(&mut self, actual: &Value, path: &JsonPath) {
        if self.found.len() < MOST_DIFFERENCES && !(self.ignored)(path) {
            self.found.push(Difference { path: path.clone(), expected: None, actual: Some(actual.clone()) });
        }
    }

    fn differs(&mut self, expected: &Form, actual: Option<&Value>, path: &JsonPath) {
        let (expected, actual) = (Some(expected.written()), actual.cloned());
        self.found.push(Difference { path: path.clone(), expected, actual });
    }
}

impl Form {
    /// The form of a value in which `$` has no special meaning.
    fn plain(value: &Value) -> Self {
        match value {
            Value::Array(items) => Self::List(items.iter().map(Self::plain).collect()),
            Value::Object(members) => {
                Self::Object(members.iter().map(|(name, member)| (name.clone(), Self::plain(member))).collect())
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Self::Scalar(value.clone()),
        }
    }
}

/// The value of a text that is a JSON object or list.
fn structured(text: &str) -> Option<Value> {
    let text = text.trim();
    let value: Value = text.starts_with(['{', '[']).then(|| serde_json::from_str(text).ok())??;
    Some(value)
}

/// Whether a text is one from which a recording took secrets: equal, except where the recorded text is redacted.
fn is_redacted_form(recorded: &str, actual: &str) -> bool {
    let Some((beginning, last)) = recorded.rsplit_once(REDACTED) else { return false };
    let mut parts = beginning.split(REDACTED);
    let rest = parts.next().and_then(|first| actual.strip_prefix(first));
    let rest = parts.fold(rest, |rest, part| rest?.split_once(part).map(|(_, behind)| behind));
    rest.is_some_and(|rest| rest.ends_with(last))
}

/// Whether two values are equal; numbers are equal by value, so that `1` equals `1.0`.
fn are_equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || ((one.is_f64() || other.is_f64()) && one.as_f64() == other.as_f64())
        }
        _ => one == other,
    }
}

fn has_type(value: &Value, name: &str) -> bool {
    match value {
        Value::Null => name == "null",
        Value::Bool(_) => name == "boolean",
        Value::String(_) => name == "string",
        Value::Array(_) => name == "array",
        Value::Object(_) => name == "object",
        Value::Number(number) => {
            let is_whole =
                number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|float| float.fract() == 0.0);
            name == "number" || (name == "integer" && is_whole)
        }
    }
}
