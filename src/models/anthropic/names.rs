//! Ids, names and arguments of calls as the API takes them back. It refuses the whole conversation for one that it does
//! not like, and models and other providers write what they please.

use std::borrow::Cow;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::core::id::CallId;
use crate::core::json::hex;
use crate::core::tool::Arguments;

const MAX_NAME_CHARS: usize = 128;
const HASH_CHARS: usize = 8;

/// The id, or one made of it that is as unlike all others.
pub(super) fn accepted_id(id: &CallId) -> Cow<'_, str> {
    let id = id.as_str();
    if !id.is_empty() && id.chars().all(is_safe) {
        return Cow::Borrowed(id);
    }
    let hash: String = hex(&Sha256::digest(id.as_bytes())).chars().take(HASH_CHARS).collect();
    Cow::Owned(format!("{}_{hash}", safe(id)))
}

/// The name as the model wrote it, or the nearest that is accepted.
pub(super) fn accepted_name(name: &str) -> Cow<'_, str> {
    if name.is_empty() {
        return Cow::Borrowed("unnamed");
    }
    if name.len() <= MAX_NAME_CHARS && name.chars().all(is_safe) {
        return Cow::Borrowed(name);
    }
    Cow::Owned(safe(name).chars().take(MAX_NAME_CHARS).collect())
}

/// The arguments. Only an object is taken, so what the model wrote instead stands inside one, where it can read it.
pub(super) fn accepted_input(arguments: &Arguments) -> Cow<'_, Map<String, Value>> {
    match arguments {
        Arguments::Object(object) => Cow::Borrowed(object),
        Arguments::Malformed(text) => {
            Cow::Owned(Map::from_iter([("INVALID_JSON".to_owned(), Value::from(text.as_str()))]))
        }
    }
}

fn safe(text: &str) -> String {
    text.chars().map(|c| if is_safe(c) { c } else { '_' }).collect()
}

fn is_safe(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_are_refused_are_replaced_and_stay_apart() {
        assert_eq!(accepted_id(&"toolu_01-A".into()), "toolu_01-A");
        let (a, b) = ("functions.look:0".into(), "functions:look.0".into());
        assert!(accepted_id(&a).starts_with("functions_look_0_") && accepted_id(&a).chars().all(is_safe));
        assert_ne!(accepted_id(&a), accepted_id(&b));
        assert!(!accepted_id(&"".into()).is_empty());
    }

    #[test]
    fn names_that_are_refused_become_the_nearest_that_are_not() {
        assert_eq!(accepted_name("no such.tool"), "no_such_tool");
        assert_eq!(accepted_name(""), "unnamed");
        assert_eq!(accepted_name(&"é".repeat(200)).len(), 128);
    }
}
