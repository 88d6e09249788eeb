//! Written form of the authentication to HTTP servers.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::spanned::{Located, Text};
use toolgate_settings::mcp::SigningAlgorithm;

/// Authentication to a server.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Auth {
    /// A static token, usually `${TOKEN}` or the like; sent as `Authorization: Bearer …`.
    Bearer(Text),
    /// A user logs in once, with `toolgate mcp login` (OAuth 2.1). A server that requires this needs no `auth` section;
    /// the section is for values that toolgate cannot discover.
    #[serde(rename = "oauth")]
    OAuth(OAuth),
    /// toolgate authenticates as itself (OAuth 2.1 client credentials).
    ClientCredentials(ClientCredentials),
}

/// The settings of a login.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct OAuth {
    /// The pre-registered client, or the HTTPS URL of a client ID metadata document. Default: toolgate registers
    /// itself.
    pub(crate) client_id: Option<Text>,
    /// The client secret, usually `${SECRET}` or the like, if the client has one.
    pub(crate) client_secret: Option<Text>,
    /// The scopes to request. Default: those that the server requires.
    pub(crate) scopes: Option<Vec<Text>>,
    /// The port of the redirect URI, for a client that was registered with `http://127.0.0.1:<port>/callback`. Default:
    /// any free port.
    #[schemars(range(min = 1))]
    pub(crate) redirect_port: Option<Located<u16>>,
    /// Whether the authorization server may be in a private network although the MCP server is not. Default: false.
    pub(crate) allow_private: Option<bool>,
}

/// Client credentials: `client_secret` or `private_key_file`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClientCredentials {
    /// The client id at the authorization server.
    pub(crate) client_id: Text,
    /// The client secret, usually `${SECRET}` or the like.
    pub(crate) client_secret: Option<Text>,
    /// A file with the client's private key in PEM, for signed assertions (`private_key_jwt`).
    pub(crate) private_key_file: Option<Text>,
    /// The signature algorithm. Default: RS256.
    pub(crate) algorithm: Option<SigningAlgorithm>,
    /// The scopes to request. Default: those that the server requires.
    pub(crate) scopes: Option<Vec<Text>>,
    /// Whether the authorization server may be in a private network although the MCP server is not. Default: false.
    pub(crate) allow_private: Option<bool>,
}
