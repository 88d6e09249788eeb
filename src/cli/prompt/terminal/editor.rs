//! The user's own editor, for arguments of several lines.

use std::io::{self, Write};
use std::process::Command;

/// The command of the editor, as `git` and other programs read it.
pub(super) fn command() -> Option<String> {
    let named = ["VISUAL", "EDITOR"].iter().filter_map(|name| std::env::var(name).ok());
    named.into_iter().find(|command| !command.trim().is_empty())
}

/// Runs the editor on a file with this text, and returns the text that it saved. The file is readable by this user only.
pub(super) fn edit(command: &str, text: &str) -> io::Result<String> {
    let mut file = tempfile::Builder::new().prefix("toolgate-").suffix(".json").tempfile()?;
    file.write_all(text.as_bytes())?;
    file.flush()?;
    // The variable may hold options, so a shell splits it.
    let mut editor = Command::new("sh");
    editor.arg("-c").arg(format!("{command} \"$1\"")).arg("sh").arg(file.path());
    let status = editor.status()?;
    if !status.success() {
        return Err(io::Error::other(format!("the editor `{command}` ended with {status}")));
    }
    std::fs::read_to_string(file.path())
}
