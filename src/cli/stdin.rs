//! Text from standard input, for `-`: all of it, from a file, a pipe or the terminal.
//!
//! A terminal delivers lines of at most 4,096 bytes and drops the rest, so the line editor reads lines from a terminal.

use std::io::{self, IsTerminal as _, Read as _};

use super::prompt;

/// Reads standard input to its end.
pub(super) fn read() -> io::Result<String> {
    if io::stdin().is_terminal()
        && let Some(mut prompt) = prompt::at_terminal()
    {
        return prompt.lines();
    }
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    Ok(text)
}
