//! JSON paths: the place of a value in arguments, results and tool definitions, as in `$.orders[0].id`.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// The path of a value, from the root `$`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JsonPath(Vec<Segment>);

/// A step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Member(String),
    Item(usize),
}

/// A path in which `*` stands for any member and `[*]` for any item. It covers the value there and everything below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPattern {
    written: String,
    segments: Vec<PatternSegment>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum PatternSegment {
    Exactly(Segment),
    AnyMember,
    AnyItem,
}

impl JsonPath {
    /// The path of a member of the object at this path.
    #[must_use]
    pub fn member(&self, name: &str) -> Self {
        self.with(Segment::Member(name.to_owned()))
    }

    /// The path of an item of the list at this path, counted from 0.
    #[must_use]
    pub fn item(&self, index: usize) -> Self {
        self.with(Segment::Item(index))
    }

    fn with(&self, segment: Segment) -> Self {
        Self(self.0.iter().cloned().chain([segment]).collect())
    }
}

impl fmt::Display for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("$")?;
        for segment in &self.0 {
            match segment {
                Segment::Member(name) if is_plain(name) => write!(f, ".{name}")?,
                Segment::Member(name) => write!(f, "[{}]", serde_json::Value::from(name.as_str()))?,
                Segment::Item(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '/'))
}

impl PathPattern {
    /// Parses a pattern; the error names the mistake and the remedy.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("`{text}` is not a path: {why}; write it like `$.orders[*].id`");
        let mut rest = text.strip_prefix('$').ok_or_else(|| wrong("it does not begin with `$`"))?;
        let mut segments = Vec::new();
        while !rest.is_empty() {
            let (segment, behind) = next_segment(rest).ok_or_else(|| wrong(&format!("`{rest}` cannot be read")))?;
            segments.push(segment);
            rest = behind;
        }
        Ok(Self { written: text.to_owned(), segments })
    }

    /// Whether the path is the place of the pattern, or below it.
    pub fn covers(&self, path: &JsonPath) -> bool {
        let fits = |(pattern, segment): (&PatternSegment, &Segment)| match pattern {
            PatternSegment::Exactly(exactly) => exactly == segment,
            PatternSegment::AnyMember => matches!(segment, Segment::Member(_)),
            PatternSegment::AnyItem => matches!(segment, Segment::Item(_)),
        };
        self.segments.len() <= path.0.len() && self.segments.iter().zip(&path.0).all(fits)
    }
}

/// The first segment of a pattern and the text behind it.
fn next_segment(text: &str) -> Option<(PatternSegment, &str)> {
    if let Some(rest) = text.strip_prefix('.') {
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let (name, behind) = rest.split_at(end);
        return match name {
            "" => None,
            "*" => Some((PatternSegment::AnyMember, behind)),
            name => Some((PatternSegment::Exactly(Segment::Member(name.to_owned())), behind)),
        };
    }
    let rest = text.strip_prefix('[')?;
    if rest.starts_with('"') {
        let mut names = serde_json::Deserializer::from_str(rest).into_iter::<String>();
        let name = names.next()?.ok()?;
        let behind = rest.get(names.byte_offset()..)?.strip_prefix(']')?;
        return Some((PatternSegment::Exactly(Segment::Member(name)), behind));
    }
    let (index, behind) = rest.split_once(']')?;
    match index {
        "*" => Some((PatternSegment::AnyItem, behind)),
        index => Some((PatternSegment::Exactly(Segment::Item(index.parse().ok()?)), behind)),
    }
}

impl Serialize for PathPattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.written)
    }
}

impl<'de> Deserialize<'de> for PathPattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orders_id() -> JsonPath {
        JsonPath::default().member("orders").item(0).member("the id")
    }

    #[test]
    fn a_path_is_written_like_code() {
        assert_eq!(orders_id().to_string(), r#"$.orders[0]["the id"]"#);
        assert_eq!(JsonPath::default().to_string(), "$");
    }

    #[test]
    fn a_pattern_covers_its_place_and_everything_below() {
        for (pattern, covers) in [
            ("$", true),
            ("$.orders", true),
            ("$.*[*]", true),
            (r#"$.orders[0]["the id"]"#, true),
            ("$.orders[1]", false),
            ("$[*]", false),
            ("$.orders[0].id", false),
            (r#"$.orders[0]["the id"].more"#, false),
        ] {
            assert_eq!(PathPattern::parse(pattern).unwrap().covers(&orders_id()), covers, "{pattern}");
        }
    }

    #[test]
    fn a_mistake_in_a_pattern_is_named() {
        for wrong in ["orders", "$orders", "$.", "$[x]", "$[\"a]", "$.a[1"] {
            let error = PathPattern::parse(wrong).unwrap_err();
            assert!(error.contains("is not a path") && error.contains("$.orders[*].id"), "{error}");
        }
    }
}
