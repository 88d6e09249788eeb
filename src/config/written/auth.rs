//! How access to an HTTP server is granted, as it is written.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::access::SigningAlgorithm;
use crate::config::placed::{Placed, Text};

/// How access to a server is granted.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(in crate::config) enum Auth {
    /// A token that is always the same, usually `${TOKEN}` or the like; sent as `Authorization: Bearer …`.
    Bearer(Text),
    /// A person logs in once, with `toolgate mcp login` (OAuth 2.1). A server that wants this needs no `auth` section; the
    /// section is for what it cannot find out by itself.
    #[serde(rename = "oauth")]
    OAuth(OAuth),
    /// toolgate has access in its own name (OAuth 2.1 client credentials).
    ClientCredentials(ClientCredentials),
}

/// What a login needs to know.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(in crate::config) struct OAuth {
    /// The client that was registered beforehand, or the HTTPS address of a client ID metadata document. Default: toolgate
    /// registers itself.
    pub(in crate::config) client_id: Option<Text>,
    /// Its secret, usually `${SECRET}` or the like, if it was given one.
    pub(in crate::config) client_secret: Option<Text>,
    /// What to ask for. Default: what the server says is needed.
    pub(in crate::config) scopes: Option<Vec<Text>>,
    /// The port that the browser is led back to, for a client that was registered with
    /// `http://127.0.0.1:<port>/callback`. Default: any that is free.
    #[schemars(range(min = 1))]
    pub(in crate::config) redirect_port: Option<Placed<u16>>,
    /// Whether the authorization server may be in a private network although the server is not. Default: false.
    pub(in crate::config) allow_private: Option<bool>,
}

/// What a client proves itself with: `client_secret` or `private_key_file`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct ClientCredentials {
    /// Its name at the authorization server.
    pub(in crate::config) client_id: Text,
    /// Its secret, usually `${SECRET}` or the like.
    pub(in crate::config) client_secret: Option<Text>,
    /// A file with its private key in PEM, for signing (`private_key_jwt`).
    pub(in crate::config) private_key_file: Option<Text>,
    /// What the key signs with. Default: RS256.
    pub(in crate::config) algorithm: Option<SigningAlgorithm>,
    /// What to ask for. Default: what the server says is needed.
    pub(in crate::config) scopes: Option<Vec<Text>>,
    /// Whether the authorization server may be in a private network although the server is not. Default: false.
    pub(in crate::config) allow_private: Option<bool>,
}
