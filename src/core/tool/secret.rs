//! Secret arguments: arguments that a tool's schema marks as secret, by `writeOnly` or `format: password`. The mark may
//! also be on one of several forms (an optional password), on the items of a list, or on a definition elsewhere in the
//! schema.

use std::collections::BTreeSet;

use serde_json::Value as Json;

/// The maximum number of forms of an argument that are examined; a schema that refers to itself has infinitely many.
const FORMS: usize = 64;

/// The names of the arguments that are marked, at any depth.
pub fn secret_names(schema: &Json) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    collect(schema, schema, &mut names);
    names
}

fn collect(schema: &Json, root: &Json, names: &mut BTreeSet<String>) {
    match schema {
        Json::Object(members) => {
            let properties = members.get("properties").and_then(Json::as_object);
            let marked = properties.into_iter().flatten().filter(|(_, property)| is_marked(property, root));
            names.extend(marked.map(|(name, _)| name.clone()));
            members.values().for_each(|value| collect(value, root, names));
        }
        Json::Array(items) => items.iter().for_each(|item| collect(item, root, names)),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
    }
}

/// Whether a property, or one of its forms, is marked.
fn is_marked(property: &Json, root: &Json) -> bool {
    let mut forms = vec![property];
    for _ in 0..FORMS {
        let Some(form) = forms.pop() else { return false };
        if form.get("writeOnly") == Some(&Json::Bool(true)) || form.get("format").is_some_and(|it| it == "password") {
            return true;
        }
        let several = ["anyOf", "oneOf", "allOf"].into_iter().filter_map(|name| form.get(name)?.as_array()).flatten();
        let elsewhere = form.get("$ref").and_then(Json::as_str).and_then(|place| place.strip_prefix('#'));
        let elsewhere = elsewhere.and_then(|place| root.pointer(place));
        forms.extend(several.chain(form.get("items")).chain(elsewhere).take(FORMS));
    }
    false
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn marks_count_on_forms_items_and_definitions() {
        let secret = json!({"type": "string", "format": "password", "writeOnly": true});
        let schema = json!({
            "properties": {
                "plain": {"type": "string"}, "pin": {"writeOnly": true},
                "optional": {"anyOf": [secret, {"type": "null"}]}, "several": {"type": "array", "items": secret},
                "named": {"$ref": "#/$defs/Secret"}, "round": {"$ref": "#/$defs/Round"},
                "below": {"type": "object", "properties": {"word": {"format": "password"}}},
            },
            "$defs": {"Secret": secret, "Round": {"anyOf": [{"$ref": "#/$defs/Round"}, {"$ref": "#/$defs/Round"}]}},
        });
        let marked: Vec<String> = secret_names(&schema).into_iter().collect();
        assert_eq!(marked, ["named", "optional", "pin", "several", "word"]);
    }
}
