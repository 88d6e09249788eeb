//! Valid call ids, names and arguments. The API rejects the whole conversation for a single invalid one, and models and
//! other providers produce arbitrary ones.

use std::borrow::Cow;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use toolgate_core::id::CallId;
use toolgate_core::json::hex;
use toolgate_core::tool::Arguments;

const MAX_NAME_CHARS: usize = 128;
const HASH_CHARS: usize = 8;

/// The id, or a valid one derived from it that stays unique.
pub(super) fn accepted_id(id: &CallId) -> Cow<'_, str> {
    let id = id.as_str();
    if !id.is_empty() && id.chars().all(is_safe) {
        return Cow::Borrowed(id);
    }
    let hash: String = hex(&Sha256::digest(id.as_bytes())).chars().take(HASH_CHARS).collect();
    Cow::Owned(format!("{}_{hash}", safe(id)))
}

/// The name that the model wrote, or the nearest valid one.
pub(super) fn accepted_name(name: &str) -> Cow<'_, str> {
    if name.is_empty() {
        return Cow::Borrowed("unnamed");
    }
    if name.len() <= MAX_NAME_CHARS && name.chars().all(is_safe) {
        return Cow::Borrowed(name);
    }
    Cow::Owned(safe(name).chars().take(MAX_NAME_CHARS).collect())
}

/// The arguments. The API accepts only an object, so any other text of the model is put inside one, where the model can
/// read it.
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
    fn invalid_ids_are_replaced_and_stay_unique() {
        assert_eq!(accepted_id(&"toolu_01-A".into()), "toolu_01-A");
        let (a, b) = ("functions.look:0".into(), "functions:look.0".into());
        assert!(accepted_id(&a).starts_with("functions_look_0_") && accepted_id(&a).chars().all(is_safe));
        assert_ne!(accepted_id(&a), accepted_id(&b));
        assert!(!accepted_id(&"".into()).is_empty());
    }

    #[test]
    fn invalid_names_become_the_nearest_valid_ones() {
        assert_eq!(accepted_name("no such.tool"), "no_such_tool");
        assert_eq!(accepted_name(""), "unnamed");
        assert_eq!(accepted_name(&"é".repeat(200)).len(), 128);
    }
}
