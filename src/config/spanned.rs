//! Values with their source location, so that errors found later can point at them.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize, Serializer};
use serde_saphyr::Spanned;

/// Line and column, both from 1; `None` when unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Location {
    /// Line, from 1.
    pub(super) line: usize,
    /// Column in characters, from 1.
    pub(super) column: usize,
    /// The number of characters to mark; at least 1.
    pub(super) length: usize,
}

/// A value with its location in a YAML file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(transparent)]
pub(super) struct Located<T>(Spanned<T>);

/// Text of a YAML file, before variable expansion.
pub(super) type Text = Located<String>;

impl<T> Located<T> {
    pub(super) fn value(&self) -> &T {
        &self.0.value
    }

    /// Another value at the same location.
    pub(super) fn with<U>(&self, value: U) -> Located<U> {
        Located(Spanned { value, referenced: self.0.referenced, defined: self.0.defined })
    }

    /// The location, if it is known.
    pub(super) fn place(&self) -> Option<Location> {
        Location::from_location(self.0.referenced)
    }
}

impl Location {
    /// The beginning of a file.
    pub(super) const FIRST: Option<Self> = Some(Self { line: 1, column: 1, length: 1 });

    /// The location from the parser. The parser has no location inside buffered data.
    pub(super) fn from_location(location: serde_saphyr::Location) -> Option<Self> {
        let narrow = |number: u64| usize::try_from(number).ok().filter(|number| (1..1 << 31).contains(number));
        let length = narrow(location.span().len()).filter(|length| *length < 1 << 20).unwrap_or(1);
        Some(Self { line: narrow(location.line())?, column: narrow(location.column())?, length })
    }
}

/// The value alone.
impl<T: Serialize> Serialize for Located<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value().serialize(serializer)
    }
}

impl<T: JsonSchema> JsonSchema for Located<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}
