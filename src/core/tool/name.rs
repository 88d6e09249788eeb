//! Tool names for the model: `mcp_<server>_<tool>`, `ext_<tool>`, and plain names of builtin tools, matching
//! `^[A-Za-z0-9_-]{1,64}$`.
//!
//! A name is a pure function of its origin: characters that providers refuse become `_`, and whenever that (or the
//! length) loses something, a hash of the whole origin is appended. So two origins never share a name, and a restart or
//! another server order never changes one. Names are never parsed; the toolset maps them back to the origin.

use std::borrow::Borrow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use sha2::{Digest, Sha256};

use super::Origin;
use crate::id::ServerId;
use crate::json::hex;

const MAX_BYTES: usize = 64;
const HASH_CHARS: usize = 8;

/// A tool name that every provider accepts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ToolName(String);

impl ToolName {
    /// Accepts text that matches `^[A-Za-z0-9_-]{1,64}$`.
    pub fn parse(text: &str) -> Option<Self> {
        let valid = !text.is_empty() && text.len() <= MAX_BYTES && text.bytes().all(is_safe);
        valid.then(|| Self(text.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The same name with a hash of its origin, used when another tool has the plain name.
    pub(super) fn with_hash(&self, origin: &Origin) -> Self {
        let suffix = origin_hash(origin);
        let stem: String = self.0.chars().take(MAX_BYTES - HASH_CHARS - 1).collect();
        Self(format!("{stem}_{suffix}"))
    }
}

impl Borrow<str> for ToolName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// The name of an MCP tool: `mcp_<server>_<tool>`.
pub fn mcp_name(server: &ServerId, tool: &str) -> ToolName {
    let origin = Origin::Mcp { server: server.clone(), tool: tool.to_owned() };
    named(format!("mcp_{server}_{tool}"), &origin)
}

/// The name of an external tool: `ext_<tool>`.
pub fn external_name(tool: &str) -> ToolName {
    named(format!("ext_{tool}"), &Origin::External { tool: tool.to_owned() })
}

/// The tool's own name, without a prefix.
pub(super) fn unprefixed_name(tool: &str, origin: &Origin) -> ToolName {
    named(tool.to_owned(), origin)
}

fn named(plain: String, origin: &Origin) -> ToolName {
    if let Some(name) = ToolName::parse(&plain) {
        return name;
    }
    let safe: String = plain.chars().map(|c| if c.is_ascii() && is_safe(c as u8) { c } else { '_' }).collect();
    ToolName(safe).with_hash(origin)
}

fn is_safe(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

fn origin_hash(origin: &Origin) -> String {
    // The length of the server name keeps ("a", "b_c") and ("a_b", "c") apart.
    let identity = match origin {
        Origin::Mcp { server, tool } => format!("mcp:{}:{server}:{tool}", server.as_str().len()),
        Origin::External { tool } => format!("ext:{tool}"),
        Origin::Builtin { tool } => format!("builtin:{tool}"),
    };
    hex(&Sha256::digest(identity.as_bytes())).chars().take(HASH_CHARS).collect()
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ToolName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom(format!("{text:?} does not match ^[A-Za-z0-9_-]{{1,64}}$")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_stay_plain() {
        assert_eq!(mcp_name(&"git".into(), "git_status").as_str(), "mcp_git_git_status");
        assert_eq!(external_name("get-order").as_str(), "ext_get-order");
    }

    #[test]
    fn refused_characters_are_replaced_and_a_hash_is_added() {
        let dotted = mcp_name(&"s".into(), "weird.name/with-slash");
        assert!(dotted.as_str().starts_with("mcp_s_weird_name_with-slash_"), "{dotted}");
        assert_ne!(dotted, mcp_name(&"s".into(), "weird/name.with-slash"));
    }

    #[test]
    fn long_names_that_share_a_beginning_stay_apart() {
        let long = "x".repeat(80);
        let (a, b) = (external_name(&format!("{long}a")), external_name(&format!("{long}b")));
        assert_eq!((a.as_str().len(), b.as_str().len()), (64, 64));
        assert_ne!(a, b);
    }
}
