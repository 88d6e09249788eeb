//! Patterns of tool names in scenario files. A pattern means the name that the model sees or the server's own name.

use serde::{Deserialize, Deserializer, de::Error as _};
use toolgate_core::pattern::Pattern;

/// A checked pattern of tool names.
#[derive(Clone, Debug)]
pub struct ToolPattern {
    written: String,
    pattern: Pattern,
}

impl ToolPattern {
    /// The pattern as it is written.
    pub fn as_str(&self) -> &str {
        &self.written
    }

    /// Whether it means a tool with one of these names.
    pub fn fits(&self, name: &str, own_name: Option<&str>) -> bool {
        self.pattern.fits(name) || own_name.is_some_and(|own| self.pattern.fits(own))
    }
}

impl<'de> Deserialize<'de> for ToolPattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = String::deserialize(deserializer)?;
        let wrong = |error| {
            D::Error::custom(format!("`{written}` is not a pattern of names: {error}; write a name or `get_*`"))
        };
        Ok(Self { pattern: Pattern::parse(&written).map_err(wrong)?, written })
    }
}
