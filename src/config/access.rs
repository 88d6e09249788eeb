//! How access to an MCP server is granted, as it is used.

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::Deserialize;

/// How access to an MCP server is granted.
#[derive(Clone, Debug)]
pub enum AuthSettings {
    /// By the headers that are sent.
    Headers,
    /// By a person who logs in, if the server wants that.
    Person {
        /// Who toolgate is to the authorization server; `None`: it registers itself.
        client: Option<ClientSettings>,
        /// What to ask for; empty: what the server says is needed.
        scopes: Vec<String>,
        /// The port that the browser is led back to.
        redirect_port: Option<u16>,
        /// Whether the authorization server may be in a private network although the server is not.
        allow_private: bool,
    },
    /// To toolgate itself.
    Client {
        /// Its name at the authorization server.
        id: String,
        /// What it proves itself with.
        proof: ClientProof,
        /// What to ask for; empty: what the server says is needed.
        scopes: Vec<String>,
        /// Whether the authorization server may be in a private network although the server is not.
        allow_private: bool,
    },
}

/// A client that was registered beforehand.
#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// Its id, which may be the address of a client ID metadata document.
    pub id: String,
    /// Its secret.
    pub secret: Option<SecretString>,
}

/// What a client proves itself with.
#[derive(Clone, Debug)]
pub enum ClientProof {
    /// A secret.
    Secret(SecretString),
    /// A signature.
    PrivateKey {
        /// The key, in PEM.
        pem: SecretString,
        /// What it signs with.
        algorithm: SigningAlgorithm,
    },
}

/// What a key signs with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
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

/// By a person, with nothing said about how.
impl Default for AuthSettings {
    fn default() -> Self {
        Self::Person { client: None, scopes: Vec::new(), redirect_port: None, allow_private: false }
    }
}
