//! Names that callers choose for conversations and principals. They stand in indexes, lists and logs: they are short, and
//! nothing in them is for a terminal to obey.

use super::problem::Problem;

/// The longest name, in bytes.
const LONGEST: usize = 256;

/// Refuses a name that cannot stand there.
pub(super) fn fit(pointer: &str, name: Option<&str>) -> Result<(), Problem> {
    name.map_or(Ok(()), check).map_err(|wrong| Problem::invalid(pointer, wrong))
}

/// What is wrong with the name of a conversation, a principal or a tenant, in words.
pub fn check(name: &str) -> Result<(), String> {
    match (1..=LONGEST).contains(&name.len()) && !name.chars().any(char::is_control) {
        true => Ok(()),
        false => Err(format!("a name has 1 to {LONGEST} bytes and no control characters")),
    }
}
