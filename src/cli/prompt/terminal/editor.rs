//! The user's own editor, for arguments of several lines.

use std::io::{self, Write};
use std::process::Command;

use crate::core::tool::escape_untrusted;

/// The command of the editor, as `git` and other programs read it.
pub(super) fn command() -> Option<String> {
    let named = ["VISUAL", "EDITOR"].iter().filter_map(|name| std::env::var(name).ok());
    named.into_iter().find(|command| !command.trim().is_empty())
}

/// The beginning of a line that says what was wrong with the text below it.
const REMARK: &str = "# ";

/// Runs the editor on a file with this text, and returns the text that it saved. The file is readable by this user only.
/// An error in the text precedes it.
pub(super) fn edit(command: &str, text: &str, error: Option<&str>) -> io::Result<String> {
    let mut file = tempfile::Builder::new().prefix("toolgate-").suffix(".yaml").tempfile()?;
    for line in error.into_iter().flat_map(str::lines) {
        writeln!(file, "{REMARK}{}", escape_untrusted(line))?;
    }
    file.write_all(text.as_bytes())?;
    file.flush()?;
    // The variable may hold options, so a shell splits it.
    let mut editor = Command::new("sh");
    editor.arg("-c").arg(format!("{command} \"$1\"")).arg("sh").arg(file.path());
    let status = editor.status()?;
    if !status.success() {
        return Err(io::Error::other(format!("the editor `{command}` ended with {status}")));
    }
    let saved = std::fs::read_to_string(file.path())?;
    Ok(saved.lines().skip_while(|line| line.starts_with(REMARK.trim_end())).map(|line| format!("{line}\n")).collect())
}
