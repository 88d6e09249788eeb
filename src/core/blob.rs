//! Blobs and their handles: content that is stored outside the journal, and its name, derived from its hash. The journal
//! stays small and readable, however large the media are.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

use crate::json::hex;

const SCHEME: &str = "media://";
const ALGORITHM: &str = "sha256-";

/// A blob's name, made of the SHA-256 of its bytes: `media://sha256-` and 64 lower-case hex digits. Equal bytes have
/// equal handles, wherever they came from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobHandle([u8; 32]);

/// Content with its media type. A clone shares the bytes, and their hash is computed once.
#[derive(Clone, PartialEq, Eq)]
pub struct Blob {
    handle: BlobHandle,
    /// For example `image/png`.
    pub media_type: String,
    bytes: Arc<Vec<u8>>,
}

/// A text that is not a blob handle.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no handle; one looks like media://sha256- and 64 hex digits")]
pub struct NoHandle(String);

impl BlobHandle {
    /// The prefix of every handle.
    pub(crate) const START: &str = "media://sha256-";
    /// The length of a handle in bytes.
    pub(crate) const LENGTH: usize = Self::START.len() + 64;

    /// The handle of these bytes.
    pub fn for_bytes(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The handle with this digest.
    pub fn from_digest(digest: [u8; 32]) -> Self {
        Self(digest)
    }

    /// Parses a handle; the prefix `media://` is optional.
    pub fn parse(text: &str) -> Result<Self, NoHandle> {
        let digits = text.strip_prefix(SCHEME).unwrap_or(text).strip_prefix(ALGORITHM);
        digits.and_then(digest).map(Self).ok_or_else(|| NoHandle(text.chars().take(100).collect()))
    }

    /// The SHA-256 of the bytes.
    pub fn digest(&self) -> &[u8; 32] {
        &self.0
    }
}

impl Blob {
    /// Hashes the bytes.
    pub fn new(media_type: impl Into<String>, bytes: Vec<u8>) -> Self {
        Self::stored(BlobHandle::for_bytes(&bytes), media_type.into(), bytes)
    }

    /// A blob from a store, which keeps it under this handle.
    pub fn stored(handle: BlobHandle, media_type: String, bytes: Vec<u8>) -> Self {
        Self { handle, media_type, bytes: Arc::new(bytes) }
    }

    /// The handle of its bytes, computed when the blob was made.
    pub fn handle(&self) -> BlobHandle {
        self.handle
    }

    /// The content; at most 64 MiB in a store.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes, copied only if another clone of the blob exists.
    pub fn into_bytes(self) -> Vec<u8> {
        Arc::unwrap_or_clone(self.bytes)
    }
}

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Blob({}, {}, {} bytes)", self.handle, self.media_type, self.bytes.len())
    }
}

/// Decodes 64 lower-case hex digits.
fn digest(digits: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if digits.len() != 2 * bytes.len() {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
        let &[high, low] = pair else { return None };
        *byte = nibble(high)? << 4 | nibble(low)?;
    }
    Some(bytes)
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for BlobHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{ALGORITHM}{}", hex(&self.0))
    }
}

impl fmt::Debug for BlobHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for BlobHandle {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for BlobHandle {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABC: &str = "media://sha256-ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn a_handle_is_the_hash_of_the_bytes_and_round_trips() {
        let handle = BlobHandle::for_bytes(b"abc");
        assert_eq!(handle.to_string(), ABC);
        assert_eq!(BlobHandle::parse(ABC), Ok(handle));
        assert_eq!(BlobHandle::parse(ABC.strip_prefix("media://").unwrap()), Ok(handle));
        let json = serde_json::to_string(&handle).unwrap();
        assert_eq!(serde_json::from_str::<BlobHandle>(&json).unwrap(), handle);
    }

    #[test]
    fn malformed_handles_are_rejected() {
        let longer = format!("{ABC}0");
        let shouted = ABC.to_uppercase().replace("MEDIA://SHA256-", "media://sha256-");
        let other_scheme = ABC.replace("media://", "https://");
        let not_ascii = format!("media://sha256-{}", "é".repeat(32));
        for text in
            ["", "media://", "media://sha256-", &ABC[..ABC.len() - 1], &longer, &shouted, &other_scheme, &not_ascii]
        {
            assert!(BlobHandle::parse(text).is_err(), "{text}");
        }
    }
}
