//! Access to servers that want it to be granted: OAuth 2.1 as MCP has it, by the official SDK.
//!
//! The SDK finds the authorization server, registers, asks with PKCE and exchanges. This room keeps what was granted, sends
//! it, renews it once for everybody, asks for more when a server wants more, and says what to do when a person is needed.
//! It never asks a person during a run, never shows what one authorization server granted to another, and never lets a
//! secret, nor what the SDK logs about one, out of its redacting types.

mod access;
mod authorized;
mod browser;
mod callback;
mod consent;
mod credentials;
mod discovery;
mod fault;
mod guarded;
mod headless;
mod login;
mod loopback;
mod renewal;
mod settings;
mod suite;
mod tokens;

pub(super) use access::Access;
pub(super) use authorized::Authorized;
pub use browser::Browser;
pub use credentials::CredentialFile;
pub use headless::Headless;
pub use login::{Login, LoginError, login, logout};
pub use loopback::Loopback;
pub use settings::{ClientIdentity, ClientProof, Grant, OAuthSettings, SigningAlgorithm};
