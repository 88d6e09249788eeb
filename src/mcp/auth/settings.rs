//! OAuth settings of a server. Plain data; secrets stay in redacting types.

use std::sync::Arc;

use secrecy::SecretString;
use toolgate_core::id::ServerId;
pub use toolgate_settings::mcp::{ClientProof, SigningAlgorithm};

use super::browser::Browser;
use super::credentials::CredentialFile;

/// The OAuth settings of one server.
#[derive(Clone, Debug)]
pub struct OAuthSettings {
    /// The configured id, for messages with a remedy.
    pub server: ServerId,
    /// The grant type.
    pub grant: Grant,
    /// The scopes to request; empty: those that the server names.
    pub scopes: Vec<String>,
    /// Whether its authorization server may be in a private network although the server is not.
    pub allow_private: bool,
}

/// The grant type.
#[derive(Clone, Debug)]
pub enum Grant {
    /// A person grants access once, in a browser (`authorization_code` with PKCE). The credential is stored and
    /// renewed.
    Person {
        /// The identity of toolgate at the authorization server.
        client: ClientIdentity,
        /// The port of the redirect address; `None` for any free port.
        redirect_port: Option<u16>,
        /// The store of the tokens.
        credentials: CredentialFile,
        /// Shows pages to a person while a request waits. A run has none: it fails, and reports how to log in.
        browser: Option<Arc<dyn Browser>>,
    },
    /// toolgate gets access in its own name (`client_credentials`). Tokens are kept in memory.
    Client {
        id: String,
        /// The proof of the client's identity.
        proof: ClientProof,
    },
}

/// The identity of toolgate at an authorization server, when it acts for a person.
#[derive(Clone, Debug, Default)]
pub enum ClientIdentity {
    /// An unknown client, which registers itself.
    #[default]
    Registering,
    /// A client that was registered beforehand.
    Registered {
        id: String,
        /// The client secret, if there is one.
        secret: Option<SecretString>,
    },
    /// The client that this HTTPS address describes (a client ID metadata document), where the authorization server
    /// reads such documents; otherwise an unknown client that registers itself.
    Document {
        /// The address, which is the client id.
        url: String,
    },
}

impl OAuthSettings {
    /// Settings for a person who grants access to an unknown client, the only grant without configuration.
    pub fn person(server: ServerId, credentials: CredentialFile) -> Self {
        let grant =
            Grant::Person { client: ClientIdentity::default(), redirect_port: None, credentials, browser: None };
        Self { server, grant, scopes: Vec::new(), allow_private: false }
    }
}
