//! Files that a command creates. A file that exists is replaced only with `--force`.

use std::io::{ErrorKind, Write as _};
use std::path::Path;

use super::error::CliError;

/// Writes a file; `force` replaces one that exists.
pub(super) fn write(path: &Path, bytes: &[u8], force: bool) -> Result<(), CliError> {
    let mut options = std::fs::OpenOptions::new();
    match force {
        true => options.write(true).create(true).truncate(true),
        false => options.write(true).create_new(true),
    };
    let written = options.open(path).and_then(|mut file| file.write_all(bytes));
    written.map_err(|error| {
        let refusal = CliError::file("cannot write", path, &error);
        let is_there = error.kind() == ErrorKind::AlreadyExists;
        if is_there { refusal.with_remedy("--force overwrites it") } else { refusal }
    })
}
