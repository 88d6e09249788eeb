//! Envelope keys. The key determines the algorithm, never the token.
//!
//! The runner does not keep configured secrets. It derives keys from them by HKDF-SHA256 with different labels, so that
//! signing and sealing use different keys.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use aws_lc_rs::{hkdf, hmac};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::error::EnvelopeError;

/// The minimum length of a secret; shorter ones can be guessed.
pub const LEAST_SECRET_BYTES: usize = 32;

/// The default lifetime of an envelope.
pub const DEFAULT_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// The maximum length of a key id.
const LONGEST_ID: usize = 64;

/// The length of a raw private or public key.
const RAW_KEY_BYTES: usize = 32;

/// The DER prefix of the 32 bytes of a public Ed25519 key (RFC 8410).
const PUBLIC_KEY_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// The accepted keys, and the one that signs. To rotate: add the new key on all nodes, sign with it on all nodes, and
/// remove the old key when its last envelope has expired.
#[derive(Debug)]
pub struct EnvelopeKeys {
    sign_with: String,
    keys: BTreeMap<String, EnvelopeKey>,
    lifetime: Duration,
}

/// One key. It verifies and opens; all keys except public ones also sign.
pub struct EnvelopeKey {
    signing: Signing,
    seal: hkdf::Prk,
}

enum Signing {
    Hmac(Box<hmac::Key>),
    Ed25519(Ed25519KeyPair),
    Ed25519Public([u8; 32]),
}

/// Errors of keys. No message contains any part of a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The id cannot be part of a token.
    #[error("invalid key id `{0}`: use 1 to {LONGEST_ID} letters, digits, `-` or `_`")]
    Id(String),
    /// Two keys have one id.
    #[error("duplicate key id `{0}`")]
    Twice(String),
    /// The signing key is not among the keys.
    #[error("unknown signing key `{0}`")]
    Missing(String),
    /// The signing key is a public key.
    #[error("signing key `{0}` is a public key, which can only verify")]
    Public(String),
    /// The secret is too short.
    #[error("a secret needs at least {LEAST_SECRET_BYTES} bytes, as `openssl rand -base64 48` prints them")]
    Short,
    /// Not an Ed25519 key.
    #[error(
        "not an Ed25519 key; write it as `openssl genpkey -algorithm ed25519` prints it, or its public half as \
         `openssl pkey -pubout` does"
    )]
    NotEd25519,
    /// Raw bytes may be a private or a public key: a public key that is used as a private one signs with a value that
    /// is public.
    #[error(
        "32 bytes do not say whether they are a private or a public key; give PEM or DER, which do: as `openssl genpkey \
         -algorithm ed25519` prints a private key, and `openssl pkey -pubout` its public half"
    )]
    Ambiguous,
}

impl EnvelopeKeys {
    /// Creates the keys by their ids, with the id of the signing key.
    pub fn new(
        sign_with: impl Into<String>,
        keys: impl IntoIterator<Item = (String, EnvelopeKey)>,
    ) -> Result<Self, KeyError> {
        let sign_with = sign_with.into();
        let mut known = BTreeMap::new();
        for (id, key) in keys {
            if !is_id(&id) {
                return Err(KeyError::Id(id));
            }
            if known.insert(id.clone(), key).is_some() {
                return Err(KeyError::Twice(id));
            }
        }
        match known.get(&sign_with) {
            None => Err(KeyError::Missing(sign_with)),
            Some(EnvelopeKey { signing: Signing::Ed25519Public(_), .. }) => Err(KeyError::Public(sign_with)),
            Some(EnvelopeKey { signing: Signing::Hmac(_) | Signing::Ed25519(_), .. }) => {
                Ok(Self { sign_with, keys: known, lifetime: DEFAULT_LIFETIME })
            }
        }
    }

    /// Sets the lifetime of envelopes.
    #[must_use]
    pub fn lasting(mut self, lifetime: Duration) -> Self {
        self.lifetime = lifetime;
        self
    }

    /// The lifetime of envelopes.
    pub fn lifetime(&self) -> Duration {
        self.lifetime
    }

    /// The signing key and its id.
    pub(super) fn signer(&self) -> Option<(&str, &EnvelopeKey)> {
        self.keys.get(&self.sign_with).map(|key| (self.sign_with.as_str(), key))
    }

    pub(super) fn get(&self, id: &str) -> Option<&EnvelopeKey> {
        self.keys.get(id)
    }
}

impl EnvelopeKey {
    /// A secret that all nodes share: every node that resumes envelopes can also make them.
    pub fn hmac(secret: &[u8]) -> Result<Self, KeyError> {
        let root = root(secret)?;
        let label = [b"sign".as_slice()];
        let signing = root.expand(&label, hmac::HMAC_SHA256).map_err(|_| KeyError::Short)?;
        Ok(Self { signing: Signing::Hmac(Box::new(signing.into())), seal: root })
    }

    /// An Ed25519 key, private (PKCS #8) or public (SPKI), in PEM or in DER as base64, and the secret that encrypts the
    /// sealed content.
    pub fn ed25519(key: &str, seal: &[u8]) -> Result<Self, KeyError> {
        let lines = key.lines().map(str::trim).filter(|line| !line.starts_with("-----"));
        let bytes = STANDARD.decode(lines.collect::<String>()).map_err(|_| KeyError::NotEd25519)?;
        let public = bytes.strip_prefix(&PUBLIC_KEY_PREFIX).map(<[u8; 32]>::try_from);
        let signing = match (public, bytes.len()) {
            (Some(public), _) => Signing::Ed25519Public(public.map_err(|_| KeyError::NotEd25519)?),
            (None, RAW_KEY_BYTES) => return Err(KeyError::Ambiguous),
            (None, _) => {
                let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&bytes).map_err(|_| KeyError::NotEd25519)?;
                Signing::Ed25519(pair)
            }
        };
        Ok(Self { signing, seal: root(seal)? })
    }

    pub(super) fn sign(&self, text: &[u8]) -> Result<Vec<u8>, EnvelopeError> {
        match &self.signing {
            Signing::Hmac(key) => Ok(hmac::sign(key, text).as_ref().to_vec()),
            Signing::Ed25519(pair) => match pair.try_sign(text) {
                Ok(signature) => Ok(signature.as_ref().to_vec()),
                Err(_) => Err(EnvelopeError::Sealing),
            },
            Signing::Ed25519Public(_) => Err(EnvelopeError::Sealing),
        }
    }

    /// Verifies a signature; compares in constant time.
    pub(super) fn verify(&self, text: &[u8], signature: &[u8]) -> Result<(), EnvelopeError> {
        if signature.len() != self.signature_length() {
            return Err(EnvelopeError::WrongAlgorithm);
        }
        let ed25519 = |public: &[u8]| UnparsedPublicKey::new(&ED25519, public).verify(text, signature);
        let verified = match &self.signing {
            Signing::Hmac(key) => hmac::verify(key, text, signature),
            Signing::Ed25519(pair) => ed25519(pair.public_key().as_ref()),
            Signing::Ed25519Public(public) => ed25519(public),
        };
        verified.map_err(|_| EnvelopeError::Forged)
    }

    fn signature_length(&self) -> usize {
        match &self.signing {
            Signing::Hmac(_) => 32,
            Signing::Ed25519(_) | Signing::Ed25519Public(_) => 64,
        }
    }

    /// Encrypts in place, and authenticates the text before it, `signed`. A `salt` must never be used twice.
    pub(super) fn seal(&self, salt: &[u8], signed: &[u8], content: &mut Vec<u8>) -> Result<(), EnvelopeError> {
        let key = self.one_time_key(salt)?;
        key.seal_in_place_append_tag(only_nonce(), Aad::from(signed), content).map_err(|_| EnvelopeError::Sealing)
    }

    /// Decrypts in place.
    pub(super) fn open<'a>(&self, salt: &[u8], signed: &[u8], sealed: &'a mut [u8]) -> Result<&'a [u8], EnvelopeError> {
        let key = self.one_time_key(salt)?;
        let opened = key.open_in_place(only_nonce(), Aad::from(signed), sealed);
        opened.map(|opened| &*opened).map_err(|_| EnvelopeError::Unreadable)
    }

    fn one_time_key(&self, salt: &[u8]) -> Result<LessSafeKey, EnvelopeError> {
        let info = [b"seal".as_slice(), salt];
        let key = self.seal.expand(&info, &AES_256_GCM).map_err(|_| EnvelopeError::Sealing)?;
        Ok(LessSafeKey::new(UnboundKey::from(key)))
    }
}

/// The nonce of a key that seals only once.
fn only_nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; 12])
}

fn root(secret: &[u8]) -> Result<hkdf::Prk, KeyError> {
    if secret.len() < LEAST_SECRET_BYTES {
        return Err(KeyError::Short);
    }
    Ok(hkdf::Salt::new(hkdf::HKDF_SHA256, b"toolgate envelope 1").extract(secret))
}

/// Whether text is a valid key id.
pub(super) fn is_id(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=LONGEST_ID).contains(&text.len()) && text.bytes().all(fits)
}

impl fmt::Debug for EnvelopeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.signing {
            Signing::Hmac(_) => "Hmac(…)",
            Signing::Ed25519(_) => "Ed25519(…)",
            Signing::Ed25519Public(_) => "Ed25519Public(…)",
        })
    }
}
