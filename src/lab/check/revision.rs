//! Published revisions of MCP.

use std::fmt;

use serde::{Serialize, Serializer};

/// A published revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Revision {
    /// 2024-11-05, the first one.
    V2024November,
    /// 2025-03-26, which brought streamable HTTP and annotations.
    V2025March,
    /// 2025-06-18, which brought structured content.
    V2025June,
    /// 2025-11-25, the last one with a handshake.
    V2025November,
    /// 2026-07-28, which is stateless.
    V2026July,
}

impl Revision {
    /// All of them, the oldest first.
    pub const ALL: [Self; 5] =
        [Self::V2024November, Self::V2025March, Self::V2025June, Self::V2025November, Self::V2026July];

    /// The newest revision that begins with `initialize`.
    pub const LAST_LEGACY: Self = Self::V2025November;

    /// The date that names it on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2024November => "2024-11-05",
            Self::V2025March => "2025-03-26",
            Self::V2025June => "2025-06-18",
            Self::V2025November => "2025-11-25",
            Self::V2026July => "2026-07-28",
        }
    }

    /// The revision of that date.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == text)
    }

    /// Whether it has no handshake and no sessions.
    pub fn is_modern(self) -> bool {
        self == Self::V2026July
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Revision {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
