//! Inter-process locks. The operating system releases the locks of a process that dies.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::time::{Instant, sleep};

use super::{CredentialError, file};

/// Longer than an exchange with an authorization server may take.
const LOCK_TIMEOUT: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(25);

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub(in crate::auth) struct Lock {
    _file: File,
}

impl Lock {
    /// Held while the file is read and replaced.
    pub(super) async fn of_file(path: &Path) -> Result<Self, CredentialError> {
        Self::take(path, "lock".into()).await
    }

    /// Held while the credential of one server is renewed.
    pub(super) async fn of_server(path: &Path, server: &str) -> Result<Self, CredentialError> {
        let digest = Sha256::digest(server.as_bytes());
        let short: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        Self::take(path, format!("{short}.lock")).await
    }

    async fn take(path: &Path, extension: String) -> Result<Self, CredentialError> {
        file::prepare(path)?;
        let lock = path.with_extension(extension);
        let fault = |error| CredentialError::Io { path: PathBuf::from(path), what: "locked", error };
        let file = file::open_private(&lock).map_err(fault)?;
        let deadline = Instant::now() + LOCK_TIMEOUT;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => sleep(PAUSE).await,
                Err(TryLockError::WouldBlock) => return Err(CredentialError::Busy(path.to_owned())),
                Err(TryLockError::Error(error)) => return Err(fault(error)),
            }
        }
    }
}
