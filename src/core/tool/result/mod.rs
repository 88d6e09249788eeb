//! Tool results of any size. The journal and the model get a useful excerpt of a result; the whole is stored once,
//! under its hash, beside the journal, and is read in pieces. Everything here is pure: content to be stored is
//! returned, and the owner of a store stores it before anything names it.

mod bounded;
mod document;
mod pointer;
mod reading;
mod search;
mod truncation;

pub(super) use pointer::find;

pub use bounded::{MIN_RESULT_BYTES, OverflowStorage, bounded};
pub use reading::{Piece, ReadRequest, read};
pub use truncation::{bounded_message, shortened};

use serde::{Deserialize, Serialize};

use crate::blob::BlobHandle;

/// Content of a result that is stored outside the journal. Only toolgate writes this: any other text in a result that
/// looks like a handle is untrusted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredContent {
    pub handle: BlobHandle,
    pub media_type: String,
    pub bytes: u64,
    /// The part of the result.
    pub form: StoredForm,
}

/// The part of a result that is stored elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoredForm {
    /// A text whose beginning and end are in the content.
    Text,
    Structured,
    /// A text that is also the JSON of the structured form.
    Both,
    /// A text; the structured form is that text, as a string.
    Same,
    /// A text; the structured form is an object with the text, or the value it is the JSON of, as its only member
    /// `result`.
    Wrapped,
    /// An image, a recording or a document that the content names by its handle.
    Media,
}

/// The treatment of a structured result that does not match its tool's output schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultCheck {
    Off,
    /// The result is accepted, and the model and people read the problems.
    #[default]
    Warn,
    /// The result counts as an error, and the model and people read the problems.
    Fail,
}

impl StoredForm {
    /// Whether the content has an excerpt of it.
    pub fn is_text(self) -> bool {
        match self {
            Self::Text | Self::Both | Self::Same | Self::Wrapped => true,
            Self::Structured | Self::Media => false,
        }
    }

    /// Whether it is more than the content shows, so that there is more to read.
    pub fn is_cut(self) -> bool {
        match self {
            Self::Text | Self::Both | Self::Same | Self::Wrapped | Self::Structured => true,
            Self::Media => false,
        }
    }
}
