//! Stop condition of an agent: an expression over the state of a run, with the bounds of every condition.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::error::ConditionError;
use super::kind::Dialect;
use super::language::{Compiled, Variables};
use super::within_limit;

/// A condition on `run`, after which the model answers without tools. Serialised as its text.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct StopCondition {
    text: Arc<str>,
    compiled: Arc<Compiled>,
}

impl StopCondition {
    /// Parses a condition.
    pub fn parse(text: &str) -> Result<Self, ConditionError> {
        let text = within_limit(text)?;
        Ok(Self { text: text.into(), compiled: Arc::new(Compiled::parse(text, Dialect::Stop)?) })
    }

    /// Whether it holds in this state, which is the value of `run`.
    pub fn holds(&self, state: &Map<String, Value>) -> Result<bool, ConditionError> {
        self.compiled.holds(&Variables::of_run(state)?)
    }
}

impl PartialEq for StopCondition {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl TryFrom<String> for StopCondition {
    type Error = ConditionError;

    fn try_from(text: String) -> Result<Self, ConditionError> {
        Self::parse(&text)
    }
}

impl From<StopCondition> for String {
    fn from(condition: StopCondition) -> Self {
        condition.text.as_ref().to_owned()
    }
}

impl fmt::Debug for StopCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}
