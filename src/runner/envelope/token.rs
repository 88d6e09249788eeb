//! Token of an envelope: `tge1.KEY.CLAIMS.SEALED.SIGNATURE`. Everyone can read the claims, and any change invalidates
//! the signature. Only nodes can read the sealed part. Decision 0011 has the reasons.
//!
//! Input may come from an attacker. Verification checks sizes first, then the format, the key and the signature.
//! Nothing is parsed before it is verified.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use toolgate_core::id::{CallId, RunId};

use super::error::EnvelopeError;
use super::keys::{EnvelopeKey, EnvelopeKeys, is_id};

/// The maximum size of a token, in bytes.
pub const MOST_TOKEN_BYTES: usize = 16 * 1024 * 1024;

/// The format version. It names every algorithm except the signature's, which belongs to the key.
const FORM: &str = "tge1";

/// The length of the random bytes that derive the one-time key; they precede the sealed content.
const SALT_BYTES: usize = 32;

/// The claims of a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claims {
    pub run: RunId,
    /// The length of its journal.
    pub length: u64,
    /// The hash of its journal.
    pub head: String,
    /// The hash of everything outside the token.
    pub shown: String,
    /// For each pending decision, the digest of the binding it would apply to.
    pub bindings: BTreeMap<CallId, String>,
    /// The time of the export.
    pub issued_at: Timestamp,
    /// The expiry time.
    pub expires_at: Timestamp,
}

/// A token with a valid signature.
pub(super) struct VerifiedToken<'a> {
    pub(super) claims: Claims,
    key: &'a EnvelopeKey,
    signed: &'a str,
    sealed: &'a str,
}

/// Creates a token. `None` if it would be too large.
pub(super) fn mint(
    keys: &EnvelopeKeys,
    claims: &Claims,
    mut content: Vec<u8>,
) -> Result<Option<String>, EnvelopeError> {
    let (id, key) = keys.signer().ok_or(EnvelopeError::NotConfigured)?;
    let claims = serde_json::to_vec(claims).map_err(|_| EnvelopeError::Sealing)?;
    let mut token = format!("{FORM}.{id}.{}", URL_SAFE_NO_PAD.encode(claims));
    let mut sealed = vec![0; SALT_BYTES];
    aws_lc_rs::rand::fill(&mut sealed).map_err(|_| EnvelopeError::Sealing)?;
    key.seal(&sealed, token.as_bytes(), &mut content)?;
    sealed.append(&mut content);
    token.push('.');
    URL_SAFE_NO_PAD.encode_string(sealed, &mut token);
    let signature = key.sign(token.as_bytes())?;
    token.push('.');
    URL_SAFE_NO_PAD.encode_string(signature, &mut token);
    Ok((token.len() <= MOST_TOKEN_BYTES).then_some(token))
}

/// Verifies a token without opening it.
pub(super) fn verify<'a>(keys: &'a EnvelopeKeys, token: &'a str) -> Result<VerifiedToken<'a>, EnvelopeError> {
    if token.len() > MOST_TOKEN_BYTES {
        return Err(EnvelopeError::Oversized { most: MOST_TOKEN_BYTES });
    }
    let (text, signature) = token.rsplit_once('.').ok_or(EnvelopeError::Malformed)?;
    let (signed, sealed) = text.rsplit_once('.').ok_or(EnvelopeError::Malformed)?;
    let mut parts = signed.split('.');
    let (Some(FORM), Some(id), Some(claims), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
        return Err(EnvelopeError::Malformed);
    };
    if !is_id(id) {
        return Err(EnvelopeError::Malformed);
    }
    let key = keys.get(id).ok_or(EnvelopeError::UnknownKey)?;
    key.verify(text.as_bytes(), &decode(signature)?)?;
    let claims = serde_json::from_slice(&decode(claims)?).map_err(|_| EnvelopeError::Unreadable)?;
    Ok(VerifiedToken { claims, key, signed, sealed })
}

impl VerifiedToken<'_> {
    /// Decrypts the sealed content.
    pub(super) fn open(&self) -> Result<Vec<u8>, EnvelopeError> {
        let mut bytes = decode(self.sealed)?;
        let (salt, sealed) = bytes.split_at_mut_checked(SALT_BYTES).ok_or(EnvelopeError::Unreadable)?;
        self.key.open(salt, self.signed.as_bytes(), sealed).map(<[u8]>::to_vec)
    }
}

fn decode(text: &str) -> Result<Vec<u8>, EnvelopeError> {
    URL_SAFE_NO_PAD.decode(text).map_err(|_| EnvelopeError::Malformed)
}
