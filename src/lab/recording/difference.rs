//! Difference between an expected and an actual JSON value.

use serde_json::Value;

use super::json_path::JsonPath;

/// One place where two values differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The place, from the root of the compared value.
    pub path: JsonPath,
    /// The expected value or matcher; `None` if nothing was expected there.
    pub expected: Option<Value>,
    /// The actual value; `None` if there is none.
    pub actual: Option<Value>,
}
