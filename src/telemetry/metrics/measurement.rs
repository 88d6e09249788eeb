//! A measurement: metric, value and attributes.

use std::fmt;
use std::sync::Arc;

use super::names::Metric;

/// A value for a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    pub metric: Metric,
    /// The value, in the unit of the metric.
    pub value: f64,
    /// The attributes by key.
    pub attributes: Vec<(&'static str, AttributeValue)>,
}

/// The value of an attribute. The source decides the variant: our own words are few, names from others are unbounded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeValue {
    /// A word of a fixed list.
    Fixed(&'static str),
    /// A name chosen by a user, a client, a server or a provider.
    Name(Arc<str>),
}

/// The attribute value for names that are not recorded: names that a model made up, and names beyond the limit.
pub(super) const OTHER: AttributeValue = AttributeValue::Fixed("_other");

impl Measurement {
    /// A measurement of 1.
    pub(super) fn one(metric: Metric) -> Self {
        Self::new(metric, 1.0)
    }

    /// A measurement of that value.
    pub(super) fn new(metric: Metric, value: f64) -> Self {
        Self { metric, value, attributes: Vec::with_capacity(5) }
    }

    /// Adds a fixed word.
    pub(super) fn fixed(mut self, key: &'static str, word: &'static str) -> Self {
        self.attributes.push((key, AttributeValue::Fixed(word)));
        self
    }

    /// Adds a fixed word, if there is one.
    pub(super) fn fixed_if(self, key: &'static str, word: Option<&'static str>) -> Self {
        match word {
            Some(word) => self.fixed(key, word),
            None => self,
        }
    }

    /// Adds a name.
    pub(super) fn name(self, key: &'static str, name: &str) -> Self {
        self.word(key, AttributeValue::Name(name.into()))
    }

    /// Adds a word.
    pub(super) fn word(mut self, key: &'static str, word: AttributeValue) -> Self {
        self.attributes.push((key, word));
        self
    }
}

impl AttributeValue {
    /// The word as text.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Fixed(word) => word,
            Self::Name(name) => name,
        }
    }
}

/// The form `name{key=value, …} 1`.
impl fmt::Display for Measurement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.metric.definition().name)?;
        for (index, (key, word)) in self.attributes.iter().enumerate() {
            let before = if index == 0 { "{" } else { ", " };
            write!(f, "{before}{key}={}", word.as_str())?;
        }
        let after = if self.attributes.is_empty() { "" } else { "}" };
        write!(f, "{after} {}", self.value)
    }
}
