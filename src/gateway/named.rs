//! Names that callers choose for conversations and principals. They stand in indexes, lists and logs: they are short, and
//! nothing in them is for a terminal to obey.

use super::problem::Problem;

/// The longest name, in bytes.
const LONGEST: usize = 256;

/// Refuses a name that cannot stand there.
pub(super) fn fit(pointer: &str, name: Option<&str>) -> Result<(), Problem> {
    let is_fit = |name: &str| (1..=LONGEST).contains(&name.len()) && !name.chars().any(char::is_control);
    match name {
        Some(name) if !is_fit(name) => {
            Err(Problem::invalid(pointer, format!("a name has 1 to {LONGEST} bytes and no control characters")))
        }
        Some(_) | None => Ok(()),
    }
}
