//! One thing to record: which metric, how much, of what.

use std::fmt;
use std::sync::Arc;

use super::names::Metric;

/// A value for a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// The metric.
    pub metric: Metric,
    /// How much.
    pub value: f64,
    /// Of what.
    pub attributes: Vec<(&'static str, Word)>,
}

/// The value of an attribute. What decides is who chose it: words of ours are few, names of others may be any number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// One of a fixed list.
    Fixed(&'static str),
    /// A name that somebody else gave.
    Name(Arc<str>),
}

/// What stands for names that are not told apart: those a model made up, and those beyond what is kept.
pub(super) const OTHER: Word = Word::Fixed("_other");

impl Measurement {
    /// One more.
    pub(super) fn one(metric: Metric) -> Self {
        Self::of(metric, 1.0)
    }

    /// So much.
    pub(super) fn of(metric: Metric, value: f64) -> Self {
        Self { metric, value, attributes: Vec::with_capacity(5) }
    }

    /// With a word of ours.
    pub(super) fn fixed(mut self, key: &'static str, word: &'static str) -> Self {
        self.attributes.push((key, Word::Fixed(word)));
        self
    }

    /// With a word of ours, if there is one.
    pub(super) fn fixed_if(self, key: &'static str, word: Option<&'static str>) -> Self {
        match word {
            Some(word) => self.fixed(key, word),
            None => self,
        }
    }

    /// With a name of somebody's.
    pub(super) fn name(self, key: &'static str, name: &str) -> Self {
        self.word(key, Word::Name(name.into()))
    }

    /// With a word.
    pub(super) fn word(mut self, key: &'static str, word: Word) -> Self {
        self.attributes.push((key, word));
        self
    }
}

impl Word {
    /// The text of it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Fixed(word) => word,
            Self::Name(name) => name,
        }
    }
}

/// As in `name{key=value, …} 1`.
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
