//! Credential file on disk: its permissions and its replacement.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Credential, CredentialError};

/// Credentials are never this large; a larger file is something else.
const LARGEST: u64 = 16 * 1024 * 1024;

#[derive(Serialize, Deserialize)]
struct Content {
    credentials: Vec<Credential>,
}

/// All credentials in the file; empty if there is no file.
pub(super) fn read(path: &Path) -> Result<Vec<Credential>, CredentialError> {
    let fault = |error| CredentialError::Io { path: path.to_owned(), what: "read", error };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(fault(error)),
    };
    let mode = exposure(&file.metadata().map_err(fault)?);
    if let Some(mode) = mode {
        return Err(CredentialError::Exposed { path: path.to_owned(), mode });
    }
    let mut text = String::new();
    file.take(LARGEST).read_to_string(&mut text).map_err(fault)?;
    let content: Result<Content, _> = serde_json::from_str(&text);
    content
        .map(|content| content.credentials)
        .map_err(|error| CredentialError::Malformed { path: path.to_owned(), line: error.line() })
}

/// Replaces the file atomically: a concurrent reader gets the old content.
pub(super) fn write(path: &Path, credentials: &[Credential]) -> Result<(), CredentialError> {
    let fault = |error| CredentialError::Io { path: path.to_owned(), what: "kept", error };
    let content = Content { credentials: credentials.to_vec() };
    let text = serde_json::to_string_pretty(&content).map_err(|error| fault(error.into()))?;
    let new = path.with_extension(format!("{}.new", Uuid::now_v7().simple()));
    let written = create(&new)
        .and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.write_all(b"\n")?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written.map_err(fault)
}

/// Creates the folder of the file if necessary, private and ignored by version control.
pub(super) fn prepare(path: &Path) -> Result<(), CredentialError> {
    let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists()) else {
        return Ok(());
    };
    let made = make_private(folder).and_then(|()| fs::write(folder.join(".gitignore"), "*\n"));
    made.map_err(|error| CredentialError::Io { path: path.to_owned(), what: "kept", error })
}

/// Opens a file that only its owner may use, and creates it if necessary.
pub(super) fn open_private(path: &Path) -> io::Result<File> {
    private(OpenOptions::new().read(true).write(true).create(true).truncate(false)).open(path)
}

fn create(path: &Path) -> io::Result<File> {
    private(OpenOptions::new().write(true).create_new(true)).open(path)
}

#[cfg(unix)]
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600)
}

#[cfg(not(unix))]
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options
}

#[cfg(unix)]
fn make_private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(not(unix))]
fn make_private(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

/// The mode of a file that other users can access.
#[cfg(unix)]
fn exposure(metadata: &fs::Metadata) -> Option<u32> {
    let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o7777;
    (mode & 0o077 != 0).then_some(mode)
}

#[cfg(not(unix))]
fn exposure(_: &fs::Metadata) -> Option<u32> {
    None
}
