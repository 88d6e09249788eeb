//! Store failures.

/// A failure of the store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// It cannot be read or written; a retry may help.
    #[error("the store cannot be used: {0}")]
    Unavailable(String),
    /// There is no room for what is to be written; a retry helps once there is.
    #[error("the disk of the store is full: {0}")]
    Full(String),
    /// It holds data that this version cannot read.
    #[error("the store holds something this version of toolgate cannot read: {0}")]
    Corrupt(String),
}
