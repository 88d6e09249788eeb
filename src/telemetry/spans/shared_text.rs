//! Shared text: the names and texts of attributes. Clones share it, because each turn repeats the conversation.

use std::collections::HashSet;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use serde::{Serialize, Serializer};

/// The most names that runs share, some 100 bytes each.
const MOST_NAMES: usize = 4_096;

/// The names that are not constants, most with the position of a message. They are the same in all runs.
static NAMES: LazyLock<Mutex<HashSet<Arc<str>>>> = LazyLock::new(Mutex::default);

/// A text that is not copied.
#[derive(Clone)]
pub enum SharedText {
    Static(&'static str),
    Counted(Arc<str>),
}

impl SharedText {
    /// The name of an attribute below `prefix`.
    pub(super) fn name(prefix: &str, name: &str) -> Self {
        let name = format!("{prefix}.{name}");
        let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = names.get(name.as_str()) {
            return Self::Counted(known.clone());
        }
        let name: Arc<str> = name.into();
        if names.len() < MOST_NAMES {
            names.insert(name.clone());
        }
        Self::Counted(name)
    }
}

impl Deref for SharedText {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Static(text) => text,
            Self::Counted(text) => text,
        }
    }
}

impl PartialEq for SharedText {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl fmt::Display for SharedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl fmt::Debug for SharedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl Serialize for SharedText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl From<&'static str> for SharedText {
    fn from(text: &'static str) -> Self {
        Self::Static(text)
    }
}

impl From<String> for SharedText {
    fn from(text: String) -> Self {
        Self::Counted(text.into())
    }
}

impl From<Arc<str>> for SharedText {
    fn from(text: Arc<str>) -> Self {
        Self::Counted(text)
    }
}
