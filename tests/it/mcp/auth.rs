//! OAuth of HTTP servers, against a strict authorization server.

mod authority;
mod browser_user;
mod client_credentials;
mod login;
mod program;
mod renewal;
mod run_events;
mod secrecy;
mod step_up;
mod vault;

use tempfile::TempDir;
use toolgate::mcp::Servers;
use toolgate::mcp::auth::{CredentialFile, Headless, Login, LoginError};

use super::support::servers;
use authority::Manner;
use browser_user::{access, http};
use vault::Vault;

/// A server, and a credential file for it.
struct World {
    vault: Vault,
    credentials: CredentialFile,
    _folder: TempDir,
}

impl World {
    async fn new(manner: Manner) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let credentials = CredentialFile::new(folder.path().join("credentials/tokens.json"));
        Self { vault: Vault::serve(manner).await, credentials, _folder: folder }
    }

    /// Logs a user in, with these additional scopes.
    async fn login(&self, further: &[&str]) -> Result<Login, LoginError> {
        let further: Vec<_> = further.iter().map(|scope| (*scope).to_owned()).collect();
        let settings = self.vault.settings(access(&self.credentials));
        toolgate::mcp::auth::login(&http(&settings), &further, &Headless).await
    }

    /// Why the login failed.
    async fn refused(&self) -> String {
        self.login(&[]).await.expect_err("no login").to_string()
    }

    /// A process that is connected to the server as `crm`.
    fn process(&self) -> Servers {
        servers([("crm", self.vault.settings(access(&self.credentials)))])
    }

    /// The current content of the file.
    fn kept(&self) -> String {
        std::fs::read_to_string(self.credentials.path()).unwrap_or_default()
    }
}
