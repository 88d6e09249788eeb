//! Sealed content of a token: the journal, and the blobs that it refers to.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use toolgate_core::blob::Blob;
use toolgate_core::json;
use toolgate_core::run::{Event, JournalEntry, Segment};

use super::error::EnvelopeError;
use super::token::Claims;

/// Everything that a node needs to resume a run it has never stored.
#[derive(Serialize, Deserialize)]
pub(super) struct Content {
    pub(super) journal: Vec<JournalEntry>,
    /// The conversation before the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) conversation: Option<Segment>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    blobs: Vec<BlobJson>,
}

#[derive(Serialize, Deserialize)]
struct BlobJson {
    media_type: String,
    data: String,
}

impl Content {
    pub(super) fn new(journal: Vec<JournalEntry>, conversation: Option<Segment>, blobs: Vec<Blob>) -> Self {
        let carried = |blob: Blob| BlobJson { data: STANDARD_NO_PAD.encode(blob.bytes()), media_type: blob.media_type };
        Self { journal, conversation, blobs: blobs.into_iter().map(carried).collect() }
    }

    pub(super) fn to_bytes(&self) -> Result<Vec<u8>, EnvelopeError> {
        serde_json::to_vec(self).map_err(|_| EnvelopeError::Sealing)
    }

    /// Parses the content and checks it against the claims.
    pub(super) fn read(bytes: &[u8], claims: &Claims) -> Result<Self, EnvelopeError> {
        let mut content: Self = serde_json::from_slice(bytes).map_err(|_| EnvelopeError::Unreadable)?;
        if let (Some(first), Some(segment)) = (content.journal.first_mut(), content.conversation.take()) {
            first.event = first.event.with_conversation(Some(Segment::join([segment]).into()));
        }
        let in_order = content.journal.iter().zip(0..).all(|(recorded, seq)| recorded.seq == seq);
        let is_meant = content.journal.len() as u64 == claims.length && head(&content.journal) == claims.head;
        let is_whole = match content.journal.first().map(|first| &first.event) {
            Some(Event::Started(started)) => started.is_resolved(),
            Some(_) | None => true,
        };
        if in_order && is_meant && is_whole { Ok(content) } else { Err(EnvelopeError::Unreadable) }
    }

    pub(super) fn blobs(&self) -> Result<Vec<Blob>, EnvelopeError> {
        let blob = |carried: &BlobJson| match STANDARD_NO_PAD.decode(&carried.data) {
            Ok(bytes) => Ok(Blob::new(carried.media_type.as_str(), bytes)),
            Err(_) => Err(EnvelopeError::Unreadable),
        };
        self.blobs.iter().map(blob).collect()
    }
}

/// The hash of a journal or of a prefix: of its events as JSON, one per line.
pub(super) fn head<'a>(journal: impl IntoIterator<Item = &'a JournalEntry>) -> String {
    let mut hash = Sha256::new();
    for recorded in journal {
        // A journal contains only serializable events.
        hash.update(serde_json::to_vec(recorded).unwrap_or_default());
        hash.update(b"\n");
    }
    format!("sha256:{}", json::hex(&hash.finalize()))
}
