//! Name rules for sessions, principals and tenants, which callers choose. The names appear in indexes, lists and logs:
//! they are short, and contain no control characters for a terminal to obey.

use super::error::ServiceError;

/// The longest name, in bytes.
const MAX_NAME_BYTES: usize = 256;

/// Refuses an invalid name at a place of the request.
pub(crate) fn require_name(pointer: &str, name: Option<&str>) -> Result<(), ServiceError> {
    name.map_or(Ok(()), check_name).map_err(|wrong| ServiceError::invalid(pointer, wrong))
}

/// Validates the name of a session, a principal or a tenant; the error says why it is invalid.
pub fn check_name(name: &str) -> Result<(), String> {
    match (1..=MAX_NAME_BYTES).contains(&name.len()) && !name.chars().any(char::is_control) {
        true => Ok(()),
        false => Err(format!("a name has 1 to {MAX_NAME_BYTES} bytes and no control characters")),
    }
}
