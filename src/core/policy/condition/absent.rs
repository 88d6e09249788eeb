//! Conditions in a build without the expression language: each is refused when it is loaded, so none is ever ignored.

use serde_json::{Map, Value};

use super::{ConditionError, Outlook, TextTest};
use crate::core::policy::{Links, Subject};
use crate::core::tool::ToolName;

/// A condition that cannot exist.
pub(super) enum Compiled {}

/// The variables of a condition.
pub(super) struct Variables;

impl Compiled {
    pub(super) fn parse(_: &str) -> Result<Self, ConditionError> {
        let message = "this build of toolgate has no conditions; build it with the feature `policy-cel`";
        Err(ConditionError(message.to_owned()))
    }

    pub(super) fn outlook(&self) -> Outlook {
        match *self {}
    }

    pub(super) fn text_tests(&self) -> &[TextTest] {
        match *self {}
    }

    pub(super) fn folders(&self) -> impl Iterator<Item = &str> {
        std::iter::empty()
    }

    pub(super) fn why_never(&self) -> Option<String> {
        match *self {}
    }

    pub(super) fn holds(&self, _: &Variables) -> Result<bool, ConditionError> {
        match *self {}
    }
}

impl Variables {
    pub(super) fn new(
        _: &Subject<'_>,
        _: &ToolName,
        _: &Map<String, Value>,
        _: &Links,
    ) -> Result<Self, ConditionError> {
        Ok(Self)
    }
}
