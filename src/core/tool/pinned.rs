//! Pinned arguments: arguments of a tool that its operator sets. Only the adapter that sends a call has their values: the
//! model neither sees nor sets them, and no journal contains them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Problem;

/// The pinned arguments of a tool, without their values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedArguments {
    /// The names of the arguments, sorted.
    pub names: Vec<String>,
    /// The hash of the names and of the values that are not secret: other values are another definition of the tool. A
    /// new secret is not.
    pub fingerprint: String,
}

impl PinnedArguments {
    /// A problem for each of them that is given.
    pub(super) fn problems(&self, arguments: &Map<String, Value>) -> Vec<Problem> {
        let given = self.names.iter().filter(|name| arguments.contains_key(*name));
        given.map(|name| Problem::whole("pinned", format!("`{name}` is set by the operator; leave it out"))).collect()
    }
}
