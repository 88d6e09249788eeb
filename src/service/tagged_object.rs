//! Tagged objects of request bodies: an object whose `type` names its form, read so that an error has its place. What serde
//! derives for such an enum reads it from a buffer, and would report the whole object.

use std::fmt;

use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error, MapAccess, Visitor};
use serde_json::{Map, Value};
use serde_path_to_error::{Path, Segment};
use toolgate_core::json::pointer_token;

use super::strict_objects::StrictObjects;

/// The members of an object, and its type.
pub struct TaggedObject {
    kind: String,
    members: Map<String, Value>,
}

impl TaggedObject {
    /// The value of `type`.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Reads the other members.
    pub fn read<T: DeserializeOwned, E: Error>(self) -> Result<T, E> {
        let read = serde_path_to_error::deserialize(StrictObjects::new(Value::Object(self.members)));
        read.map_err(|error| placed(&pointer(error.path()), &error.inner().to_string()))
    }

    /// Refuses the type.
    pub fn refuse<T, E: Error>(&self, types: &'static [&'static str]) -> Result<T, E> {
        Err(placed("/type", &serde_json::Error::unknown_variant(&self.kind, types).to_string()))
    }
}

/// An error with its place in the object at its end, because a deserializer takes nothing but a text.
fn placed<E: Error>(pointer: &str, detail: &str) -> E {
    match pointer {
        "" => E::custom(detail),
        pointer => E::custom(format_args!("{detail} (at {pointer})")),
    }
}

/// The text of an error, and the place that a [`TaggedObject`] wrote at its end; empty without one.
pub fn split_place(text: &str) -> (&str, &str) {
    let split = text.strip_suffix(')').and_then(|text| text.rsplit_once(" (at "));
    split.filter(|(_, pointer)| pointer.starts_with('/')).unwrap_or((text, ""))
}

/// A JSON pointer (RFC 6901).
pub fn pointer(path: &Path) -> String {
    let step = |segment: &Segment| match segment {
        Segment::Seq { index } => Some(index.to_string()),
        Segment::Map { key } => Some(pointer_token(key)),
        Segment::Enum { .. } | Segment::Unknown => None,
    };
    path.iter().filter_map(step).map(|step| format!("/{step}")).collect()
}

impl<'de> Deserialize<'de> for TaggedObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor)
    }
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = TaggedObject;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<TaggedObject, A::Error> {
        let mut members = Map::new();
        while let Some((name, value)) = access.next_entry::<String, Value>()? {
            if members.contains_key(&name) {
                return Err(placed(&format!("/{}", pointer_token(&name)), &format!("duplicate field `{name}`")));
            }
            members.insert(name, value);
        }
        let kind = members.shift_remove("type").ok_or_else(|| A::Error::missing_field("type"))?;
        let kind = String::deserialize(kind).map_err(|error| placed("/type", &error.to_string()))?;
        Ok(TaggedObject { kind, members })
    }
}
