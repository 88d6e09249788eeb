//! OAuth 2.1 for MCP servers, by the official SDK.
//!
//! The SDK discovers the authorization server, registers the client, and runs the PKCE flow and the token exchange.
//! This module stores the credentials, renews the token once for all requests, requests more scopes when a
//! server requires them, and reports what to do when a person is needed. It never asks a person during a run, never
//! sends the credentials of one authorization server to another, and never lets a secret, or an SDK log line about
//! one, leave its redacting types.

mod access;
mod browser;
mod callback;
mod consent;
mod credentials;
mod discovery;
mod fault;
mod guarded;
mod login;
mod loopback;
mod settings;
mod status;
mod token_answer;
mod token_refresh;
mod tokens;

pub(super) use access::{Access, TokenRefusal};
pub use browser::{Browser, Headless};
pub use credentials::CredentialFile;
pub(super) use fault::AccessError;
pub use login::{Login, LoginError, login, logout};
pub use loopback::Loopback;
pub use settings::{ClientIdentity, ClientProof, Grant, OAuthSettings, SigningAlgorithm};
pub(super) use status::{AuthorizationRecord, RequestKind};
