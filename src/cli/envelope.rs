//! Signed envelope files.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::Path;

use super::error::CliError;
use super::output::Output;
use super::view::clock;
use crate::runner::RunnerError;
use crate::runner::envelope::{Envelope, MOST_ENVELOPE_BYTES};

/// Reads an envelope; `-` is standard input. Stops reading an oversized one as soon as its size is evident.
pub(super) fn read(path: &Path) -> Result<Envelope, CliError> {
    let mut text = Vec::new();
    let most = MOST_ENVELOPE_BYTES as u64 + 1;
    let read = if path.as_os_str() == "-" {
        std::io::stdin().lock().take(most).read_to_end(&mut text)
    } else {
        File::open(path).and_then(|file| file.take(most).read_to_end(&mut text))
    };
    read.map_err(|error| CliError::file("the envelope", path, &error))?;
    Envelope::from_json(&text).map_err(|error| RunnerError::from(error).into())
}

/// Writes an envelope to a new file. An envelope is a bearer credential with a conversation in it, so only its owner
/// can read the file.
pub(super) fn write(path: &Path, envelope: &Envelope, out: &mut Output) -> Result<(), CliError> {
    let text = serde_json::to_vec(envelope).map_err(|error| CliError::usage(error.to_string()))?;
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(path).and_then(|mut file| file.write_all(&text));
    written.map_err(|error| match error.kind() == ErrorKind::AlreadyExists {
        true => CliError::usage(format!("`{}` already exists", path.display()))
            .with_remedy("an envelope never overwrites a file: give another name, or move that file away"),
        false => CliError::file("cannot write", path, &error),
    })?;
    let until = clock(envelope.expires_at);
    out.note(format!("run {}, good until {until}, as {}", envelope.run_id, path.display()));
    Ok(())
}
