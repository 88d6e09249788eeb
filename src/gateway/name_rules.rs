//! Name rules for sessions and principals, which callers choose. The names appear in indexes, lists and logs: they are
//! short, and contain no control characters for a terminal to obey.

use super::problem::Problem;

/// The longest name, in bytes.
const LONGEST: usize = 256;

/// Refuses an invalid name.
pub(super) fn fit(pointer: &str, name: Option<&str>) -> Result<(), Problem> {
    name.map_or(Ok(()), check).map_err(|wrong| Problem::invalid(pointer, wrong))
}

/// Validates the name of a session, a principal or a tenant; the error says why it is invalid.
pub fn check(name: &str) -> Result<(), String> {
    match (1..=LONGEST).contains(&name.len()) && !name.chars().any(char::is_control) {
        true => Ok(()),
        false => Err(format!("a name has 1 to {LONGEST} bytes and no control characters")),
    }
}
