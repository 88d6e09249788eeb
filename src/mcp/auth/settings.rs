//! How access to a server is granted. Plain data; secrets stay in redacting types.

use std::sync::Arc;

use secrecy::SecretString;

use super::browser::Browser;
use super::credentials::CredentialFile;
use crate::core::id::ServerId;

/// How access to one server is granted, by OAuth.
#[derive(Clone, Debug)]
pub struct OAuthSettings {
    /// The configured id, for messages that say what to do.
    pub server: ServerId,
    /// Who grants access, and how.
    pub grant: Grant,
    /// What to ask for; empty: what the server says is needed.
    pub scopes: Vec<String>,
    /// Whether its authorization server may be in a private network although the server is not.
    pub allow_private: bool,
}

/// Who grants access.
#[derive(Clone, Debug)]
pub enum Grant {
    /// A person, once, in a browser (`authorization_code` with PKCE). What was granted is kept and renewed.
    Person {
        /// Who toolgate is at the authorization server.
        client: ClientIdentity,
        /// The port that the browser is led back to; `None` for any that is free.
        redirect_port: Option<u16>,
        /// Where the tokens are kept.
        credentials: CredentialFile,
        /// Shows pages to a person while a request waits. A run has none: it fails, and says how to log in.
        browser: Option<Arc<dyn Browser>>,
    },
    /// Nobody: toolgate has access in its own name (`client_credentials`). Tokens are kept in memory.
    Client {
        /// Its name at the authorization server.
        id: String,
        /// How it proves that it is that client.
        proof: ClientProof,
    },
}

/// Who toolgate is at an authorization server, when it asks in the name of a person.
#[derive(Clone, Debug, Default)]
pub enum ClientIdentity {
    /// A stranger, that registers itself.
    #[default]
    Registering,
    /// A client that was registered beforehand.
    Registered {
        /// Its id.
        id: String,
        /// Its secret, if it was given one.
        secret: Option<SecretString>,
    },
    /// The client that this HTTPS address describes (a client ID metadata document), where the authorization server reads
    /// such documents; else a stranger that registers itself.
    Document {
        /// The address, which is the id.
        url: String,
    },
}

/// How a client proves who it is.
#[derive(Clone, Debug)]
pub enum ClientProof {
    /// By a secret.
    Secret(SecretString),
    /// By a signature (`private_key_jwt`).
    PrivateKey {
        /// The key, in PEM.
        pem: SecretString,
        /// What it signs with.
        algorithm: SigningAlgorithm,
    },
}

/// What a key signs with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SigningAlgorithm {
    /// RSA with SHA-256.
    #[default]
    Rs256,
    /// RSA with SHA-384.
    Rs384,
    /// RSA with SHA-512.
    Rs512,
    /// ECDSA on P-256.
    Es256,
    /// ECDSA on P-384.
    Es384,
}

impl OAuthSettings {
    /// A person grants access to a stranger, the way that works without any configuration.
    pub fn person(server: ServerId, credentials: CredentialFile) -> Self {
        let grant =
            Grant::Person { client: ClientIdentity::default(), redirect_port: None, credentials, browser: None };
        Self { server, grant, scopes: Vec::new(), allow_private: false }
    }
}
