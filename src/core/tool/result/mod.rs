//! Results of any size. A model and a journal get so much of a result as is of use to them; the whole is kept beside the
//! journal under its hash, once, and is read in pieces. Everything here is pure: what is to be kept is handed back, and
//! whoever has a store keeps it before anything names it.

mod bounded;
mod cut;
mod document;
mod pointer;
mod reading;
mod search;

pub use bounded::{Keeping, MIN_RESULT_BYTES, Whole, bounded};
pub use cut::{bounded_message, shortened};
pub use reading::{Piece, Reading, read};

use serde::{Deserialize, Serialize};

use crate::core::blob::BlobHandle;

/// Content of a result that is kept outside the journal. Only toolgate writes this: whatever else looks like a handle in
/// a result is somebody's text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// Where.
    pub handle: BlobHandle,
    /// Its media type.
    pub media_type: String,
    /// How many bytes it has.
    pub bytes: u64,
    /// What of the result it is.
    pub form: KeptForm,
}

/// What of a result is kept elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeptForm {
    /// A text, of which the content has the beginning and the end.
    Text,
    /// The structured form, as JSON.
    Structured,
    /// A text which, read as JSON, is the structured form as well.
    Both,
    /// A text; the structured form is that text, as a string.
    Same,
    /// A text; the structured form is an object with the text, or the value it is the JSON of, as its only member
    /// `result`.
    Wrapped,
    /// An image, a recording or a document that the content names by its handle.
    Media,
}

/// What becomes of a structured result that does not fit what its tool declares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResultCheck {
    /// Nobody looks.
    Off,
    /// The result is taken, and the model and people are told.
    #[default]
    Warn,
    /// They are told, and the result counts as an error.
    Fail,
}

impl KeptForm {
    /// Whether the content has an excerpt of it.
    pub fn is_text(self) -> bool {
        match self {
            Self::Text | Self::Both | Self::Same | Self::Wrapped => true,
            Self::Structured | Self::Media => false,
        }
    }

    /// Whether it is more than the content shows: something that is worth reading on.
    pub fn is_cut(self) -> bool {
        match self {
            Self::Text | Self::Both | Self::Same | Self::Wrapped | Self::Structured => true,
            Self::Media => false,
        }
    }
}
