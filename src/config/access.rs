//! Resolved authentication settings for MCP servers.

use secrecy::SecretString;
use toolgate_settings::mcp::ClientProof;

/// How toolgate authenticates to an MCP server.
#[derive(Clone, Debug)]
pub enum AuthSettings {
    Headers,
    /// As a user who logs in, if the server requires authorization.
    Person {
        /// toolgate's identity at the authorization server; `None`: toolgate registers itself.
        client: Option<ClientSettings>,
        /// The scopes to request; empty: those that the server requires.
        scopes: Vec<String>,
        /// The port of the redirect URI.
        redirect_port: Option<u16>,
        /// Whether the authorization server may be in a private network although the MCP server is not.
        allow_private: bool,
    },
    /// As toolgate itself, with client credentials.
    Client {
        /// The client id at the authorization server.
        id: String,
        /// The client's credential.
        proof: ClientProof,
        /// The scopes to request; empty: those that the server requires.
        scopes: Vec<String>,
        /// Whether the authorization server may be in a private network although the MCP server is not.
        allow_private: bool,
    },
}

/// A pre-registered OAuth client.
#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// The client id, which may be the URL of a client ID metadata document.
    pub id: String,
    pub secret: Option<SecretString>,
}

/// A user login with every default.
impl Default for AuthSettings {
    fn default() -> Self {
        Self::Person { client: None, scopes: Vec::new(), redirect_port: None, allow_private: false }
    }
}
