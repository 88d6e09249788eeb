//! Expectations of a scenario about its run.

use std::fmt;

use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::Value;

use super::tool_pattern::ToolPattern;
use crate::recording::{Expected, present};

/// The expectations about a run. Without any, the run has to complete.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Expect {
    /// How the run ends; `completed` by default.
    pub status: Option<ExpectedStatus>,
    /// The calls that the run makes, as `order` says.
    pub calls: Vec<ExpectedCall>,
    /// How the calls are compared with those of the run.
    pub order: Order,
    /// The tools that are not called.
    pub not_called: Vec<ToolPattern>,
    /// The number of calls.
    pub call_count: Option<Bounds>,
    /// The number of calls whose result is an error.
    pub errors: Option<Bounds>,
    /// The number of replies of the model.
    pub turns: Option<Bounds>,
    /// The tokens of all replies, input and output.
    pub tokens: Option<Bounds>,
    pub answer: Option<ExpectedAnswer>,
}

/// An expected call.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpectedCall {
    pub tool: ToolPattern,
    /// The arguments; others may be there as well.
    #[serde(default, deserialize_with = "present")]
    pub arguments: Option<Expected>,
    /// The result: members of `text`, `structured`, `content`, `error`, `failed`, `rejected`.
    #[serde(default, deserialize_with = "present")]
    pub result: Option<Expected>,
    /// The number of such calls in the whole run.
    pub times: Option<Bounds>,
}

/// How expected calls are compared with those of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// The calls come in this order, and other calls may come between them.
    #[default]
    InOrder,
    /// These calls in this order, and no others.
    Exact,
    /// The calls come in any order, among others.
    Any,
}

/// The expected final answer. Each key that is set has to hold.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExpectedAnswer {
    /// Texts that it contains; case counts.
    pub contains: Texts,
    /// Texts that it does not contain.
    pub excludes: Texts,
    /// The whole answer, with matchers.
    #[serde(deserialize_with = "present")]
    pub equals: Option<Expected>,
    /// A regular expression that it matches.
    pub pattern: Option<AnswerPattern>,
    /// The JSON Schema that it fits. An answer that is a JSON text is parsed first.
    pub schema: Option<Value>,
    /// Criteria in words, about which a model of the configuration decides.
    pub judge: Option<Judge>,
}

/// A model that judges the answer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Judge {
    /// The model of the configuration.
    pub model: String,
    /// The criteria in words.
    pub criteria: String,
}

/// One text, or several.
#[derive(Clone, Debug, Default)]
pub struct Texts(pub Vec<String>);

/// A regular expression about the answer.
#[derive(Clone, Debug)]
pub struct AnswerPattern(pub regex::Regex);

/// The status with which a run ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedStatus(pub String);

/// A number, or its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    pub min: u64,
    /// The greatest number; `None` without one.
    pub max: Option<u64>,
}

impl Bounds {
    /// Whether the number is within the bounds.
    pub fn admits(self, number: u64) -> bool {
        number >= self.min && self.max.is_none_or(|max| number <= max)
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.max {
            Some(max) if max == self.min => write!(f, "{max}"),
            Some(max) if self.min == 0 => write!(f, "at most {max}"),
            Some(max) => write!(f, "{} to {max}", self.min),
            None => write!(f, "at least {}", self.min),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenBounds {
    min: Option<u64>,
    max: Option<u64>,
}

impl<'de> Deserialize<'de> for Bounds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let usage = "expected a whole number, or bounds such as `{ min: 1, max: 3 }`";
        match Value::deserialize(deserializer)? {
            Value::Number(number) => {
                let exactly = number.as_u64().ok_or_else(|| D::Error::custom(usage))?;
                Ok(Self { min: exactly, max: Some(exactly) })
            }
            bounds @ Value::Object(_) => {
                let written: WrittenBounds =
                    serde_json::from_value(bounds).map_err(|error| D::Error::custom(format!("{error}; {usage}")))?;
                match (written.min, written.max) {
                    (None, None) => Err(D::Error::custom(usage)),
                    (Some(min), Some(max)) if min > max => Err(D::Error::custom("`min` is greater than `max`")),
                    (min, max) => Ok(Self { min: min.unwrap_or(0), max }),
                }
            }
            Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) => Err(D::Error::custom(usage)),
        }
    }
}

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let usage = || D::Error::custom("expected a text, or a list of texts");
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(Self(vec![text])),
            Value::Array(items) => {
                let text = |item: Value| item.as_str().map(str::to_owned).ok_or_else(usage);
                Ok(Self(items.into_iter().map(text).collect::<Result<_, _>>()?))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Err(usage()),
        }
    }
}

impl<'de> Deserialize<'de> for AnswerPattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = String::deserialize(deserializer)?;
        let wrong = |error: regex::Error| {
            let reason = error.to_string().lines().last().unwrap_or_default().trim().to_owned();
            D::Error::custom(format!("`{written}` is not a regular expression: {reason}; check its brackets"))
        };
        regex::Regex::new(&written).map(Self).map_err(wrong)
    }
}

impl<'de> Deserialize<'de> for ExpectedStatus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = String::deserialize(deserializer)?;
        match toolgate_core::run::Status::parse(&written) {
            Some(status) => Ok(Self(status.as_str().to_owned())),
            None => {
                let known = toolgate_core::run::Status::ALL.map(|status| format!("`{}`", status.as_str())).join(", ");
                Err(D::Error::custom(format!("`{written}` is not a status; expected one of {known}")))
            }
        }
    }
}
