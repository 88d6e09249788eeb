//! Written form of signed envelopes.

use schemars::JsonSchema;
use serde::Deserialize;

use super::seconds;
use crate::spanned::{Located, Text};

/// Signed envelopes, for callers that keep the state of their runs themselves.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Envelope {
    /// The accepted keys. To rotate: add the new key everywhere, sign with it, and remove the old key when its last
    /// envelope has expired.
    pub(crate) keys: Vec<Located<EnvelopeKey>>,
    /// The id of the key to sign with. Default: the only one.
    pub(crate) sign_with: Option<Text>,
    /// How long an envelope is valid, in seconds. Default: 86400, a day.
    #[schemars(schema_with = "seconds")]
    pub(crate) ttl_s: Option<Text>,
}

/// A key: `hmac`, or `ed25519` (or `ed25519_file`) with `seal`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EnvelopeKey {
    /// The key id; every envelope that the key signs contains it.
    pub(crate) id: Text,
    /// A secret of at least 32 bytes that all nodes share, usually `${SECRET}` or the like.
    pub(crate) hmac: Option<Text>,
    /// A private Ed25519 key, or a public key, which only verifies envelopes: PEM or base64, usually `${KEY}` or the
    /// like.
    pub(crate) ed25519: Option<Text>,
    /// The same, as a PEM file.
    pub(crate) ed25519_file: Option<Text>,
    /// With an Ed25519 key: a secret of at least 32 bytes that encrypts the parts that the caller must not read.
    pub(crate) seal: Option<Text>,
}
