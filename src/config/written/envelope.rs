//! Signed envelopes, as they are written.

use schemars::JsonSchema;
use serde::Deserialize;

use super::seconds;
use crate::config::placed::{Placed, Text};

/// Signed envelopes, for callers who keep the state of their runs themselves.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct Envelope {
    /// The keys that are accepted. To rotate: add the new one everywhere, sign with it, take the old one away when its last
    /// envelope has expired.
    pub(in crate::config) keys: Vec<Placed<EnvelopeKey>>,
    /// The id of the key to sign with. Default: the only one.
    pub(in crate::config) sign_with: Option<Text>,
    /// How long an envelope can be given back, in seconds. Default: 86400, a day.
    #[schemars(schema_with = "seconds")]
    pub(in crate::config) ttl_s: Option<Text>,
}

/// A key: `hmac`, or `ed25519` (or `ed25519_file`) with `seal`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct EnvelopeKey {
    /// Its name; it stands in every envelope it signs.
    pub(in crate::config) id: Text,
    /// A secret of at least 32 bytes that all nodes share, usually `${SECRET}` or the like.
    pub(in crate::config) hmac: Option<Text>,
    /// A private Ed25519 key, or the public half of one, which accepts envelopes and makes none: PEM or base64, usually
    /// `${KEY}` or the like.
    pub(in crate::config) ed25519: Option<Text>,
    /// The same, as a file in PEM.
    pub(in crate::config) ed25519_file: Option<Text>,
    /// With an Ed25519 key: a secret of at least 32 bytes that hides what is not for the caller.
    pub(in crate::config) seal: Option<Text>,
}
