//! Text from standard input, for `-`: all of it, from a file, a pipe or the terminal.
//!
//! A terminal by itself hands over lines of 4,096 bytes at most and drops the rest, so its lines are read by the line editor.

use std::io::{self, IsTerminal as _, Read as _};

use super::prompt;

/// Everything up to the end of the input.
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
