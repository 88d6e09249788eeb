//! Credential store: granted tokens, and the file that keeps them.
//!
//! A credential belongs to a server *and* to the authorization server that issued it: another server never receives
//! its tokens or its client registration. The file must be private to its owner; otherwise it is not read. It is
//! replaced as a whole, so a reader gets the old or the new content. A writer reads it again under a lock first, so
//! two processes never undo each other's changes.

mod file;
mod lock;

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize, Serializer};

pub(super) use lock::Lock;

/// How long before its expiry a token is renewed, in seconds.
const MARGIN: i64 = 30;
/// How long a refresh token is not sent again after an answer that could not be read, in seconds.
const RENEWAL_PAUSE: i64 = 60;

/// The credential that one authorization server granted for one server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Credential {
    /// The URL of the server.
    pub(super) server: String,
    /// The authorization server.
    pub(super) issuer: String,
    /// The client that received it.
    pub(super) client: Client,
    #[serde(serialize_with = "exposed")]
    pub(super) access_token: SecretString,
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "exposed_if_any")]
    pub(super) refresh_token: Option<SecretString>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) expires_at: Option<Timestamp>,
    #[serde(default)]
    pub(super) scopes: Vec<String>,
    pub(super) obtained_at: Timestamp,
    /// When the answer to a renewal could not be read. The refresh token may have been used up, and a server that rotates
    /// them revokes the access if it gets one twice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) unread_renewal_at: Option<Timestamp>,
}

/// A client as the authorization server knows it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Client {
    pub(super) id: String,
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "exposed_if_any")]
    pub(super) secret: Option<SecretString>,
    pub(super) redirect_uri: String,
}

/// The credential file.
#[derive(Clone, Debug)]
pub struct CredentialFile {
    path: PathBuf,
}

/// Why credentials cannot be read or stored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CredentialError {
    #[error("the credentials in `{}` can be read by others (mode {mode:04o}); run `chmod 600 {}`", .path.display(), .path.display())]
    Exposed { path: PathBuf, mode: u32 },
    #[error("the credentials in `{}` cannot be {what}: {error}", .path.display())]
    Io { path: PathBuf, what: &'static str, error: std::io::Error },
    /// Only the line number is shown: the content may be a secret.
    #[error("`{}` is no file of credentials (line {line}); move it away and log in again", .path.display())]
    Malformed { path: PathBuf, line: usize },
    #[error("another toolgate has been renewing the credentials in `{}` for too long; try again", .0.display())]
    Busy(PathBuf),
}

impl CredentialFile {
    /// The file at that path. It need not exist; the first write creates it, with its folder.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The most recent credential for that server.
    pub(super) fn newest(&self, server: &str) -> Result<Option<Credential>, CredentialError> {
        let mine = file::read(&self.path)?.into_iter().filter(|credential| credential.server == server);
        Ok(mine.max_by_key(|credential| credential.obtained_at))
    }

    /// The most recent credential that this authorization server granted for that server.
    pub(super) fn of_issuer(&self, server: &str, issuer: &str) -> Result<Option<Credential>, CredentialError> {
        let all = file::read(&self.path)?;
        Ok(all.into_iter().find(|credential| credential.server == server && credential.issuer == issuer))
    }

    /// Stores a credential, and replaces an earlier one of the same authorization server.
    pub(super) async fn keep(&self, credential: Credential) -> Result<(), CredentialError> {
        let _lock = Lock::of_file(&self.path).await?;
        let mut all = file::read(&self.path)?;
        all.retain(|old| (&old.server, &old.issuer) != (&credential.server, &credential.issuer));
        all.push(credential);
        file::write(&self.path, &all)
    }

    /// Deletes all credentials for that server; returns their number.
    pub(super) async fn forget(&self, server: &str) -> Result<usize, CredentialError> {
        if !self.path.exists() {
            return Ok(0);
        }
        let _lock = Lock::of_file(&self.path).await?;
        let all = file::read(&self.path)?;
        let rest: Vec<_> = all.iter().filter(|credential| credential.server != server).cloned().collect();
        let forgotten = all.len() - rest.len();
        if forgotten > 0 {
            file::write(&self.path, &rest)?;
        }
        Ok(forgotten)
    }

    /// Locks the credential of that server for a renewal, across processes.
    pub(super) async fn renewing(&self, server: &str) -> Result<Lock, CredentialError> {
        Lock::of_server(&self.path, server).await
    }
}

impl Credential {
    /// Whether the answer to its renewal could not be read a short time ago.
    pub(super) fn was_just_renewed_unread(&self) -> bool {
        let since = |at: Timestamp| Timestamp::now().as_second() - at.as_second();
        self.unread_renewal_at.is_some_and(|at| since(at) < RENEWAL_PAUSE)
    }

    /// Whether its token has expired, or expires soon.
    pub(super) fn is_stale(&self) -> bool {
        is_stale(self.expires_at)
    }
}

/// Whether a token with this expiry has to be renewed now.
pub(super) fn is_stale(expires_at: Option<Timestamp>) -> bool {
    expires_at.is_some_and(|end| end.as_second() - Timestamp::now().as_second() < MARGIN)
}

fn exposed<S: Serializer>(secret: &SecretString, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(secret.expose_secret())
}

fn exposed_if_any<S: Serializer>(secret: &Option<SecretString>, serializer: S) -> Result<S::Ok, S::Error> {
    secret.as_ref().map(ExposeSecret::expose_secret).serialize(serializer)
}

#[cfg(test)]
mod tests;
